package livetest_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tries is how often something is begun that a machine that is busy with tests may
// be too slow for.
const tries = 10

// known submits until epd has Slurm's word on a job when it decides: on a machine
// that is busy with tests that may take longer than a Prolog waits.
func (l *lab) known(submit func() int64) int64 {
	l.Helper()
	for range tries {
		job := submit()
		if !l.late(job) {
			return job
		}
		l.completes(job)
	}
	l.Fatal("Slurm doesn't answer in time")
	return 0
}

// late waits for what is decided of a job, and reports whether the machine was too busy
// for it: somebody who was asked didn't answer in a Prolog's time.
func (l *lab) late(job int64) bool {
	l.Helper()
	line := ""
	l.eventually("the job is decided", func() bool {
		_, rest, ok := strings.Cut(l.read("prolog.log"), "job "+name(job)+": ")
		line, _, _ = strings.Cut(rest, "\n")
		return ok
	})
	for _, why := range []string{"the job isn't known", "no decision", "the store doesn't answer"} {
		if strings.Contains(line, why) {
			l.Logf("job %d, another one is tried: %s", job, line)
			return true
		}
	}
	return false
}

// told is the folder in which jobs are told to end, by their numbers, and say that
// they did.
const told = "told"

// untilTold returns the work of a job that goes on until it is told to end, by
// [lab.finish], or the lab is gone: the same for each job of a lab.
func (l *lab) untilTold() string {
	return "d=" + filepath.Join(l.dir, told) + "; : >$d/$SLURM_JOB_ID.began; until [ -e $d/$SLURM_JOB_ID " +
		"]; do [ -e $d ] || exit; sleep 0.3; done; : >$d/$SLURM_JOB_ID.ended"
}

// finish tells a job to end, if it's one that wants to be told.
func (l *lab) finish(job int64) {
	l.Helper()
	l.write(filepath.Join(told, name(job)), "", 0o644)
}

// began reports whether a job of that kind is at work.
func (l *lab) began(job int64) bool {
	_, err := os.Stat(filepath.Join(l.dir, told, name(job)+".began"))
	return err == nil
}

// finished reports whether a job's work is done, whatever Slurm knows.
func (l *lab) finished(job int64) bool {
	_, err := os.Stat(filepath.Join(l.dir, told, name(job)+".ended"))
	return err == nil
}

// completes has a job end, and waits until it has.
func (l *lab) completes(job int64) {
	l.Helper()
	l.finish(job)
	l.ends(job, "COMPLETED")
}

// lock submits a job with clocks of its own, which goes on until it is told to end,
// and waits until they are locked on a number of GPUs.
func (l *lab) lock(node string, gpus int, args ...string) int64 {
	l.Helper()
	return l.lockBy(node, gpus, func() int64 {
		return l.submit(l.untilTold(), append(args, "--gres=gpu:"+strconv.Itoa(gpus), "-w", node, fixed)...)
	})
}

// lockBy submits until a job's clocks are locked on a number of GPUs. On a machine
// that is busy with tests Slurm's answer or a driver's call may take longer than is
// waited for: then the job is at default clocks, and another is tried.
func (l *lab) lockBy(node string, gpus int, submit func() int64) int64 {
	l.Helper()
	for range tries {
		job := submit()
		l.decided(job)
		if len(l.hardware(node)) == gpus {
			return job
		}
		l.dismiss(job, node)
	}
	l.Fatal("nothing is ever locked")
	return 0
}

// locks submits until GPUs of nodes are locked as wanted when all Prologs of a
// submission, which are so many, are done: they are held meanwhile.
func (l *lab) locks(want map[string]int, prologs int, submit func() int64) (job int64) {
	l.Helper()
	nodes := slices.Sorted(maps.Keys(want))
	for range tries {
		done := true
		l.held(func() {
			before := len(strings.Fields(l.read("prolog.done")))
			job = submit()
			l.eventually("the Prologs are done", func() bool {
				return len(strings.Fields(l.read("prolog.done"))) >= before+prologs
			})
			for node, gpus := range want {
				done = done && len(l.hardware(node)) == gpus
			}
		}, nodes...)
		if done {
			return job
		}
		l.dismiss(job, nodes...)
	}
	l.Fatal("nothing is ever locked as wanted")
	return 0
}

// dismiss ends a job that was too early for a busy machine, and waits until nodes
// have no runs; where their Prologs are held it lets them go for so long.
func (l *lab) dismiss(job int64, nodes ...string) {
	l.Helper()
	l.Logf("job %d is at default clocks, another one is tried: %s", job, l.read("prolog.log"))
	l.finish(job)
	for _, node := range nodes {
		gate := filepath.Join(l.dir, "prolog."+node)
		if os.Remove(gate) == nil {
			defer l.write("prolog."+node, "", 0o644)
		}
	}
	for _, node := range nodes {
		l.eventually("the job is gone from "+node, func() bool { return len(l.runs(node)) == 0 })
		l.recordedBy(node, 0)
	}
}

// decided waits until our part of a job's Prolog is over.
func (l *lab) decided(job int64) {
	l.Helper()
	l.eventually("the Prolog is done", func() bool {
		return slices.Contains(strings.Fields(l.read("prolog.done")), name(job))
	})
}

// models waits until epd has made so many models of outcomes; jobs that were begun
// again may have led to more.
func (l *lab) models(node string, models int64) {
	l.Helper()
	l.eventually("a model is made", func() bool { return l.says(node).Totals.Models >= models })
}

// lowered submits a job of a workload that has a model until one is locked below
// the default clock, for the reasons that lock and known have: each that was
// tried is waited for. It returns that job and how many were tried.
func (l *lab) lowered(node string, submit func() int64) (job int64, tried int) {
	l.Helper()
	for tried = range tries {
		low := false
		l.held(func() {
			job = submit()
			l.decided(job)
			for _, core := range l.hardware(node) {
				low = core < 1380
			}
		}, node)
		if low {
			return job, tried + 1
		}
		l.completes(job)
		l.recordedBy(node, 0)
	}
	l.Fatal("nothing is ever locked below the default")
	return 0, 0
}
