package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/install"
)

// installCommand returns the command that installs epplan into Slurm as it is here.
func (e *examination) installCommand(ctx context.Context, dir string) string {
	line := e.options.program() + " install slurm --dir " + hooks.ShellQuote(dir) +
		" --submit-socket " + hooks.ShellQuote(e.submitSocket(ctx))
	if e.options.AgentSocket != "" && e.options.AgentSocket != epdapi.AgentSocket {
		line += " --socket " + hooks.ShellQuote(e.options.AgentSocket)
	}
	const defaultProgram = "/usr/bin/epplan"
	if e.options.Path != "" && e.options.Path != defaultProgram {
		line += " --program " + hooks.ShellQuote(e.options.Path)
	}
	if state := e.agentStateFolder(ctx); state != defaultState && e.role != Head {
		line += " --journal " + hooks.ShellQuote(path.Join(state, journalFolder))
	}
	module, err := e.site.Files.Read(path.Join(dir, "epplan.lua"))
	if err == nil && install.ModuleValue(module, "PROGRAM") != "" {
		line += " --popen"
	}
	return line
}

var pluginOff = &Fault{
	"submit-plugin-off", Bad, "JobSubmitPlugins is {value}, without lua",
	"no job is known by its script, and users' requests aren't read",
	Fix{File: "{conf}", Line: "JobSubmitPlugins={wanted}", Run: "scontrol reconfigure"},
}

var pluginMissing = &Fault{
	"submit-plugin-missing", Bad, "{file} isn't there",
	"slurmctld doesn't start without it",
	Fix{Run: "apt-get install slurm-wlm-plugins    # or your package of Slurm's Lua plugin"},
}

func checkPlugin(_ context.Context, e *examination, s *settings) []Finding {
	value := s.get("JobSubmitPlugins")
	if !slices.ContainsFunc(strings.Split(value, ","),
		func(p string) bool { p = strings.TrimSpace(p); return p == "lua" || p == "job_submit/lua" }) {
		return pluginOff.finding("value", cmp.Or(value, "not set"), "wanted",
			strings.TrimPrefix(value+",lua", ","), "conf", s.path)
	}
	dir := s.get("PluginDir")
	if dir == "" {
		return unknownFinding("JobSubmitPlugins=%s; where plugins are isn't known: %s", value,
			cmp.Or(s.byFile, "PluginDir isn't told"))
	}
	for part := range strings.SplitSeq(dir, ":") {
		if e.site.exists(path.Join(part, "job_submit_lua.so")) {
			return okFinding("JobSubmitPlugins=%s", value)
		}
	}
	return pluginMissing.finding("file", path.Join(dir, "job_submit_lua.so"))
}

var scriptMissing = &Fault{
	"submit-script-missing", Bad, "{file} isn't there",
	"slurmctld keeps the old script, and doesn't start again",
	Fix{Run: "{install}"},
}

var scriptForeign = &Fault{
	"submit-script-foreign", Bad, "{file} doesn't call epplan",
	"no job is known by its script, and users' requests aren't read",
	Fix{Run: "{install}"},
}

var scriptBroken = &Fault{
	"submit-script-broken", Bad, "{file} doesn't load: {error}",
	"slurmctld keeps the old script; from 23.02 on it ends at the next reconfigure",
	Fix{Run: "luac -p {file}    # fix what it says; {file}.before-epplan is your earlier script"},
}

var moduleMissing = &Fault{
	"submit-module-missing", Bad, "{file}, which job_submit.lua calls, isn't there",
	"epd isn't told of submissions",
	Fix{Run: "{install}"},
}

var moduleChanged = &Fault{
	"submit-module-changed", Warn, "{file} isn't as epplan install wrote it",
	"an update of epplan won't replace it",
	Fix{Run: "mv {file} {file}.own && {install}"},
}

var moduleOld = &Fault{
	"submit-module-old", Warn, "{file} is of another version of epplan",
	"newer functions at submission are missing",
	Fix{Run: "{install}"},
}

// checkScript looks at job_submit.lua and at our module that it calls.
func checkScript(ctx context.Context, e *examination, s *settings) []Finding {
	dir := path.Dir(s.path)
	words := func(file string) []string {
		return []string{"file", hooks.ShellQuote(file), "install", e.installCommand(ctx, dir)}
	}
	script := path.Join(dir, "job_submit.lua")
	text, err := e.site.Files.Read(script)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return scriptMissing.finding(words(script)...)
	case err != nil:
		return unknownFinding("%v", err)
	}
	if complaint, err := e.luaComplaint(ctx, script); err != nil {
		return unknownFinding("whether %s loads isn't known: %v", script, err)
	} else if complaint != "" {
		return scriptBroken.finding(append(words(script), "error", complaint)...)
	}
	module, called := install.SubmitCall(text)
	if !called {
		return scriptForeign.finding(words(script)...)
	}
	text, err = e.site.Files.Read(module)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return moduleMissing.finding(words(module)...)
	case err != nil:
		return unknownFinding("%v", err)
	}
	if complaint, err := e.luaComplaint(ctx, module); err == nil && complaint != "" {
		return scriptBroken.finding(append(words(module), "error", complaint)...)
	}
	if _, unchanged := install.Installed(text); !unchanged {
		return moduleChanged.finding(words(module)...)
	}
	if ours, err := install.LuaModule(path.Dir(module), install.ModuleValue(text, "SOCKET"),
		install.ModuleValue(text, "PROGRAM")); err == nil && ours != text {
		return moduleOld.finding(words(module)...)
	}
	return okFinding("%s calls %s", script, module)
}

var luaCompilers = []string{"luac5.1", "luac", "luac5.4", "luac5.3"}

// luaComplaint says what keeps a script from loading; "": nothing. The error says
// why that can't be told.
func (e *examination) luaComplaint(ctx context.Context, script string) (complaint string, err error) {
	for _, program := range luaCompilers {
		_, err = e.site.Run(ctx, program, "-p", script)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		if _, refused := errors.AsType[*exec.ExitError](err); refused {
			return err.Error(), nil
		}
		return "", err
	}
	return "", errors.New("no luac is installed")
}

var socketLibrary = &Fault{
	"lua-socket", Bad, "Lua has no socket.unix, and epplan.lua no other way to ask",
	"epd isn't told of submissions",
	Fix{Run: "apt-get install lua-socket    # or: {install} --popen"},
}

var moduleSocket = &Fault{
	"submit-socket-other", Bad, "epplan.lua asks at {asked}, and epd answers at {answered}",
	"epd isn't told of submissions",
	Fix{Run: "{install}"},
}

func checkModule(ctx context.Context, e *examination, s *settings) []Finding {
	dir := path.Dir(s.path)
	script, err := e.site.Files.Read(path.Join(dir, "job_submit.lua"))
	if err != nil {
		return unknownFinding("%v", err)
	}
	module, called := install.SubmitCall(script)
	if !called {
		return unknownFinding("job_submit.lua doesn't call epplan.lua")
	}
	text, err := e.site.Files.Read(module)
	if err != nil {
		return unknownFinding("%v", err)
	}
	asked, answered := install.ModuleValue(text, "SOCKET"), e.submitSocket(ctx)
	if _, err := e.headStatus(ctx); err != nil && asked != answered && e.options.PublicSocket == "" {
		return unknownFinding("epplan.lua asks at %s; where epd answers isn't known: %v", asked, err)
	}
	if asked != "" && asked != answered {
		return moduleSocket.finding("asked", asked, "answered", answered, "install",
			e.installCommand(ctx, dir))
	}
	if install.ModuleValue(text, "PROGRAM") != "" {
		return okFinding("epplan.lua asks at %s, also by a program", asked)
	}
	_, err = e.site.Run(ctx, "lua5.1", "-e", `require "socket.unix"`)
	_, refused := errors.AsType[*exec.ExitError](err)
	switch {
	case refused:
		return socketLibrary.finding("install", e.installCommand(ctx, dir))
	case err != nil:
		return unknownFinding("epplan.lua asks at %s; whether Lua has socket.unix isn't known: %v", asked,
			err)
	}
	return okFinding("epplan.lua asks at %s", asked)
}

var hookUnset = &Fault{
	"hook-unset", Bad, "{key} isn't set", "{without}",
	Fix{Run: "{install} --edit-conf && scontrol reconfigure"},
}

var hookNoMatch = &Fault{
	"hook-no-match", Bad, "{key}={pattern} names no file on this machine",
	"slurmd drains the node at the next job",
	Fix{Run: "{install}    # or copy the folder from another node"},
}

var hookMode = &Fault{
	"hook-not-executable", Bad, "{file}, of {key}, isn't executable",
	"slurmd drains the node at the next job",
	Fix{Run: "chmod 755 {file}"},
}

var hookForeign = &Fault{
	"hook-foreign", Bad, "nothing in {key}={pattern} calls epplan", "{without}",
	Fix{Run: "{install} --edit-conf && scontrol reconfigure"},
}

var epilogNotFirst = &Fault{
	"epilog-not-first", Warn, "in {key} {files} runs before epplan's {ours}",
	"GPUs stay locked until it is done; if it fails, epplan's isn't called; the job's end is known to " +
		"the second only",
	Fix{Run: "{install}    # gives ours the name that runs first; else mv {file} {dir}/00-site: the " +
		"last name of a folder runs first"},
}

var prologNotLast = &Fault{
	"prolog-not-last", Warn, "in {key} {files} runs after epplan's {ours}",
	"it runs at the job's clocks, and its time and energy count as the job's",
	Fix{Run: "mv {file} {dir}/50-site    # the last name of a folder runs first"},
}

var epilogJournal = &Fault{
	"epilog-journal", Bad,
	"without epd the Epilog restores clocks by {asked}, but epd's journal is {journal}",
	"jobs that end then leave GPUs locked until epd is back",
	Fix{Run: "{install}"},
}

// checkEpilog looks at the Epilog, and at where it looks for the journal.
func checkEpilog(ctx context.Context, e *examination) []Finding {
	found := newHookCheck(hooks.Epilog, "Epilog",
		"clocks are given back late, and no job's end is recorded in time")(ctx, e)
	state := cmp.Or(e.options.State, e.epdHealth(ctx, e.agentStatus).State)
	asked := e.epilogJournal(ctx)
	if asked == "" || state == "" || e.role == Head || asked == path.Join(state, journalFolder) {
		return found
	}
	s, err := e.settings(ctx)
	if err != nil {
		return found
	}
	found = slices.DeleteFunc(found, func(f Finding) bool { return f.Grade == OK })
	return append(found, epilogJournal.finding("asked", asked, "journal", path.Join(state, journalFolder),
		"install", e.installCommand(ctx, path.Dir(s.path)))...)
}

var taskEpilog = &Fault{
	"task-epilog",
	Warn,
	"{file}, of TaskEpilog, {wrong}",
	"jobs' outputs end with Slurm's error, or without epplan's line",
	Fix{
		Run: "{install} --job-summary HOST:PORT    # or delete TaskEpilog in slurm.conf; scontrol reconfigure",
	},
}

// checkTaskEpilog looks at the program that ends jobs' outputs, if it is ours.
func checkTaskEpilog(ctx context.Context, e *examination, s *settings) []Finding {
	file := s.get("TaskEpilog")
	if path.Base(file) != install.SummaryFile {
		return okFinding("no line of epplan's in jobs' outputs")
	}
	wrong := ""
	info, err := e.site.Files.Stat(file)
	if err != nil {
		wrong = "isn't there"
	} else if info.Mode.Perm()&0o001 == 0 {
		wrong = "isn't executable for users"
	} else if text, err := e.site.Files.Read(file); err == nil {
		if program := install.SummaryProgram(text); program != "" && !e.site.exists(program) {
			wrong = "calls " + program + ", which isn't there"
		}
	}
	if wrong == "" {
		return okFinding("TaskEpilog=%s", file)
	}
	return taskEpilog.finding("file", file, "wrong", wrong, "install", e.installCommand(ctx, path.Dir(s.path)))
}

// journalFolder is the journal's in epd's folder.
const journalFolder = "journal"

// epilogJournal returns where the Epilog looks for the journal; empty: it doesn't say,
// or not to others.
func (e *examination) epilogJournal(ctx context.Context) string {
	s, err := e.settings(ctx)
	if err != nil {
		return ""
	}
	for pattern := range strings.SplitSeq(s.get("Epilog"), ",") {
		for _, file := range s.hookFiles(e.site.Files, pattern) {
			text, err := e.site.Files.Read(file)
			if err != nil {
				continue
			}
			journal := install.HookJournal(text)
			if ours, _ := install.Installed(text); ours && journal == "" {
				journal = path.Join(defaultState, journalFolder)
			}
			if path.IsAbs(journal) && !strings.Contains(journal, "$") {
				return journal
			}
		}
	}
	return ""
}

func newHookCheck(hook hooks.Hook, key, without string) func(context.Context, *examination) []Finding {
	return settingsCheck(func(ctx context.Context, e *examination, s *settings) []Finding {
		value := s.get(key)
		words := []string{
			"key", key, "pattern", value, "without", without, "install",
			e.installCommand(ctx, path.Dir(s.path)),
		}
		if value == "" {
			return hookUnset.finding(words...)
		}
		if e.role == Head {
			return okFinding("%s=%s; its files are looked at on nodes", key, value)
		}
		return e.checkHookFiles(s, hook, value, words)
	})
}

// sentFolder is where slurmd keeps the slurm.conf and hooks that slurmctld sent it.
const sentFolder = "/run/slurm/conf"

// hookFiles returns the files that a Prolog or Epilog names. One without a path lies beside slurm.conf, on a
// configless node beside the one that slurmd fetched.
func (s *settings) hookFiles(files Files, pattern string) []string {
	if path.IsAbs(pattern) {
		return files.Glob(pattern)
	}
	if found := files.Glob(path.Join(sentFolder, pattern)); len(found) > 0 {
		return found
	}
	return files.Glob(path.Join(path.Dir(s.path), pattern))
}

func (e *examination) checkHookFiles(s *settings, hook hooks.Hook, value string, words []string) []Finding {
	var found []Finding
	var order, ours []string // as slurmd runs them
	for pattern := range strings.SplitSeq(value, ",") {
		files := s.hookFiles(e.site.Files, pattern)
		if len(files) == 0 {
			found = append(found, hookNoMatch.finding(append([]string{"pattern", pattern}, words...)...)...)
		}
		for _, file := range slices.Backward(files) {
			info, err := e.site.Files.Stat(file)
			switch {
			case err != nil:
				found = append(found, unknownFinding("%v", err)...)
			case info.Mode.IsRegular() && info.Mode.Perm()&0o100 == 0:
				found = append(found,
					hookMode.finding(append([]string{"file", hooks.ShellQuote(file)}, words...)...)...)
			}
			order = append(order, file)
			if text, err := e.site.Files.Read(file); err == nil && install.CallsHook(text, hook) {
				ours = append(ours, file)
			}
		}
	}
	switch {
	case len(found) > 0:
	case len(ours) == 0:
		found = append(found, hookForeign.finding(words...)...)
	default:
		found = checkHookOrder(hook, order, ours, words)
	}
	return orOK(found, "%s=%s", words[1], value)
}

// checkHookOrder looks at what runs between a job and our hook: a Prolog of ours is to be the
// last, an Epilog the first.
func checkHookOrder(hook hooks.Hook, order, ours, words []string) []Finding {
	fault, own := epilogNotFirst, ours[0]
	between := order[:slices.Index(order, own)]
	if hook == hooks.Prolog {
		fault, own = prologNotLast, ours[len(ours)-1]
		between = order[slices.Index(order, own)+1:]
	}
	if len(between) == 0 {
		return nil
	}
	return fault.finding(append([]string{
		"files", shortList(between), "file", hooks.ShellQuote(between[0]),
		"dir", hooks.ShellQuote(path.Dir(between[0])), "ours", path.Base(own),
	}, words...)...)
}
