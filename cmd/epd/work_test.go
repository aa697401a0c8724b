package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/gpu"
)

// runWork runs epd work on two simulated GPUs in a folder.
func runWork(ctx context.Context, dir string, flags ...string) (code int, stdout, stderr string) {
	var out, log bytes.Buffer
	args := append([]string{"epd", "work", "--gpu", "sim:2", "--state", dir, "--scatter", "0"}, flags...)
	code = run(ctx, args, &out, &log)
	return code, out.String(), log.String()
}

// simsIn returns the simulated GPUs of a state folder.
func simsIn(t *testing.T, dir string) []*gpu.Sim {
	t.Helper()
	l, err := openSim("sim:2", dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := l.Sims()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWorkKeepsTheGPUsThatItIsGivenBusyForItsTime(t *testing.T) {
	dir := t.TempDir()
	before := time.Now()
	code, stdout, stderr := runWork(t.Context(), dir, "--gpus", "1", "--seconds", "0.2")
	if code != exitDone || !strings.HasPrefix(stdout, "done after ") {
		t.Fatalf("status %d, %q, %q", code, stdout, stderr)
	}
	if took := time.Since(before); took < 200*time.Millisecond {
		t.Errorf("it took %v, want at least 0.2 s", took)
	}
	for i, s := range simsIn(t, dir) {
		ended, err := s.Ended()
		if want := i; err != nil || len(ended) != want {
			t.Errorf("GPU %d: %d works ended, want %d (%v)", i, len(ended), want, err)
		}
	}
}

// A step of srun is told its own GPUs, and those of the batch script's node or none as the job's.
func TestWorkOfAStepIsOnTheStepsGPUs(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"a batch script":         {"SLURM_JOB_GPUS": "1"},
		"a step on another node": {"SLURM_JOB_GPUS": "0", "SLURM_STEP_GPUS": "1"},
		"a step of salloc":       {"SLURM_STEP_GPUS": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range env {
				t.Setenv(variable, value)
			}
			dir := t.TempDir()
			if code, _, stderr := runWork(t.Context(), dir, "--seconds", "0.05"); code != exitDone {
				t.Fatalf("status %d, %q", code, stderr)
			}
			for i, s := range simsIn(t, dir) {
				if ended, err := s.Ended(); err != nil || len(ended) != i {
					t.Errorf("GPU %d: %d works ended, want %d (%v)", i, len(ended), i, err)
				}
			}
		})
	}
}

func TestWorkAtALowerClockTakesLonger(t *testing.T) {
	dir := t.TempDir()
	if err := simsIn(t, dir)[0].Set(gpu.CoreClock, 802); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if code, _, stderr := runWork(t.Context(), dir, "--seconds", "0.2", "--core-bound",
		"1"); code != exitDone {
		t.Fatalf("status %d, %q", code, stderr)
	}
	if took, least := time.Since(before), 340*time.Millisecond; took < least { // 0.2 s · 1380/802
		t.Errorf("at 802 of 1380 MHz it took %v, want at least %v", took, least)
	}
}

func TestWorkThatIsToldToEndLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	code, _, stderr := runWork(ctx, dir, "--gpus", "0,1", "--seconds", "3600")
	if code != exitFailed || !strings.Contains(stderr, "wasn't finished") {
		t.Errorf("status %d, %q", code, stderr)
	}
	for i, s := range simsIn(t, dir) {
		if left, err := s.Work(); err != nil || len(left) > 0 {
			t.Errorf("GPU %d: %d works left (%v)", i, len(left), err)
		}
	}
}

func TestWorkRefusesWhatItCanNotDo(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--gpus 2", `--gpus "2", want indexes from 0 to 1`},
		{"--gpus x", "want indexes"},
		{"--seconds 0", "--seconds 0, want more than 0"},
		{"--seconds NaN", "want more than 0"},
		{"--core-bound 1.5", "want 0 to 1"},
		{"--scatter -1", "want 0 to 1"},
		{"--gpu nvml", "work is for simulated GPUs"},
		{"now", `takes no arguments, got "now"`},
	} {
		code, stdout, stderr := runWork(t.Context(), t.TempDir(), strings.Fields(c.flags)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %q, %q; want %q", c.flags, code, stdout, stderr, c.want)
		}
	}
}
