// Package install says what epplan puts into a site's Slurm, file by file, and how
// all of it is taken back: the hook in Lua, its line in job_submit.lua, a further
// Prolog and Epilog, and settings of slurm.conf. It recognizes what an earlier
// installation left, and writes files all or none.
package install

import (
	_ "embed" // the hook's source
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/slurmconf"
)

//go:embed epplan.lua
var luaSource string

// Site is what an installation starts from.
type Site struct {
	Dir     string // folder of slurm.conf, absolute, such as /etc/slurm
	Socket  string // the socket at which job_submit is answered, absolute
	Binary  string // epplan, absolute
	Hooks   string // the socket at which the node's epd answers hooks; "" is epplan's default
	Journal string // the folder of epd's journal; "" is epplan's default
	Summary string // where nodes ask for a job's summary, HOST:PORT or a socket; "": jobs get none
	Popen   bool   // where lua-socket is missing, Binary asks
	// Configless has the hooks lie beside slurm.conf and named without a path: slurmctld sends
	// them to nodes that fetch slurm.conf (Slurm 23.11).
	Configless bool
	Conf       string // the text of slurm.conf
	Script     string // the text of job_submit.lua
	HasScript  bool   // it exists
	// Read gives a file that an earlier installation may have left; nil: there is none.
	Read func(file string) (string, error)
	// CheckLua reads a script as Lua would, such as luac -p; its error
	// stops the plan. From 23.02 a script that does not load ends slurmctld at reconfigure.
	CheckLua func(name, text string) error
	// Unchecked says that CheckLua accepts everything.
	Unchecked bool
}

// Step is one change to make, whole: nothing is to be guessed.
type Step struct {
	File   string // what to write
	Text   string // its new text; "" for a setting in slurm.conf
	Before string // its old text, where it is not new
	Mode   uint32 // permissions of a new file
	New    bool   // the file is ours: undo removes it
	Remove bool   // the file goes
	Add    string // the line that is added to somebody else's file
	Drop   string // the line that goes, or that Add takes the place of, or ""
	Beside bool   // Add is a line of its own beside the site's: above its Epilogs, below its Prologs
	Why    string
	Undo   string // how to take it back
}

// Plan is what to put where. Nothing of the site is overwritten: its own
// script gains one line, its own Prolog stays and runs before ours, its own Epilog
// after ours.
type Plan struct {
	Steps    []Step
	Warnings []string
	// Conf is slurm.conf with its settings changed, each marked in a comment;
	// the same as it was where there is nothing to change.
	Conf string
	// Configless reports that slurmctld sends the hooks to nodes with slurm.conf.
	Configless bool
	// ConfBlocked says why slurm.conf is to be changed by hand only; "": it need not be.
	ConfBlocked string
}

var (
	luaName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plainPath = regexp.MustCompile(`^/[A-Za-z0-9._/-]+$`)
)

// LuaModule gives epplan.lua for a folder, a socket, and a program that asks
// where lua-socket is missing; "" for none.
func LuaModule(dir, socket, program string) (string, error) {
	for _, p := range []string{dir, socket, program} {
		if p != "" || p != program {
			if err := validPath(p); err != nil {
				return "", err
			}
		}
	}
	return withSignature("--",
		strings.NewReplacer("@DIR@", dir, "@SOCKET@", socket, "@PROGRAM@", program).Replace(luaSource)), nil
}

// validPath accepts paths that need no quoting in Lua, shell and slurm.conf.
func validPath(p string) error {
	if !plainPath.MatchString(p) || path.Clean(p) != p {
		return fmt.Errorf("path %q: want an absolute one of plain letters: %w", slurm.Printable(p, 80),
			slurm.ErrInvalid)
	}
	return nil
}

// validate checks what goes into files.
func (s *Site) validate() error {
	if s.CheckLua == nil {
		return fmt.Errorf("install: want a Lua check: %w", slurm.ErrInvalid)
	}
	for _, p := range []string{s.Hooks, s.Journal} {
		if p == "" {
			continue
		}
		if err := validPath(p); err != nil {
			return err
		}
	}
	return errors.Join(validPath(s.Dir), validPath(s.Binary))
}

// PlanInstall says exactly what to add and how to undo it. A second plan on the
// result has no steps.
func PlanInstall(s Site) (Plan, error) {
	if err := s.validate(); err != nil {
		return Plan{}, err
	}
	program := ""
	if s.Popen {
		program = s.Binary
	}
	module, err := LuaModule(s.Dir, s.Socket, program)
	if err != nil {
		return Plan{}, err
	}
	if err := s.CheckLua("epplan.lua", module); err != nil {
		return Plan{}, fmt.Errorf("epplan.lua: %w", err)
	}
	p := Plan{}
	if err := s.planOwnFile(&p, Step{
		File: path.Join(s.Dir, "epplan.lua"), Text: module, Mode: 0o644,
		Why: "the hook",
	}); err != nil {
		return Plan{}, err
	}
	script, err := s.scriptStep()
	if err != nil {
		return Plan{}, err
	}
	p.Steps = append(p.Steps, script...)
	settings := siteSettings(s.Conf)
	if p.Configless, err = s.isConfigless(&p, settings); err != nil {
		return Plan{}, err
	}
	for _, hook := range []hooks.Hook{hooks.Prolog, hooks.Epilog} {
		if p.Configless {
			if err := s.planSentHook(&p, hook); err != nil {
				return Plan{}, err
			}
			continue
		}
		if n := len(slurmconf.HookLines(s.Conf, string(hook))); n > 1 {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s is set on %d lines, all of which count from Slurm "+
				"23.11 on, and only the last before", hookKey(hook), n))
		}
		if err := s.planHook(&p, hook, settings); err != nil {
			return Plan{}, err
		}
	}
	if err := s.planSummary(&p, settings); err != nil {
		return Plan{}, err
	}
	s.planListSetting(&p, settings, "JobSubmitPlugins", "lua", "slurmctld calls job_submit.lua")
	s.planListSetting(&p, settings, "PrologFlags", "Alloc",
		"the Prolog runs at the allocation, before any step")
	if _, ok := settings["include"]; ok {
		p.Warnings = append(p.Warnings, "slurm.conf includes other files, which were not read")
	}
	p.Conf, p.ConfBlocked = editConf(s.Conf, p.Steps)
	return p, nil
}

// planOwnFile plans a file of ours, unless it is there as it should be. One that is
// not ours, or was changed since, is in the way.
func (s *Site) planOwnFile(p *Plan, step Step) error {
	old, err := s.readFile(step.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case old == step.Text:
		return nil
	case !isIntact(old):
		return fmt.Errorf("%s is in the way: it is not as epplan install wrote it; move it away: %w",
			step.File, slurm.ErrInvalid)
	default:
		step.Before = old
	}
	step.New = true
	if step.Undo == "" {
		step.Undo = "rm " + step.File
	}
	p.Steps = append(p.Steps, step)
	return nil
}

func (s *Site) readFile(file string) (string, error) {
	if s.Read == nil {
		return "", fs.ErrNotExist
	}
	return s.Read(file)
}

// hookScript returns the site's further Prolog or Epilog.
func (s *Site) hookScript(hook hooks.Hook) string {
	command := s.Binary + " " + string(hook)
	if s.Hooks != "" {
		command += " --socket " + s.Hooks
	}
	if s.Journal != "" && hook == hooks.Epilog {
		command += " --journal " + s.Journal
	}
	return withSignature("#", strings.NewReplacer("@COMMAND@", command, "@HOOK@",
		hookKey(hook)).Replace(hookText))
}

// hookText is the script. A hook of epplan's ends with another status than 0 only if it can't do anything: it
// isn't there (127), can't be run (126), or was killed (124, 137). The file of the last word is claimed by
// its time, so that of several hooks at once one speaks. Slurm kills what a hook leaves behind, so that the
// word is waited for.
const hookText = `#!/bin/sh
# epplan: ends with 0 within 2.7 s whatever happens; a node must not be drained by it.
/usr/bin/timeout -k 0.2 2 @COMMAND@ </dev/null >/dev/null 2>&1 && exit 0
# It couldn't be run, or was killed: syslog has it, at most once a minute for each kind of hook.
{
	status=$? said=/run/epplan-@HOOK@-failed last=0
	read -r last <"$said"
	case $last in '' | *[!0-9]*) last=0 ;; esac
	now=$(/bin/date +%s)
	passed=$((now - last)) # less than nothing if the clock was set back
	if { [ $passed -ge 60 ] || [ $passed -lt 0 ]; } && (set -C && : >"$said.$last"); then
		echo "$now" >"$said-$$" && /bin/mv -f "$said-$$" "$said" # nobody reads half of it
		for claim in "$said".*; do [ "$claim" = "$said.$last" ] || /bin/rm -f "$claim"; done
		/usr/bin/timeout -k 0.1 0.3 /usr/bin/logger -t epplan -p daemon.err \
			"@HOOK@ of job ${SLURM_JOB_ID:-?} didn't reach epd: @COMMAND@ ended with status $status (127: not there, 126: not to be run, 124 or 137: too slow)"
	fi
} </dev/null >/dev/null 2>&1
exit 0
`

// hookFolder returns where our Prolog or Epilog is when the site has no folder of its own.
func (s *Site) hookFolder(hook hooks.Hook) string {
	return path.Join(s.Dir, "epplan-"+string(hook)+".d")
}

// siteHookName is the name of the site's own hook in a folder of ours.
const siteHookName = "90-site"

// hookFileName returns the name of our file in a folder of hooks. Slurm runs the last name
// of a folder first. Our Prolog is to come last, when the job is about to begin, and our
// Epilog first, when it has just ended: what a site does before or after isn't the job's.
func hookFileName(hook hooks.Hook) string {
	if hook == hooks.Epilog {
		return "zzz-epplan"
	}
	return "10-epplan"
}

// planHook adds our hook as one more file. Slurm runs all files of a pattern.
func (s *Site) planHook(p *Plan, hook hooks.Hook, settings map[string]slurmconf.Line) error {
	key := hookKey(hook)
	old := settings[string(hook)]
	pattern := s.hookFolder(hook) + "/*"
	if old.Text != "" && !plainPath.MatchString(strings.TrimSuffix(old.Text, "/*")) {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("%s=%s: add %s %s to it by hand", hook, slurm.Printable(old.Text, 200), s.Binary, hook))
		return nil
	}
	if dir, ok := strings.CutSuffix(old.Text, "/*"); ok && old.Text != pattern {
		return s.planOwnHook(p, hook, dir, "the site's "+key+" is a folder already (on every node)")
	}
	if err := s.planOwnHook(p, hook, s.hookFolder(hook), "our "+key+" (on every node)"); err != nil ||
		old.Text == pattern {
		return err
	}
	setting := Step{
		File: s.confFile(), Add: key + "=" + pattern,
		Why:  "every file of the folder runs, the last name first",
		Undo: "delete " + key + "=" + pattern + ", then scontrol reconfigure",
	}
	if old.Text != "" {
		own := Step{
			File: path.Join(s.hookFolder(hook), siteHookName),
			Text: withSignature("#", "#!/bin/sh\nexec "+old.Text+"\n"), Mode: 0o755,
			Why: "the site's own " + key + " keeps running, " + map[hooks.Hook]string{
				hooks.Prolog: "first", hooks.Epilog: "after ours",
			}[hook] + " (on every node)",
		}
		if err := s.planOwnFile(p, own); err != nil {
			return err
		}
		setting.Drop = key + "=" + old.Text
		setting.Undo = fmt.Sprintf("put %s back on line %d, then scontrol reconfigure",
			setting.Drop, old.Number)
	}
	p.Steps = append(p.Steps, setting)
	return nil
}

// planOwnHook plans our hook in a folder.
func (s *Site) planOwnHook(p *Plan, hook hooks.Hook, dir, why string) error {
	return s.planOwnFile(p, Step{
		File: path.Join(dir, hookFileName(hook)), Text: s.hookScript(hook), Mode: 0o755, Why: why,
	})
}

// hookKey returns the setting of slurm.conf that names a hook.
func hookKey(hook hooks.Hook) string { return strings.ToUpper(string(hook[:1])) + string(hook[1:]) }

func (s *Site) confFile() string { return path.Join(s.Dir, "slurm.conf") }
