package livetest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is for what waits for Slurm's minutes, and for epd's sweep after
// them.
const patience = 5 * time.Minute

// Ends that take minutes are played side by side in one lab, a node for each.
func TestRunsEndHoweverTheirJobsDo(t *testing.T) {
	l := newLab(t, setup{config: enforce, nodes: 5, waits: true, conf: []string{"SlurmdTimeout=30"}})
	for what, play := range map[string]func(*lab){
		"by their time limit":              timeOut,
		"by the failure of their node":     failNode,
		"when slurmd dies in their Prolog": killSlurmdInProlog,
		"while epd is away":                endWithoutEPD,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			play(l.on(t))
		})
	}
}

func timeOut(l *lab) {
	job := l.lock("n2", 1, "-t", "1")
	l.within(patience, "the job is out of time", func() bool { return l.state(job) == "TIMEOUT" })
	l.recordedBy("n2", 1)
	l.free("n2")
	l.undrained("n2")
	l.once("n2", job, "TIMEOUT")
}

// No Epilog comes from a node that is dead: its epd finds that Slurm has given
// the job up.
func failNode(l *lab) {
	job := l.lock("n3", 1, "--no-requeue")
	l.stopDaemon("slurmd.n3", syscall.SIGKILL)
	l.within(patience, "the node's failure is the job's", func() bool { return l.state(job) == "NODE_FAIL" })
	l.within(patience, "the run is ended", func() bool { return len(l.runs("n3")) == 0 })
	l.recordedBy("n3", 1)
	l.free("n3")
	l.once("n3", job, "NODE_FAIL")

	// The node comes back: what its slurmd still has to say doubles nothing.
	l.startDaemon("slurmd.n3")
	l.within(patience, "the node is back", func() bool {
		return l.slurm("sinfo", "-h", "-n", "n3", "-p", "main", "-o", "%T") == "idle"
	})
	l.once("n3", job, "NODE_FAIL")
	again := l.submit("true", "--gres=gpu:1", "-w", "n3", fixed)
	l.ends(again, "COMPLETED")
	l.free("n3")
}

// A slurmd that comes back runs neither the Prolog again nor an Epilog.
func killSlurmdInProlog(l *lab) {
	release := l.holdProlog("n4")
	job := l.lock("n4", 1, "--no-requeue")
	l.stopDaemon("slurmd.n4", syscall.SIGKILL)
	release()
	l.startDaemon("slurmd.n4")
	l.slurm("scancel", name(job))
	l.within(patience, "the job is given up", func() bool {
		s := l.state(job)
		return s != "RUNNING" && s != "COMPLETING"
	})
	l.freed("n4")
}

func endWithoutEPD(l *lab) {
	job := l.lock("n5", 1)
	l.stopEPD("n5", syscall.SIGKILL)
	l.completes(job)
	l.free("n5") // by epd restore
	l.startEPD("n5")
	l.within(patience, "the run is ended", func() bool { return len(l.runs("n5")) == 0 })
	l.recordedBy("n5", 1)
	l.undrained("n5")
	if o := l.once("n5", job, "COMPLETED"); o.TimeS.Or(-1) != -1 {
		l.Errorf("took %v s, though nobody saw its end", o.TimeS)
	}
}

func TestAJobThatIsCancelledBeforeItRunsLeavesNothing(t *testing.T) {
	l := startLab(t, enforce)
	job := l.submit("sleep 60", "--gres=gpu:1", "-w", "n1", "--hold", fixed)
	l.slurm("scancel", name(job))
	l.ends(job, "CANCELLED")
	if runs := l.says("n1").Runs; len(runs) > 0 {
		t.Errorf("runs %+v", runs)
	}

	// In its Prolog: that goes on to its end, then comes the Epilog.
	release := l.holdProlog("n2")
	job = l.lock("n2", 1)
	l.slurm("scancel", name(job))
	release()
	l.ends(job, "CANCELLED")
	l.recordedBy("n2", 1)
	l.free("n1", "n2")
	l.undrained()
	l.once("n2", job, "CANCELLED")
	if list := l.recorded("n1", job); len(list) > 0 {
		t.Errorf("outcomes %+v of a job that never ran", list)
	}
}

func TestSlurmdMayBeRestartedUnderARun(t *testing.T) {
	l := startLab(t, enforce)
	began := time.Now()
	job := l.lock("n1", 2)
	locked := time.Now()
	l.stopDaemon("slurmd.n1", syscall.SIGTERM)
	if got := l.hardware("n1"); len(got) != 2 {
		t.Errorf("locked %v while slurmd is away, want two GPUs", got)
	}
	l.startDaemon("slurmd.n1")
	<-time.After(3 * time.Second)
	least := time.Since(locked).Seconds()
	l.completes(job)
	most := time.Since(began).Seconds()
	l.recordedBy("n1", 1)
	l.free("n1")
	l.undrained()
	if o := l.once("n1", job, "COMPLETED"); o.TimeS.Or(0) < least-1 || o.TimeS.Or(0) > most {
		t.Errorf("took %v s, want %.1f to %.1f", o.TimeS, least, most)
	}
}

func TestSlurmctldMayBeKilledInAProlog(t *testing.T) {
	l := startLab(t, enforce)
	release := l.holdProlog("n1")
	job := l.lock("n1", 1)
	// A slurmctld that forgets a job's start drains its node by itself: it
	// writes down what it knows with the next change.
	changed := time.Now()
	l.submit("true", "-H")
	l.eventually("slurmctld has written down that the job runs", func() bool {
		info, err := os.Stat(filepath.Join(l.dir, "slurm/state/job_state"))
		return err == nil && info.ModTime().After(changed)
	})
	l.stopDaemon("slurmctld", syscall.SIGKILL)
	l.startDaemon("slurmctld")
	l.eventually("slurmctld is back", l.pings)
	release()
	l.completes(job)
	l.recordedBy("n1", 1)
	l.free("n1")
	l.undrained()
	l.once("n1", job, "COMPLETED")
}

// seen returns what hooks of a job were told.
func (l *lab) seen(kind string, job int64) string {
	var lines strings.Builder
	for line := range strings.Lines(l.read(kind + ".seen")) {
		if strings.HasPrefix(line, name(job)+" on ") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// A run that is put back into the queue is cut off: only the second one did the
// job's work.
func TestARequeuedJobIsTwoRuns(t *testing.T) {
	l := newLab(t, setup{config: enforce, brief: true})
	job := l.lock("n1", 1, "--requeue")
	l.slurm("scontrol", "requeue", name(job))
	l.eventually("the clocks are given back", func() bool { return len(l.locked("n1")) == 0 })
	l.eventually("the job waits", func() bool { return l.state(job) == "PENDING" })
	// It starts again when the credential of its last start has expired: slurmd would
	// run no Prolog for it before.
	l.eventually("a GPU is locked again", func() bool { return len(l.locked("n1")) == 1 })
	l.completes(job)
	l.within(patience, "both runs are recorded", func() bool {
		return len(l.recorded("n1", job)) == 2 && l.says("n1").Unrecorded == 0
	})
	l.free("n1")
	l.undrained()
	// The first run's Prolog was told of no restart, and its Epilog of one.
	if seen := l.seen("prolog", job); !strings.Contains(seen, "restarts=0.") ||
		!strings.Contains(seen, "restarts=1.") {
		t.Errorf("Prologs: %s", seen)
	}
	if seen := l.seen("epilog", job); seen == "" || strings.Contains(seen, "restarts=0.") {
		t.Errorf("Epilogs: %s", seen)
	}
	l.stopEPD("n1", os.Interrupt)
	list := l.recorded("n1", job)
	if len(list) != 2 || list[0].RunID == list[1].RunID || list[0].Unmatched || list[1].Unmatched {
		t.Fatalf("outcomes %+v, want two of different runs", list)
	}
	first, second := list[0], list[1]
	if second.Started.Before(first.Started) {
		first, second = second, first
	}
	if first.ExitState == "COMPLETED" || second.ExitState != "COMPLETED" {
		t.Errorf("ended as %q and %q, want the first not to have completed", first.ExitState,
			second.ExitState)
	}
}
