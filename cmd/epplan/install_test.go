package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// Scripts are read by whichever Lua there is; each one that this machine has must
// tell one that loads from one that doesn't, and run neither.
func TestEveryLuaTellsAScriptThatLoadsFromOneThatDoesNot(t *testing.T) {
	path := os.Getenv("PATH")
	found := 0
	for _, name := range luaPrograms {
		t.Setenv("PATH", path)
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		found++
		t.Run(name, func(t *testing.T) { loadsWith(t, name, program) })
	}
	shareddata.Need(t, found > 0, "there is no Lua: run scripts/test-packages.sh")
}

// loadsWith installs with one Lua in PATH and nothing else.
func loadsWith(t *testing.T, name, program string) {
	t.Helper()
	dir, alone := t.TempDir(), t.TempDir()
	if err := os.Symlink(program, filepath.Join(alone, name)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", alone)
	ran := filepath.Join(dir, "ran")
	good := "function slurm_job_submit(a, b, c)\n  return slurm.SUCCESS\nend\nio.open('" + ran + "', 'w')\n"
	bad := "function slurm_job_submit(a, b, c)\n  if\nend\n"
	for script, status := range map[string]int{good: terminal.ExitDone, bad: terminal.ExitFailed} {
		for file, text := range map[string]string{"slurm.conf": "ClusterName=c\n", "job_submit.lua": script} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, _, said := inProcess(t, "install", "slurm", "--dry-run", "--dir", dir)
		if code != status || strings.Contains(said, "near") == (status == terminal.ExitDone) {
			t.Errorf("status %d, want %d: %s", code, status, said)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the script was run")
	}
}
