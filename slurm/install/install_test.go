package install_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/install"
)

// luac checks a text with Lua 5.1's compiler, which the test needs.
func luac(t *testing.T) func(name, text string) error {
	t.Helper()
	binary, err := exec.LookPath("luac5.1")
	shareddata.Need(t, err == nil, "luac5.1 isn't installed: run scripts/test-packages.sh")
	return func(name, text string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, "-p", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %s", name, strings.TrimSpace(string(out)))
		}
		return nil
	}
}

const siteScript = `-- the site's own
local limit = 10
function slurm_job_submit(jd, parts, who) -- checks accounts
  if jd.account == nil then return slurm.ERROR end
  return slurm.SUCCESS
end
function slurm_job_modify(jd, rec, parts, who) return slurm.SUCCESS end
return slurm.SUCCESS
`

func site(check func(name, text string) error) install.Site {
	return install.Site{
		Dir: "/etc/slurm", Socket: "/run/epplan/epd.sock", Binary: "/usr/bin/epplan", CheckLua: check,
		Conf: "ClusterName=c\n",
	}
}

func stepFor(t *testing.T, p install.Plan, file, add string) install.Step {
	t.Helper()
	for _, s := range p.Steps {
		if s.File == file && strings.Contains(s.Add, add) {
			return s
		}
	}
	t.Fatalf("no step for %s %s in %+v", file, add, p.Steps)
	return install.Step{}
}

func TestTheSitesScriptGainsOneLineAndKeepsTheRest(t *testing.T) {
	s := site(luac(t))
	s.Script, s.HasScript = siteScript, true
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	step := stepFor(t, p, "/etc/slurm/job_submit.lua", "EPPLAN")
	if step.New || strings.Replace(step.Text, step.Add+"\n", "", 1) != siteScript ||
		strings.Count(step.Text, "EPPLAN.submit(jd, who)") != 1 || step.Undo == "" {
		t.Errorf("%+v", step)
	}
	s.Script = step.Text
	again, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range again.Steps {
		if st.File == "/etc/slurm/job_submit.lua" {
			t.Error("the line is added twice")
		}
	}
}

func TestAScriptThatDoesNotLoadOrCannotBeReadStopsThePlan(t *testing.T) {
	check := luac(t)
	for name, script := range map[string]string{
		"syntax error":  "function slurm_job_submit(a, b, c)\n  if\nend\n",
		"no function":   "return slurm.SUCCESS\n",
		"two functions": siteScript + "",
		"one line":      "function slurm_job_submit(a, b, c) return 0 end\nreturn 0\n",
		"varargs":       "function slurm_job_submit(...)\n return 0\nend\n",
	} {
		s := site(check)
		s.Script, s.HasScript = script, true
		if name == "two functions" {
			s.Script = "function slurm_job_submit(a, b, c)\nend\nfunction slurm_job_submit(a, b, c)\nend\n"
		}
		if p, err := install.PlanInstall(s); err == nil {
			t.Errorf("%s: %+v", name, p.Steps)
		}
	}
	s := site(func(string, string) error { return errors.New("no") })
	if _, err := install.PlanInstall(s); err == nil {
		t.Error("planned although nothing loads")
	}
	s = site(check)
	s.Socket = `/run/x"; os.execute("reboot")--`
	if _, err := install.PlanInstall(s); !errors.Is(err, slurm.ErrInvalid) {
		t.Error(err)
	}
}

func TestSlurmConfIsExtendedAndNothingIsReplacedUnnamed(t *testing.T) {
	s := site(func(string, string) error { return nil })
	s.Conf = "JobSubmitPlugins=defaults # ours\nProlog=/etc/slurm/prolog.sh\nEpilog=/etc/slurm/epilog.d/*\n" +
		"PrologFlags=X11,Alloc\n"
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	conf := "/etc/slurm/slurm.conf"
	if st := stepFor(t, p, conf, "JobSubmitPlugins"); st.Add != "JobSubmitPlugins=defaults,lua" ||
		st.Drop != "JobSubmitPlugins=defaults" || !strings.Contains(st.Undo, "line 1") {
		t.Errorf("%+v", st)
	}
	if st := stepFor(t, p, conf, "Prolog="); st.Add != "Prolog=/etc/slurm/epplan-prolog.d/*" ||
		st.Drop != "Prolog=/etc/slurm/prolog.sh" {
		t.Errorf("%+v", st)
	}
	if st := stepFor(t, p, "/etc/slurm/epplan-prolog.d/90-site", ""); !strings.Contains(st.Text,
		"exec /etc/slurm/prolog.sh") {
		t.Errorf("%+v", st)
	}
	if st := stepFor(t, p, "/etc/slurm/epilog.d/zzz-epplan", ""); !strings.HasSuffix(st.Text, "exit 0\n") ||
		!strings.Contains(st.Text, "/usr/bin/epplan epilog <") {
		t.Errorf("%+v", st)
	}
	for _, st := range p.Steps {
		if strings.HasPrefix(st.Add, "PrologFlags") || strings.HasPrefix(st.Add, "Epilog=") || st.Undo == "" {
			t.Errorf("%+v", st)
		}
	}
}

// From 23.11 on each of several lines counts, in their order: our Prolog comes after the last of
// them, our Epilog before the first.
func TestOfSeveralHooksOursAreTheNextToTheJob(t *testing.T) {
	s := site(func(string, string) error { return nil })
	s.Conf = "Prolog=/srv/first.sh\nProlog=/srv/last.sh\nEpilog=/srv/first.sh\nEpilog=/srv/last.sh\n" +
		"PrologFlags=RunInJob\n"
	p, err := install.PlanInstall(s)
	if err != nil || p.ConfBlocked != "" || len(p.Warnings) != 2 || !strings.Contains(p.Warnings[0], "2 lines") {
		t.Fatalf("%v %q %q", err, p.ConfBlocked, p.Warnings)
	}
	for hook, own := range map[string]string{"prolog": "/srv/last.sh", "epilog": "/srv/first.sh"} {
		st := stepFor(t, p, "/etc/slurm/epplan-"+hook+".d/90-site", "")
		if !strings.Contains(st.Text, "exec "+own+"\n") {
			t.Errorf("%s: %+v", hook, st)
		}
	}
	lines := strings.Split(p.Conf, "\n")
	if lines[0] != "Prolog=/srv/first.sh" ||
		!strings.HasPrefix(lines[1], "Prolog=/etc/slurm/epplan-prolog.d/* ") ||
		!strings.HasPrefix(lines[2], "Epilog=/etc/slurm/epplan-epilog.d/* ") || lines[3] != "Epilog=/srv/last.sh" {
		t.Errorf("%q", lines)
	}
	conf := s.Conf
	s.Conf = p.Conf
	if again, err := install.PlanInstall(s); err != nil || again.Conf != p.Conf {
		t.Errorf("a second edit: %q, %v", again.Conf, err)
	}
	if back, err := install.PlanUndo(s); err != nil || back.Conf != conf {
		t.Errorf("%q came back as %q, %v", conf, back.Conf, err)
	}
}

func TestTheEpilogIsToldWhereTheJournalIs(t *testing.T) {
	s := site(func(string, string) error { return nil })
	s.Hooks, s.Journal = "/run/other.sock", "/srv/epd/journal"
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	epilog := stepFor(t, p, "/etc/slurm/epplan-epilog.d/zzz-epplan", "").Text
	if !strings.Contains(epilog, "/usr/bin/epplan epilog --socket /run/other.sock --journal "+
		"/srv/epd/journal </dev/null") || install.HookJournal(epilog) != s.Journal {
		t.Errorf("Epilog:\n%s", epilog)
	}
	if prolog := stepFor(t, p, "/etc/slurm/epplan-prolog.d/10-epplan",
		"").Text; strings.Contains(prolog, "journal") {
		t.Errorf("Prolog:\n%s", prolog)
	}
	for text, want := range map[string]string{
		"exec epplan epilog": "", "epplan epilog --journal=/a/b": "/a/b",
		"# --journal /no\nepplan epilog --journal '/a b' </dev/null": "/a b",
	} {
		if got := install.HookJournal(text); got != want {
			t.Errorf("%q: journal %q, want %q", text, got, want)
		}
	}
	s.Journal = "/srv/x; reboot"
	if _, err := install.PlanInstall(s); !errors.Is(err, slurm.ErrInvalid) {
		t.Error(err)
	}
}

// sites are a site with no Epilog of its own, and one with a folder of them.
var sites = map[string]string{
	"ClusterName=c\n":                "/etc/slurm/epplan-epilog.d/",
	"Epilog=/etc/slurm/epilog.d/*\n": "/etc/slurm/epilog.d/",
}

// Slurm runs the last name of a folder first: ours is behind digits, capitals and words.
func TestOurEpilogRunsFirstAndOurPrologLast(t *testing.T) {
	for conf, folder := range sites {
		s := site(func(string, string) error { return nil })
		s.Conf = conf
		p, err := install.PlanInstall(s)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"90-site", "99-health", "CHECK", "epilog.sh", "slurm.epilog.clean", "zz-last"}
		for _, step := range p.Steps {
			if dir, name := path.Split(step.File); dir == folder && name != "90-site" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if last := names[len(names)-1]; len(names) != 7 || !strings.HasSuffix(last, "-epplan") {
			t.Errorf("%s: %q run in the reverse order", folder, names)
		}
	}
	s := site(func(string, string) error { return nil })
	s.Conf = "Prolog=/etc/slurm/prolog.sh\nEpilog=/etc/slurm/epilog.sh\n"
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	for hook, ours := range map[string]string{"prolog": "10-epplan", "epilog": "zzz-epplan"} {
		stepFor(t, p, "/etc/slurm/epplan-"+hook+".d/"+ours, "")
		own := stepFor(t, p, "/etc/slurm/epplan-"+hook+".d/90-site", "")
		if want := map[string]string{
			"prolog": "first",
			"epilog": "after ours",
		}[hook]; !strings.Contains(own.Why, want) {
			t.Errorf("%s: %q", hook, own.Why)
		}
	}
}

func TestACRLFScriptKeepsItsLineEnds(t *testing.T) {
	s := site(luac(t))
	s.Script, s.HasScript = strings.ReplaceAll(strings.Replace(siteScript, " -- checks accounts", "", 1),
		"\n", "\r\n"), true
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	text := stepFor(t, p, "/etc/slurm/job_submit.lua", "EPPLAN").Text
	if strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		t.Errorf("%q", text)
	}
	before := s.Script
	s.Script = text
	back, err := install.PlanUndo(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := stepFor(t, back, "/etc/slurm/job_submit.lua", "").Text; got != before {
		t.Errorf("%q, want %q", got, before)
	}
}

func TestAFunctionInACommentIsNoPlaceForTheLine(t *testing.T) {
	s := site(luac(t))
	s.HasScript = true
	for _, script := range []string{
		"--[[\nfunction slurm_job_submit(a, b, c)\nend\n]]\nslurm_job_submit = require 'x'\n",
		"local s = [[\nfunction slurm_job_submit(a, b, c)\n]]\nreturn 0\n",
	} {
		s.Script = script
		if p, err := install.PlanInstall(s); err == nil || !strings.Contains(err.Error(), "comment") {
			t.Errorf("%+v, %v", p.Steps, err)
		}
	}
}

func TestAFileOfOursThatWasChangedIsInTheWay(t *testing.T) {
	s := site(func(string, string) error { return nil })
	files := map[string]string{}
	s.Read = func(file string) (string, error) {
		if text, ok := files[file]; ok {
			return text, nil
		}
		return "", fs.ErrNotExist
	}
	first, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range first.Steps {
		if step.New {
			files[step.File] = step.Text
		}
	}
	s.Conf, s.Script, s.HasScript = first.Conf, files["/etc/slurm/job_submit.lua"], true
	if again, err := install.PlanInstall(s); err != nil || len(again.Steps) != 0 {
		t.Errorf("the second plan has %+v, %v", again.Steps, err)
	}
	s.Socket = "/run/other.sock" // an intact file is replaced
	other, err := install.PlanInstall(s)
	if err != nil || len(other.Steps) != 1 || other.Steps[0].Before != files["/etc/slurm/epplan.lua"] {
		t.Errorf("%+v, %v", other.Steps, err)
	}
	files["/etc/slurm/epplan-prolog.d/10-epplan"] += "# mine\n"
	if _, err := install.PlanInstall(s); !errors.Is(err, slurm.ErrInvalid) {
		t.Errorf("a file that was changed: %v", err)
	}
	back, err := install.PlanUndo(s)
	if err != nil {
		t.Fatal(err)
	}
	s.Conf = back.Conf // slurm.conf is read again
	back, err = install.PlanUndo(s)
	if err != nil ||
		!strings.Contains(strings.Join(back.Warnings, "\n"), "epplan-prolog.d/10-epplan was changed since") {
		t.Errorf("%q, %v", back.Warnings, err)
	}
}

// Edits of slurm.conf and taking them back, with what others did between.
func TestSlurmConfIsEditedInMarkedLinesAndRestored(t *testing.T) {
	s := site(func(string, string) error { return nil })
	for name, conf := range map[string]string{
		"nothing there": "ClusterName=c\n", "no line end": "ClusterName=c", "empty": "",
		"all there": "JobSubmitPlugins=defaults # ours\nProlog=/etc/slurm/prolog.sh\n" +
			"Epilog=/etc/slurm/e.sh\nPrologFlags=X11\n",
		"CRLF":         "ClusterName=c\r\nPrologFlags=X11\r\n",
		"null":         "JobSubmitPlugins=(null)\nprologflags=Contain\n",
		"odd spelling": "  JOBSUBMITPLUGINS=a,b\n# Prolog=/x\n",
	} {
		s.Conf = conf
		p, err := install.PlanInstall(s)
		if err != nil || p.ConfBlocked != "" {
			t.Fatalf("%s: %v %s", name, err, p.ConfBlocked)
		}
		s.Conf = p.Conf
		again, err := install.PlanInstall(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range again.Steps {
			if strings.HasSuffix(step.File, "slurm.conf") {
				t.Errorf("%s: a second edit of\n%s%+v", name, p.Conf, step)
			}
		}
		back, err := install.PlanUndo(s)
		if err != nil || back.Conf != conf {
			t.Errorf("%s: %q came back as %q, %v", name, conf, back.Conf, err)
		}
		mine := "NodeName=later\n" + strings.Replace(p.Conf, "PrologFlags=Alloc ",
			"PrologFlags=Alloc,X11 ", 1)
		s.Conf = mine
		if back, err = install.PlanUndo(s); err != nil || !strings.HasPrefix(back.Conf, "NodeName=later\n") ||
			strings.Contains(back.Conf, "epplan") || strings.Contains(back.Conf, "Alloc") {
			t.Errorf("%s: %q became %q, %v", name, mine, back.Conf, err)
		}
		if strings.Contains(mine, "PrologFlags=Alloc,X11 ") &&
			(!strings.Contains(back.Conf, "\nPrologFlags=X11") || len(back.Warnings) == 0) {
			t.Errorf("%s: the site's own flag went: %q", name, back.Conf)
		}
	}
}

// Slurm takes such a line, and of two of one name the last: one more would end
// the site's own hook.
func TestASettingWithSpacesBeforeItsSignIsTheSitesOwn(t *testing.T) {
	s := site(func(string, string) error { return nil })
	conf := "Prolog = /etc/slurm/prolog.sh\n  Epilog\t=\t/etc/slurm/e.sh # ours\n" +
		"JobSubmitPlugins  =defaults\nPrologFlags = X11\n"
	s.Conf = conf
	p, err := install.PlanInstall(s)
	if err != nil || p.ConfBlocked != "" || len(p.Warnings) > 0 {
		t.Fatalf("%v %q %q", err, p.ConfBlocked, p.Warnings)
	}
	for _, hook := range []string{"prolog.sh", "e.sh"} {
		folder := map[string]string{"prolog.sh": "prolog", "e.sh": "epilog"}[hook]
		if st := stepFor(t, p, "/etc/slurm/epplan-"+folder+".d/90-site", ""); !strings.Contains(st.Text,
			"exec /etc/slurm/"+hook+"\n") {
			t.Errorf("%+v", st)
		}
	}
	if lines := strings.Split(p.Conf, "\n"); len(lines) != 5 ||
		!strings.HasPrefix(lines[2], "JobSubmitPlugins=defaults,lua ") ||
		!strings.HasPrefix(lines[3], "PrologFlags=X11,Alloc ") {
		t.Errorf("%q", p.Conf)
	}
	s.Conf = p.Conf
	if back, err := install.PlanUndo(s); err != nil || back.Conf != conf {
		t.Errorf("%q came back as %q, %v", conf, back.Conf, err)
	}
	s.Conf = "INCLUDE\tother.conf\n"
	if p, err = install.PlanInstall(s); err != nil || p.ConfBlocked == "" {
		t.Errorf("%v, %q", err, p.Conf)
	}
}

func TestWhatCannotBeEditedSafelyIsLeftToPeople(t *testing.T) {
	s := site(func(string, string) error { return nil })
	for name, conf := range map[string]string{
		"continued": "PrologFlags=X11\\\n\n",
		"include":   "Include other.conf\n",
	} {
		s.Conf = conf
		if p, err := install.PlanInstall(s); err != nil || p.ConfBlocked == "" || p.Conf != conf {
			t.Errorf("%s: %q %q %v", name, p.ConfBlocked, p.Conf, err)
		}
	}
	for name, conf := range map[string]string{
		"two lines":    "PrologFlags=X11,\\\nContain\n",
		"two settings": "PrologFlags=X11 Prolog=/x\n", "a shell's text": "Prolog=/x -v\n",
	} {
		s.Conf = conf
		if p, err := install.PlanInstall(s); err != nil || len(p.Warnings) == 0 ||
			!strings.HasPrefix(p.Conf, conf) {
			t.Errorf("%s: %q %q %v", name, p.Warnings, p.Conf, err)
		}
	}
}
