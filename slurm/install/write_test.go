package install_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/slurm/install"
)

// diskSite returns a site in a folder.
func diskSite(t *testing.T, dir string) install.Site {
	t.Helper()
	s := install.Site{
		Dir: dir, Socket: "/run/epplan/submit.sock", Binary: "/usr/bin/epplan", CheckLua: luac(t),
		Read: func(file string) (string, error) {
			text, err := os.ReadFile(file)
			return string(text), err
		},
	}
	if conf, err := os.ReadFile(filepath.Join(dir, "slurm.conf")); err == nil {
		s.Conf = string(conf)
	}
	if script, err := os.ReadFile(filepath.Join(dir, "job_submit.lua")); err == nil {
		s.Script, s.HasScript = string(script), true
	}
	return s
}

// tree returns every file below a folder with its text, without backups.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() && path == dir || strings.HasSuffix(path, install.BackupSuffix) {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || e.IsDir() {
			found[rel+"/"] = ""
			return err
		}
		text, err := os.ReadFile(path)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func sameTree(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// do plans and makes changes.
func do(t *testing.T, dir string, plan func(install.Site) (install.Plan, error)) int {
	t.Helper()
	s := diskSite(t, dir)
	p, err := plan(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := install.WriteSteps(p.Files(s.Conf, true)); err != nil {
		t.Fatal(err)
	}
	return len(p.Steps)
}

func newSite(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

func TestInstallingTwiceAndUndoingLeavesTheSiteAsItWas(t *testing.T) {
	crlf := strings.ReplaceAll(siteScript, "\n", "\r\n")
	for name, files := range map[string]map[string]string{
		"nothing of its own": {"slurm.conf": "ClusterName=c\n"},
		"a script": {
			"slurm.conf": "JobSubmitPlugins=lua\nPrologFlags=X11\n", "job_submit.lua": siteScript,
		},
		"a CRLF script": {"slurm.conf": "JobSubmitPlugins=lua\r\n", "job_submit.lua": crlf},
		"a Prolog":      {"slurm.conf": "Prolog=/etc/slurm/p.sh\nEpilog=/etc/slurm/e.sh", "p.sh": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newSite(t, files)
			before := tree(t, dir)
			if do(t, dir, install.PlanInstall) == 0 {
				t.Error("nothing to do")
			}
			if n := do(t, dir, install.PlanInstall); n != 0 {
				t.Errorf("%d steps are left", n)
			}
			installed := tree(t, dir)
			if len(installed) < len(before)+3 {
				t.Errorf("%q", installed)
			}
			do(t, dir, install.PlanUndo)
			do(t, dir, install.PlanUndo) // after scontrol reconfigure
			if n := do(t, dir, install.PlanUndo); n != 0 {
				t.Errorf("%d steps are left to undo", n)
			}
			sameTree(t, "undone", tree(t, dir), before)
		})
	}
}

func TestUndoingKeepsWhatTheSiteChangedSince(t *testing.T) {
	dir := newSite(t, map[string]string{
		"slurm.conf": "Prolog=/etc/slurm/p.sh\n", "job_submit.lua": siteScript,
	})
	do(t, dir, install.PlanInstall)
	edit := func(name, from, to string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("%s: %q, %v", name, text, err)
		}
		writeFile(t, filepath.Join(dir, name), strings.Replace(string(text), from, to, 1))
	}
	edit("job_submit.lua", "local limit = 10", "local limit = 20")
	edit("slurm.conf", "Prolog=", "ReturnToService=2\nProlog=")
	do(t, dir, install.PlanUndo)
	// What slurm.conf named when Slurm read it last is there until it reads it again.
	for _, name := range []string{
		"epplan-prolog.d/90-site", "epplan-prolog.d/10-epplan",
		"epplan-epilog.d/zzz-epplan",
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	do(t, dir, install.PlanUndo)
	sameTree(t, "undone", tree(t, dir), map[string]string{
		"slurm.conf":     "ReturnToService=2\nProlog=/etc/slurm/p.sh\n",
		"job_submit.lua": strings.Replace(siteScript, "10", "20", 1),
	})
	edit("job_submit.lua", "limit = 20", "limit = 30")
	do(t, dir, install.PlanInstall)
	edit("job_submit.lua", "end) -- epplan", "end); mine() -- epplan")
	s := diskSite(t, dir)
	p, err := install.PlanUndo(s)
	if err != nil || !strings.Contains(strings.Join(p.Warnings, "\n"), "a marked line was changed since") {
		t.Errorf("%q, %v", p.Warnings, err)
	}
}

func TestAScriptOfOursStaysUntilSlurmDoesNotAskForIt(t *testing.T) {
	dir := newSite(t, map[string]string{"slurm.conf": "ClusterName=c\n"})
	do(t, dir, install.PlanInstall)
	do(t, dir, install.PlanUndo)
	text, err := os.ReadFile(filepath.Join(dir, "job_submit.lua"))
	if err != nil || strings.Contains(string(text), "EPPLAN") || luac(t)("", string(text)) != nil {
		t.Errorf("%s, %v", text, err)
	}
	do(t, dir, install.PlanUndo)
	sameTree(t, "undone", tree(t, dir), map[string]string{"slurm.conf": "ClusterName=c\n"})
}

func TestALinkedScriptStaysALinkAndKeepsItsOwner(t *testing.T) {
	dir := newSite(t, map[string]string{
		"slurm.conf": "JobSubmitPlugins=lua\n", "shared/real.lua": siteScript,
	})
	target := filepath.Join(dir, "shared", "real.lua")
	if err := os.Chmod(target, 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(target, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("shared/real.lua", filepath.Join(dir, "job_submit.lua")); err != nil {
		t.Fatal(err)
	}
	do(t, dir, install.PlanInstall)
	if to, err := os.Readlink(filepath.Join(dir, "job_submit.lua")); err != nil || to != "shared/real.lua" {
		t.Error(to, err)
	}
	text, err := os.ReadFile(target)
	if err != nil || !strings.Contains(string(text), "EPPLAN") {
		t.Errorf("%s, %v", text, err)
	}
	after, err := os.Stat(target)
	if err != nil || after.Mode() != before.Mode() || owner(after) != owner(before) {
		t.Errorf("%v %v, was %v %v", after.Mode(), owner(after), before.Mode(), owner(before))
	}
	if kept, err := os.ReadFile(target + install.BackupSuffix); err != nil || string(kept) != siteScript {
		t.Errorf("%s, %v", kept, err)
	}
	dangling := newSite(t, map[string]string{"slurm.conf": ""})
	if err := os.Symlink("nowhere", filepath.Join(dangling, "job_submit.lua")); err != nil {
		t.Fatal(err)
	}
	s := diskSite(t, dangling)
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	before2 := len(entries(t, dangling))
	if err := install.WriteSteps(p.Files(s.Conf, true)); err == nil || len(entries(t, dangling)) != before2 {
		t.Errorf("%v, left %v", err, entries(t, dangling))
	}
}

func entries(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Whichever file can't be written, all others are as they were.
func TestAChangeThatFailsTakesTheOthersBack(t *testing.T) {
	files := map[string]string{"slurm.conf": "Prolog=/p.sh\n", "job_submit.lua": siteScript}
	all := newSite(t, files)
	s := diskSite(t, all)
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Files(s.Conf, true) {
		dir := newSite(t, files)
		s := diskSite(t, dir)
		p, err := install.PlanInstall(s)
		if err != nil {
			t.Fatal(err)
		}
		steps := p.Files(s.Conf, true)
		before := tree(t, dir)
		steps[i].Before += "another text" // as if it was changed meanwhile
		if err := install.WriteSteps(steps); err == nil {
			t.Errorf("step %d was made", i)
		}
		sameTree(t, steps[i].File, tree(t, dir), before)
	}
	dir := newSite(t, files)
	do(t, dir, install.PlanInstall)
	s = diskSite(t, dir)
	p, err = install.PlanUndo(s)
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	for i := range p.Steps {
		steps := p.Files(s.Conf, true)
		steps[i].Before += "another text"
		if err := install.WriteSteps(steps); err == nil {
			t.Errorf("step %d was undone", i)
		}
		sameTree(t, steps[i].File, tree(t, dir), before)
	}
}

func TestAFolderThatCannotBeWrittenStaysAsItIs(t *testing.T) {
	dir := newSite(t, map[string]string{"slurm.conf": "ClusterName=c\n", "job_submit.lua": siteScript})
	s := diskSite(t, dir)
	p, err := install.PlanInstall(s)
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	for path, mode := range map[string]os.FileMode{dir: 0o555, filepath.Dir(dir): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Geteuid() == 0 {
			_ = unix.Setfsuid(65534) // of this thread; root could write everywhere
		}
		failed <- install.WriteSteps(p.Files(s.Conf, true))
	}()
	if err := <-failed; !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	sameTree(t, "not written", tree(t, dir), before)
}
