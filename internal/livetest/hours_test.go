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

// hoursSite is a lab in which energy costs half from soon on, and a quarter from a later hour on.
type hoursSite struct {
	*lab

	series      string // the file with prices
	soon, night time.Time
}

// writePrices has energy be cheaper from soon on.
func (s *hoursSite) writePrices(soon time.Time) {
	s.soon, s.night = soon, soon.Add(3*time.Hour)
	var text strings.Builder
	text.WriteString("time,cost_per_kwh\n")
	for _, row := range []struct {
		at   time.Time
		cost float64
	}{{s.soon.Add(-time.Hour), 0.4}, {s.soon, 0.2}, {s.night, 0.1}, {s.night.Add(20 * time.Hour), 0.4}} {
		_, _ = fmt.Fprintf(&text, "%s,%g\n", row.at.UTC().Format(time.RFC3339), row.cost)
	}
	if err := os.WriteFile(s.series, []byte(text.String()), 0o600); err != nil {
		panic(err) // a folder of the test's own
	}
}

// openHours opens such a lab.
func openHours(t *testing.T) *hoursSite {
	t.Helper()
	s := &hoursSite{series: filepath.Join(t.TempDir(), "hours.csv")}
	s.writePrices(time.Now())
	s.lab = newLab(t, setup{
		config: enforce + "[live.pick]\nevery_s = 1\n[live.hours]\nby = \"cost\"\n" +
			fmt.Sprintf("[factors]\nseries = %q\n", s.series),
		roles: true, waits: true,
	})
	s.ends(s.lab.submit("true", "--gres=gpu:1"), "COMPLETED") // the nodes are there
	s.writePrices(time.Now().Truncate(time.Second).Add(20 * time.Second))
	s.reloadController()
	s.looksAtQueue()
	return s
}

// submit submits a job of a minute at most.
func (s *hoursSite) submit(comment string, more ...string) int64 {
	s.Helper()
	return s.lab.submit("true", append([]string{"--gres=gpu:1", "-N1", "-t1", "--comment", comment}, more...)...)
}

// wantBegin wants a job to wait until a time.
func (s *hoursSite) wantBegin(job int64, want time.Time) {
	s.Helper()
	if got := s.waitsUntil(job); !got.Equal(want) {
		s.Errorf("job %d begins %v, want %v", job, got, want)
	}
}

// TestAJobThatCanWaitBeginsWhenEnergyIsCheap, of a real Slurm: its owner undoes it at any time, and so do an
// administrator, and whoever comes after an epd that was killed. Others begin at once.
func TestAJobThatCanWaitBeginsWhenEnergyIsCheap(t *testing.T) {
	slurmlab.AnySlurm(t)
	s := openHours(t)
	const short, long = "epplan:slack=30m", "epplan:slack=5h"
	at := s.submit(short)
	s.wantBegin(at, s.soon)
	s.ends(s.submit("", "-J", "cannot wait"), "COMPLETED")
	s.ends(s.submit(short, "--begin=now"), "COMPLETED")
	s.ends(s.submit(long+",off"), "COMPLETED")
	byOwner, byUndo, array := s.submit(long), s.submit(long), s.submit(long, "--array=0-2")
	het := s.submit(long, ":", "--gres=gpu:1", "-N1", "-t1", "--comment", long)
	for _, job := range []int64{byOwner, byUndo, array, het} {
		s.wantBegin(job, s.night)
	}
	s.eventually("all are known", func() bool { return s.steered().Begin >= 4 })
	s.slurm("scontrol", "update", "jobid="+name(byOwner), "StartTime=now")
	s.ends(byOwner, "COMPLETED")
	s.within(2*patience, "the energy is cheap", func() bool { return s.state(at) == "COMPLETED" })
	if began := time.Now(); began.Before(s.soon) {
		t.Errorf("job %d began %v early", at, s.soon.Sub(began))
	}
	s.slurm("scontrol", "hold", name(byUndo))
	s.levers("--undo")
	s.ends(array, "COMPLETED")
	s.ends(het, "COMPLETED")
	held := s.slurm("squeue", "-h", "-j", name(byUndo), "-o", "%T %r")
	if !strings.HasPrefix(held, "PENDING JobHeld") {
		t.Errorf("the held job is %s", held)
	}
	s.slurm("scontrol", "release", name(byUndo))
	s.ends(byUndo, "COMPLETED")

	s.stopEPD(controller, os.Interrupt) // what was taken back is wanted again
	s.startEPD(controller)
	s.looksAtQueue()
	killed := s.submit(long)
	s.wantBegin(killed, s.night)
	s.stopEPD(controller, syscall.SIGKILL)
	if code, said := s.restoreQueue(); code != 0 {
		t.Errorf("status %d: %s", code, said)
	}
	s.ends(killed, "COMPLETED")
	s.undrained()
}
