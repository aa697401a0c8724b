package slurm

import (
	_ "embed" // the hook's source
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed epplan.lua
var luaSource string

// Site is what an installation starts from.
type Site struct {
	Dir       string // folder of slurm.conf, absolute, such as /etc/slurm
	Socket    string // the controller's Unix socket, absolute
	Binary    string // epplan, absolute
	Conf      string // the text of slurm.conf
	Script    string // the text of job_submit.lua
	HasScript bool   // it exists
	// CheckLua reads a script as Lua 5.1 would, such as luac5.1 -p; its error
	// stops the plan. From 23.02 a script that does not load ends slurmctld at reconfigure.
	CheckLua func(name, text string) error
}

// Step is one change to make, whole: nothing is to be guessed.
type Step struct {
	File string // what to write
	Text string // its new text; "" for a setting in slurm.conf
	Mode uint32 // permissions of a new file
	New  bool   // the file is ours: undo removes it
	Add  string // the line that is added to somebody else's file
	Drop string // the line of slurm.conf that Add takes the place of, or ""
	Why  string
	Undo string // how to take it back
}

// InstallPlan is what to put where. Nothing of the site is overwritten: its own
// script gains one line, its own Prolog stays and runs first.
type InstallPlan struct {
	Steps    []Step
	Warnings []string
}

var (
	submitFunction = regexp.MustCompile(`(?m)^[ \t]*function[ \t]+slurm_job_submit[ \t]*\(([^)\n]*)\)[ \t]*(?:--[^\n]*)?\r?\n`)
	luaName        = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plainPath      = regexp.MustCompile(`^/[A-Za-z0-9._/-]+$`)
)

// hookMark ends the line that an installation adds to job_submit.lua.
const hookMark = "-- epplan"

// LuaModule gives epplan.lua for a folder and a socket.
func LuaModule(dir, socket string) (string, error) {
	for _, p := range []string{dir, socket} {
		if !plainPath.MatchString(p) || path.Clean(p) != p {
			return "", fmt.Errorf("path %q: want an absolute one of plain letters: %w", Printable(p, 80), ErrInvalid)
		}
	}
	return strings.NewReplacer("@DIR@", dir, "@SOCKET@", socket).Replace(luaSource), nil
}

// PlanInstall says exactly what to add and how to undo it. A second plan on the
// result has no steps for what is there already.
func PlanInstall(s Site) (InstallPlan, error) {
	if s.CheckLua == nil || !plainPath.MatchString(s.Binary) {
		return InstallPlan{}, fmt.Errorf("install: want a Lua check and an absolute binary: %w", ErrInvalid)
	}
	module, err := LuaModule(s.Dir, s.Socket)
	if err != nil {
		return InstallPlan{}, err
	}
	if err := s.CheckLua("epplan.lua", module); err != nil {
		return InstallPlan{}, fmt.Errorf("epplan.lua: %w", err)
	}
	p := InstallPlan{}
	file := path.Join(s.Dir, "epplan.lua")
	p.Steps = append(p.Steps, Step{File: file, Text: module, Mode: 0o644, New: true, Why: "the hook", Undo: "rm " + file})
	script, err := s.scriptStep()
	if err != nil {
		return InstallPlan{}, err
	}
	p.Steps = append(p.Steps, script...)
	settings := readSettings(s.Conf)
	for _, hook := range []Hook{Prolog, Epilog} {
		if own := settings[string(hook)].text; own != "" && !plainPath.MatchString(strings.TrimSuffix(own, "/*")) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s=%s: add %s %s to it by hand", hook, Printable(own, 200), s.Binary, hook))
			continue
		}
		p.Steps = append(p.Steps, s.hookSteps(hook, settings)...)
	}
	p.Steps = append(p.Steps, s.listSetting(settings, "JobSubmitPlugins", "lua", "slurmctld calls job_submit.lua")...)
	p.Steps = append(p.Steps, s.listSetting(settings, "PrologFlags", "Alloc", "the Prolog runs at the allocation, before any step")...)
	if _, ok := settings["include"]; ok {
		p.Warnings = append(p.Warnings, "slurm.conf includes other files, which were not read")
	}
	return p, nil
}

// scriptStep adds one line to the site's script, or writes a script where there is none.
func (s Site) scriptStep() ([]Step, error) {
	file := path.Join(s.Dir, "job_submit.lua")
	call := func(job, uid string) string {
		return fmt.Sprintf("  pcall(function() EPPLAN = EPPLAN or dofile(%q); EPPLAN.submit(%s, %s) end) %s", path.Join(s.Dir, "epplan.lua"), job, uid, hookMark)
	}
	if !s.HasScript {
		line := call("job_desc", "submit_uid")
		text := "function slurm_job_submit(job_desc, part_list, submit_uid)\n" + line + "\n  return slurm.SUCCESS\nend\n\n" +
			"function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)\n  return slurm.SUCCESS\nend\n\nreturn slurm.SUCCESS\n"
		if err := s.CheckLua("job_submit.lua", text); err != nil {
			return nil, fmt.Errorf("job_submit.lua: %w", err)
		}
		return []Step{{File: file, Text: text, Mode: 0o644, New: true, Why: "the site has no script of its own", Undo: "take lua out of JobSubmitPlugins, then rm " + file}}, nil
	}
	if err := s.CheckLua("job_submit.lua", s.Script); err != nil {
		return nil, fmt.Errorf("the site's job_submit.lua does not load as it is; nothing is planned: %w", err)
	}
	for line := range strings.SplitSeq(s.Script, "\n") {
		if strings.HasSuffix(strings.TrimRight(line, " \t\r"), hookMark) {
			return nil, nil
		}
	}
	at := submitFunction.FindAllStringSubmatchIndex(s.Script, -1)
	if len(at) != 1 {
		return nil, fmt.Errorf("job_submit.lua: found %d lines \"function slurm_job_submit(…)\", want 1: add the line by hand: %s: %w", len(at), strings.TrimSpace(call("job_desc", "submit_uid")), ErrInvalid)
	}
	names := strings.Split(s.Script[at[0][2]:at[0][3]], ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if len(names) != 3 || slices.ContainsFunc(names, func(n string) bool { return !luaName.MatchString(n) }) {
		return nil, fmt.Errorf("job_submit.lua: slurm_job_submit takes (%s), want three names: %w", strings.Join(names, ", "), ErrInvalid)
	}
	line := call(names[0], names[2])
	end := at[0][1]
	text := s.Script[:end] + line + "\n" + s.Script[end:]
	if err := s.CheckLua("job_submit.lua", text); err != nil {
		return nil, fmt.Errorf("job_submit.lua with our line: %w; add it by hand: %s", err, strings.TrimSpace(line))
	}
	return []Step{{File: file, Text: text, Add: line, Why: "one line in the site's own script", Undo: "delete the line that ends in " + hookMark + " from " + file}}, nil
}

// readSettings gives slurm.conf's settings by lower-case name; the last of two counts.
func readSettings(conf string) map[string]confLine {
	out := map[string]confLine{}
	for _, l := range confLines(conf) {
		body := strings.TrimSpace(l.text)
		if strings.HasPrefix(strings.ToLower(body), "include ") {
			out["include"] = l
			continue
		}
		key, value, ok := strings.Cut(body, "=")
		if ok && !strings.ContainsAny(key, " \t") {
			out[strings.ToLower(key)] = confLine{number: l.number, text: strings.TrimSpace(value)}
		}
	}
	return out
}

// listSetting adds a word to a comma-separated setting that lacks it.
func (s Site) listSetting(settings map[string]confLine, key, word, why string) []Step {
	old, there := settings[strings.ToLower(key)]
	step := Step{File: path.Join(s.Dir, "slurm.conf"), Add: key + "=" + word, Why: why, Undo: "delete " + key + "=" + word + ", then scontrol reconfigure"}
	if there && old.text != "" && !strings.EqualFold(old.text, "(null)") {
		for part := range strings.SplitSeq(old.text, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return nil
			}
		}
		step.Add = key + "=" + old.text + "," + word
		step.Drop = key + "=" + old.text
		step.Undo = fmt.Sprintf("put %s back on line %d, then scontrol reconfigure", step.Drop, old.number)
	}
	return []Step{step}
}

// hookSteps adds our hook as one more file; the site's own runs first. Slurm
// runs all files of a pattern in the order of their names.
func (s Site) hookSteps(hook Hook, settings map[string]confLine) []Step {
	key := strings.ToUpper(string(hook[:1])) + string(hook[1:])
	old := settings[string(hook)]
	script := "#!/bin/sh\n# epplan: ends with 0 within 2 s whatever happens; a node must not be drained by it.\n" +
		"/usr/bin/timeout -k 0.2 2 " + s.Binary + " " + string(hook) + " </dev/null >/dev/null 2>&1\nexit 0\n"
	conf := path.Join(s.Dir, "slurm.conf")
	folder := path.Join(s.Dir, "epplan-"+string(hook)+".d")
	pattern := folder + "/*"
	if old.text == pattern {
		return nil
	}
	if dir, ok := strings.CutSuffix(old.text, "/*"); ok && dir != "" {
		file := path.Join(dir, "90-epplan")
		return []Step{{File: file, Text: script, Mode: 0o755, New: true, Why: "the site's " + key + " is a folder already", Undo: "rm " + file + " (on every node)"}}
	}
	file := path.Join(folder, "90-epplan")
	steps := []Step{{File: file, Text: script, Mode: 0o755, New: true, Why: "our " + key + " (on every node)", Undo: "rm " + file}}
	setting := Step{File: conf, Add: key + "=" + pattern, Why: "every file of the folder runs, in the order of names", Undo: "delete " + key + "=" + pattern + ", then scontrol reconfigure"}
	if old.text != "" {
		own := path.Join(folder, "10-site")
		steps = append(steps, Step{File: own, Text: "#!/bin/sh\nexec " + old.text + "\n", Mode: 0o755, New: true, Why: "the site's own " + key + " keeps running, first", Undo: "rm " + own})
		setting.Drop = key + "=" + old.text
		setting.Undo = fmt.Sprintf("put %s back on line %d, then scontrol reconfigure", setting.Drop, old.number)
	}
	return append(steps, setting)
}
