package livetest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
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
		roles: true, waits: true, gpu: atWork,
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

// wantBegin wants a job to wait until a time. Slurm shows a start that it expects, which is some seconds
// later than the begin time once its backfill has looked at the job.
func (s *hoursSite) wantBegin(job int64, want time.Time) {
	s.Helper()
	if got := s.waitsUntil(job); got.Before(want) || got.Sub(want) > time.Minute {
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

// TestWhatWaitingSavesIsMeasuredAgainstJobsThatBeginAtOnce has equal jobs of which lots say who can wait.
func TestWhatWaitingSavesIsMeasuredAgainstJobsThatBeginAtOnce(t *testing.T) {
	slurmlab.AnySlurm(t)
	s := openHours(t)
	const each = 5
	lots := rand.New(rand.NewPCG(40, 0)).Perm(2 * each)
	var jobs [2][]int64 // those that are held out, and those that can wait
	submitted := make(map[int64]time.Time)
	for _, lot := range lots {
		comment := [...]string{"", "epplan:slack=30m"}[lot%2]
		job := s.lab.submit("sleep 5", "--gres=gpu:1", "-N1", "-t1", "--comment", comment)
		jobs[lot%2], submitted[job] = append(jobs[lot%2], job), time.Now()
	}
	var energy, cost, waited [2]float64
	for group, all := range jobs {
		for _, job := range all {
			s.ends(job, "COMPLETED")
			var list []record.Outcome
			s.eventually(fmt.Sprintf("the outcome of job %d is recorded", job), func() bool {
				var err error
				list, err = s.records("n1").OutcomesOfJob(t.Context(), "cluster", job)
				return err == nil && len(list) == 1
			})
			o := &list[0]
			price := 0.4
			if !o.Started.Before(s.soon) {
				price = 0.2
			}
			energy[group] += o.GPUEnergyJ.Or(0)
			cost[group] += price * o.GPUEnergyJ.Or(0)
			waited[group] += o.Started.Sub(submitted[job]).Seconds() / each
		}
	}
	if !(energy[0] > 0 && energy[1] > 0) {
		t.Fatalf("energies %v", energy)
	}
	paid := cost[1] / energy[1] / (cost[0] / energy[0])
	t.Logf("%d jobs that can wait pay %.3f of what %d held-out jobs pay for a joule, and start %.1f s later",
		each, paid, each, waited[1]-waited[0])
	if paid > 0.5+1e-9 {
		t.Error("the price halves")
	}
}
