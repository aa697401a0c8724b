package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

func TestAnEpilogLeavesNothingRunningWhenItsTimeIsOver(t *testing.T) {
	t.Setenv("SLURM_SCRIPT_CONTEXT", "epilog_slurmd")
	for name, value := range map[string]string{
		"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1",
		"SLURM_JOB_UID": "1000", "SLURM_JOB_GPUS": "0",
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	epd, note := filepath.Join(dir, "epd"), filepath.Join(dir, "pid")
	script := "#!/bin/sh\necho $$ >" + note + ".new; mv " + note + ".new " + note + "\nexec sleep 30\n"
	if err := os.WriteFile(epd, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	commandtest.InTime(t, 2*time.Second, func() {
		if code := run(t.Context(), []string{
			"epplan", "epilog", "--socket", filepath.Join(dir, "none"),
			"--epd", epd,
		}, nil, &said, &said); code != terminal.ExitDone {
			t.Errorf("status %d: %s", code, &said)
		}
	})
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatalf("epd restore wasn't run: %v: %s", err, &said)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// It has slurmd's pipe for standard error: slurmd would wait for it.
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("epd restore runs still")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestAHookThatIsToldToEndEndsWithStatusZero(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		socket := filepath.Join(t.TempDir(), "s")
		epd, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer epd.Close() //nolint:errcheck // the test ends
		hook := exec.CommandContext(t.Context(), "epplan", "prolog", "--socket", socket)
		hook.Env = append(os.Environ(), "SLURM_SCRIPT_CONTEXT=prolog_slurmd", "SLURM_JOB_ID=7",
			"SLURMD_NODENAME=n1", "SLURM_JOB_UID=1000", "SLURM_JOB_USER=u", "SLURM_JOB_GPUS=0")
		if err := hook.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := epd.Accept(); err != nil { // it asks, and gets no answer
			t.Fatal(err)
		}
		if err := hook.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := hook.Wait(); err != nil {
			t.Errorf("%v: %v", signal, err)
		}
	}
}
