package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
	inTime(t, 2*time.Second, func() {
		if code := run(t.Context(), []string{
			"epplan", "epilog", "--socket", filepath.Join(dir, "none"),
			"--epd", epd,
		}, nil, &said, &said); code != exitDone {
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
