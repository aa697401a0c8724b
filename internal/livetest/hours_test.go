package livetest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// waitsUntil wants a job to wait for its begin time, and returns that.
func (l *lab) waitsUntil(job int64) time.Time {
	l.Helper()
	var begin time.Time
	l.eventually(fmt.Sprintf("job %d waits for its begin time", job), func() bool {
		for line := range strings.Lines(l.slurm("squeue", "-h", "-j", name(job), "-o", "%A|%r|%S")) {
			fields := strings.Split(strings.TrimSpace(line), "|") // one of each component
			at, err := time.ParseInLocation("2006-01-02T15:04:05", fields[2], time.Local)
			if begin = at; err == nil && fields[0] == name(job) && fields[1] == "BeginTime" {
				return true
			}
		}
		return false
	})
	return begin
}

// looksAtQueue waits until the controller has looked at the queue as it is now: a look may have begun before.
func (l *lab) looksAtQueue() {
	l.Helper()
	for range 2 {
		now := time.Now()
		l.eventually("the controller looks at the queue", func() bool {
			st := l.steered()
			return st.At.After(now) && st.Trouble == ""
		})
	}
}

// TestAJobThatCanWaitBeginsWhenEnergyIsCheap, of a real Slurm: it says so at the submission, its owner undoes it
// at any time, and so do an administrator, and whoever comes after an epd that was killed. Others begin at
// once.
func TestAJobThatCanWaitBeginsWhenEnergyIsCheap(t *testing.T) {
	slurmlab.AnySlurm(t)
	series := filepath.Join(t.TempDir(), "hours.csv")
	writeHours := func(soon time.Time) (night time.Time) {
		night = soon.Add(3 * time.Hour)
		text := "time,cost_per_kwh\n"
		for _, row := range []struct {
			at   time.Time
			cost float64
		}{{soon.Add(-time.Hour), 0.4}, {soon, 0.2}, {night, 0.1}, {night.Add(20 * time.Hour), 0.4}} {
			text += fmt.Sprintf("%s,%g\n", row.at.UTC().Format(time.RFC3339), row.cost)
		}
		if err := os.WriteFile(series, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return night
	}
	writeHours(time.Now())
	l := newLab(t, setup{
		config: enforce + "[live.pick]\nevery_s = 1\n[live.hours]\nby = \"cost\"\n" +
			fmt.Sprintf("[factors]\nseries = %q\n", series),
		roles: true, waits: true,
	})
	l.ends(l.submit("true", "--gres=gpu:1"), "COMPLETED") // the nodes are there
	soon := time.Now().Truncate(time.Second).Add(20 * time.Second)
	night := writeHours(soon)
	l.reloadController()
	l.looksAtQueue()
	submit := func(comment string, more ...string) int64 {
		return l.submit("true", append([]string{"--gres=gpu:1", "-N1", "-t", "1", "--comment", comment}, more...)...)
	}
	const short, long = "epplan:slack=30m", "epplan:slack=5h"
	wantBegin := func(job int64, want time.Time) {
		t.Helper()
		if got := l.waitsUntil(job); !got.Equal(want) {
			t.Errorf("job %d begins %v, want %v", job, got, want)
		}
	}
	at := submit(short)
	wantBegin(at, soon)
	l.ends(submit("", "-J", "cannot wait"), "COMPLETED")
	l.ends(submit(short, "--begin=now"), "COMPLETED")
	l.ends(submit(long+",off"), "COMPLETED")
	byOwner, byUndo, array := submit(long), submit(long), submit(long, "--array=0-2")
	het := submit(long, ":", "--gres=gpu:1", "-N1", "-t", "1", "--comment", long)
	for _, job := range []int64{byOwner, byUndo, array, het} {
		wantBegin(job, night)
	}
	l.eventually("all are known", func() bool { return l.steered().Begin >= 5 })
	l.slurm("scontrol", "update", "jobid="+name(byOwner), "StartTime=now")
	l.ends(byOwner, "COMPLETED")
	l.within(2*patience, "the energy is cheap", func() bool { return l.state(at) == "COMPLETED" })
	if began := time.Now(); began.Before(soon) {
		t.Errorf("job %d began %v early", at, soon.Sub(began))
	}
	l.slurm("scontrol", "hold", name(byUndo))
	l.levers("--undo")
	l.ends(array, "COMPLETED")
	l.ends(het, "COMPLETED")
	if text := l.slurm("squeue", "-h", "-j", name(byUndo), "-o", "%T %r"); !strings.HasPrefix(text, "PENDING JobHeld") {
		t.Errorf("the held job is %s", text)
	}
	l.slurm("scontrol", "release", name(byUndo))
	l.ends(byUndo, "COMPLETED")

	l.stopEPD(controller, os.Interrupt) // what was taken back is wanted again
	l.startEPD(controller)
	l.looksAtQueue()
	killed := submit(long)
	wantBegin(killed, night)
	l.stopEPD(controller, syscall.SIGKILL)
	if code, said := l.restoreQueue(); code != 0 {
		t.Errorf("status %d: %s", code, said)
	}
	l.ends(killed, "COMPLETED")
	l.undrained()
}
