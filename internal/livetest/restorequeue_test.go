package livetest_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// restoreQueue runs epd restore for the controller, and returns its exit status and what it said.
func (l *lab) restoreQueue() (code int, said string) {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), filepath.Join(l.bin, "epd"), "--role", "controller", "restore",
		"--state",
		filepath.Join(l.dir, controller))
	cmd.Env = append(cmd.Environ(), "SLURM_CONF="+l.conf)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		l.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestAKilledEPDsNiceIsTakenBackWithoutIt, of a real queue: users' own values stay, a job that is held
// stays so and keeps epd's nice until it is released, and an epd that starts again puts the queue in order
// as before.
func TestAKilledEPDsNiceIsTakenBackWithoutIt(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{
		config: enforce + "reorder = \"all\"\n[live.pick]\nevery_s = 1\npolicy = \"value\"\n", roles: true,
		waits: true,
	})
	limits := make([]string, 0, 30)
	for limit := range cap(limits) {
		limits = append(limits, name(int64(59-limit))) // by the policy the last one comes first
	}
	running, jobs := l.crowd(limits...)
	ordered := func() bool {
		order, nice := l.queued()
		return len(nice) == len(jobs)-1 && order[0] == jobs[len(jobs)-1]
	}
	l.within(patience, "the queue is in the policy's order", ordered)
	if code, said := l.restoreQueue(); code != 1 || !strings.Contains(said, "epplan levers --undo") {
		t.Errorf("beside an epd that runs: status %d: %s", code, said)
	}
	l.stopEPD(controller, syscall.SIGKILL)
	if _, nice := l.queued(); len(nice) != len(jobs)-1 {
		t.Fatalf("%d jobs have a nice after the kill, want %d", len(nice), len(jobs)-1)
	}
	user, held := jobs[3], jobs[5]
	l.slurm("scontrol", "update", "jobid="+user, "Nice=77")
	l.slurm("scontrol", "hold", held)
	code, said := l.restoreQueue()
	if _, nice := l.queued(); !slices.Equal(nice, []string{user, held}) &&
		!slices.Equal(nice, []string{held, user}) {
		t.Errorf("%v have a nice, want job %s by its user, and %s that is held\n%s", nice, user, held, said)
	}
	if code != 1 || !strings.Contains(said, "of jobs that are held") {
		t.Errorf("a job is held: status %d: %s", code, said)
	}
	t.Log(said)
	if reason := l.slurm("squeue", "-h", "-j", held, "-o", "%T %r"); !strings.HasPrefix(reason,
		"PENDING JobHeld") {
		t.Errorf("the held job is %s", reason)
	}
	l.slurm("scontrol", "release", held)
	if code, said := l.restoreQueue(); code != 0 {
		t.Errorf("the job is released: status %d: %s", code, said)
	}
	if _, nice := l.queued(); !slices.Equal(nice, []string{user}) {
		t.Errorf("%v have a nice, want job %s alone, by its user", nice, user)
	}
	l.startEPD(controller)
	l.within(patience, "the queue is in the policy's order again", ordered)
	l.slurm("scancel", name(running[0]))
	l.undrained()
}
