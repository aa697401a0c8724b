package control

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Slack of what a run may come to by Slurm's times, and by the power of its GPUs: Slurm has a job end before
// it is killed and before its Epilogs; a V100 draws up to 300 W, and of unknown ones of that name three times
// as much counts.
const (
	forgedSlack = 150.0 + 10
	forgedWatts = 900.0
)

// totals are what all runs come to, as the overview's sums have it.
type totals struct{ runs, seconds, joules float64 }

func (r *rig) totals() (sum totals) {
	r.t.Helper()
	days, err := r.store.RunDays(context.Background(), "alpha", time.Unix(0, 0))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range days {
		sum.runs += float64(days[i].Runs)
		sum.seconds += days[i].TimeS
		sum.joules += days[i].GPUEnergyJ
	}
	return sum
}

// onN2 returns a job that Slurm starts on n2, of the workload of [rig.job].
func (r *rig) onN2(s *ctld, id slurm.JobID) *slurm.Job {
	r.t.Helper()
	j := r.job(id, func(j *slurm.Job) { j.NodeList, j.Nodes = "n2", []string{"n2"} })
	r.clock.move(time.Second)
	j.Start = r.clock.read()
	s.set(j)
	r.Jobs.Observe([]slurm.Job{j})
	return &j
}

// askOn2 has the agent of n2 ask about a run.
func (r *rig) askOn2(id slurm.JobID, run string, gpus int) (live.Decision, error) {
	q := ask(id)
	q.Node, q.RunID, q.GPUs = "n2", run, gpus
	return r.Decide(context.Background(), q)
}

// uuids returns those of GPUs that a node makes up.
func uuids(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("GPU-%d", i))
	}
	return all
}

// What a job can have come to is said by Slurm, not by its node.
func TestAForgedFirstOutcomeCountsForNoMoreThanItsJobCanHaveTaken(t *testing.T) {
	r, s := newSlurmRig(t, false)
	j := r.onN2(s, 7)
	if _, err := r.askOn2(7, "forged", 1); err != nil {
		t.Fatal(err)
	}
	r.clock.move(2 * time.Second)
	s.change(7, func(j *slurm.Job) { j.State.Base, j.End = slurm.Completed, r.clock.read() })
	r.record(&record.Outcome{
		RunID: "forged", JobID: 7, Node: "n2", GPUs: uuids(64), ExitState: record.Completed,
		Submitted: start.AddDate(-26, 0, 0), Started: start.AddDate(-26, 0, 0), Ended: r.clock.read(),
		Setting: dvfsmodel.Setting{Core: 802, Mem: 877}, TimeS: live.Known(8.2e8),
		GPUEnergyJ: live.Known(3e13), GPUSource: record.Counter,
	}, store.Stored)
	sum := r.totals()
	if sum.runs != 1 || sum.seconds > 2+forgedSlack || sum.joules > forgedWatts*(2+forgedSlack) {
		t.Errorf("a job of 2 s on one GPU comes to %+v", sum)
	}
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	o := &all[0]
	if len(o.GPUs) != 1 || !o.Submitted.Equal(j.Submit) || o.Started.Before(j.Start.Add(-record.ClockSkew)) ||
		o.Setting != (dvfsmodel.Setting{}) || o.Workload != "" || o.Implausible.Setting.Core != 802 {
		t.Errorf("recorded is %+v", o)
	}
	if r.status().Implausible != 1 {
		t.Error("nobody is told")
	}
}

// Whatever a job's GPUs on a node, its decisions and outcomes are of those that Slurm gave it.
func TestANodeThatNamesMoreGPUsThanSlurmGaveIsLeftAtDefaultClocks(t *testing.T) {
	r, s := newSlurmRig(t, false)
	r.onN2(s, 7)
	d, err := r.askOn2(7, "forged", 8)
	if err != nil || d.Apply || d.Workload != r.decide(ask(8)).Workload && d.Workload == "" ||
		d.Reason != "the node says that the job has 8 GPUs there, Slurm gave it 1: default clocks" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestARequeuedJobHasOneOutcomeThatCountsForEachOfItsStarts(t *testing.T) {
	for _, decided := range []bool{true, false} {
		t.Run(fmt.Sprintf("decided %v", decided), func(t *testing.T) {
			r, s := newSlurmRig(t, false)
			r.onN2(s, 7)
			const many = 40
			for i := range many {
				if _, err := r.askOn2(7, fmt.Sprint("run-", i), 1); err != nil && decided {
					t.Fatal(err)
				}
				if !decided {
					break
				}
			}
			r.flush()
			r.clock.move(3 * time.Second)
			s.change(7, func(j *slurm.Job) {
				j.State.Base, j.Restarts, j.Submit, j.Start = slurm.Pending, 1, r.clock.read(), time.Time{}
			})
			r.clock.move(10 * time.Second)
			for i := range many {
				_, err := r.Record(context.Background(), &record.Outcome{
					RunID: fmt.Sprint("run-", i), JobID: 7, Node: "n2", GPUs: uuids(1),
					Submitted: r.clock.read().Add(time.Duration(i) * time.Second),
					Started:   start.AddDate(-1, 0, 0), Ended: r.clock.read(), Restart: i,
					TimeS: live.Known(3e7), GPUEnergyJ: live.Known(2e10), GPUSource: record.Counter,
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if sum := r.totals(); sum.runs != 1 || sum.seconds > 4+forgedSlack {
				t.Errorf("%d outcomes of one start count for %+v", many, sum)
			}
		})
	}
}

// poisoned has n1 run a workload three times and n2 report runs of it as a forger does, and returns what is
// decided for n1 after each.
func poisoned(
	t *testing.T, forge func(k int, d live.Decision, o *record.Outcome),
) (r *rig, before live.Decision, after []live.Decision) {
	t.Helper()
	r, s := newSlurmRig(t, false)
	next := slurm.JobID(100)
	honest := func() live.Decision {
		next++
		j := r.job(next, nil)
		j.Start, j.NodeList = r.clock.read(), "n1"
		s.set(j)
		d := r.decide(ask(next))
		o := r.ran(d, ask(next).RunID, coreBound())
		s.change(next, func(j *slurm.Job) { j.State.Base, j.End = slurm.Completed, r.clock.read() })
		r.record(o, store.Stored)
		return d
	}
	for range 3 {
		honest()
	}
	before = honest()
	for k := range 5 {
		next++
		r.onN2(s, next)
		d, err := r.askOn2(next, fmt.Sprint("forged-", k), 1)
		if err != nil {
			t.Fatal(err)
		}
		o := r.ran(d, fmt.Sprint("forged-", k), coreBound())
		forge(k, d, o)
		s.change(next, func(j *slurm.Job) { j.State.Base, j.End = slurm.Completed, r.clock.read() })
		r.record(o, store.Stored)
		after = append(after, honest(), honest())
	}
	return r, before, after
}

// By its own runs n1's jobs take at most max_slowdown times as long, whatever n2 says; a core-bound workload
// takes 1.7 times as long at 802 MHz.
func TestRunsThatOneNodeMakesUpChooseNoClocksOfOthers(t *testing.T) {
	for name, forge := range map[string]func(k int, d live.Decision, o *record.Outcome){
		"clocks that weren't decided": func(_ int, _ live.Decision, o *record.Outcome) {
			o.Setting = dvfsmodel.Setting{Core: 802, Mem: 877}
			o.TimeS, o.GPUEnergyJ = live.Known(300), live.Known(20_000)
		},
		"throttled to other clocks": func(_ int, _ live.Decision, o *record.Outcome) {
			o.WorkClock.CoreMHz, o.ThrottledS = live.Known(802), map[string]float64{"power-cap": 500}
			o.TimeS, o.GPUEnergyJ = live.Known(300), live.Known(20_000)
		},
		"much shorter": func(_ int, _ live.Decision, o *record.Outcome) {
			o.TimeS, o.GPUEnergyJ = live.Known(100), live.Known(3000)
		},
		"throttled, with the times of others": func(k int, _ live.Decision, o *record.Outcome) {
			core := []float64{802, 945, 1087, 1237, 802}[k]
			o.WorkClock.CoreMHz, o.ThrottledS = live.Known(core), map[string]float64{"power-cap": 500}
			o.GPUEnergyJ = live.Known(o.GPUEnergyJ.Or(0) / 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, before, after := poisoned(t, forge)
			for i, d := range after {
				slower := 1.0
				if d.Apply && d.Core > 0 {
					slower = coreBound().Time(float64(d.Core/base.Core), 1) / coreBound().Time(1, 1)
				}
				// Reports within what is plausible may keep others at default clocks, and no more.
				if before.Apply != d.Apply && name != "throttled, with the times of others" || slower > 1.5 ||
					d.ModelVersion == 0 {
					t.Errorf("job %d of n1 after forged runs of n2: %s (%v MHz); before: %s", i, d.Reason, d.Core,
						before.Reason)
				}
			}
		})
	}
}

// What is found out later is taken out, and the rest is fitted again.
func TestTheRunsOfANodeAreForgottenAndTheRestIsFittedAgain(t *testing.T) {
	r, before, _ := poisoned(t, func(_ int, _ live.Decision, o *record.Outcome) {
		o.TimeS, o.GPUEnergyJ = live.Known(100), live.Known(3000)
	})
	page, err := r.Queries.RecordedRuns(t.Context(), query.ForEPD(), &query.RunQuery{Node: "n2"})
	if err != nil || len(page.Runs) != 5 {
		t.Fatalf("%+v, %v", page, err)
	}
	var ids epdapi.RunIDs
	for i := range page.Runs {
		ids.Runs = append(ids.Runs, page.Runs[i].ID)
	}
	if _, err := r.Queries.Forget(t.Context(), query.ForEPD(), &ids); err != nil {
		t.Fatal(err)
	}
	m := r.learner.Model(r.key()).Model
	if m == nil || m.Left != "" || len(m.Without) != 1 || m.Without["n1"] != nil {
		t.Fatalf("after n2's runs are gone: %+v", m)
	}
	r.job(500, nil)
	if d := r.decide(ask(500)); d.Apply != before.Apply {
		t.Errorf("%s; before: %s", d.Reason, before.Reason)
	}
}

// What ended years ago, as a node says, has nobody look through years of accounting.
func TestAccountingIsAskedForOneJobAndNotFromYearsAgo(t *testing.T) {
	for name, tc := range map[string]struct {
		decided bool
		ended   time.Duration // before now
		all     bool
	}{
		"nobody decided":            {false, 26 * 365 * 24 * time.Hour, false},
		"nobody decided, just now":  {false, 0, false},
		"decided, in 2000":          {true, 26 * 365 * 24 * time.Hour, true},
		"decided, to end in a year": {true, -365 * 24 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			var since time.Time
			var only []slurm.JobID
			asked := 0
			s := &ctld{}
			r := newRig(t, func(o *Options) {
				o.Resolve = s.resolve
				o.Account = func(_ context.Context, at time.Time, ids ...slurm.JobID) (slurm.Accounting, error) {
					asked, since, only = asked+1, at, ids
					return slurm.Accounting{}, nil
				}
			})
			r.onN2(s, 7)
			if tc.decided {
				if _, err := r.askOn2(7, "r", 1); err != nil {
					t.Fatal(err)
				}
			}
			s.purge(7)
			now := r.clock.read()
			_, _ = r.Record(t.Context(), &record.Outcome{
				RunID: "r", JobID: 7, Node: "n2", GPUs: uuids(1), Started: now.Add(-tc.ended - time.Hour),
				Ended: now.Add(-tc.ended), TimeS: live.Known(3),
			})
			if asked != 1 || (len(only) == 0) != tc.all || since.Before(now.AddDate(0, 0, -61)) || since.After(now) ||
				tc.all && since.Before(now.Add(-time.Hour)) {
				t.Errorf("asked %d times, for %v since %s; it is %s", asked, only, since, now)
			}
		})
	}
}

// forger is a node that has munge's key, and the jobs that Slurm has on it.
type forger struct {
	*rig
	s      *ctld
	starts []span // of its jobs, as Slurm has them
	jobs   map[slurm.JobID]*slurm.Job
	next   slurm.JobID
	runs   int
}

// span is the time of a start of a job; zero end: it runs.
type span struct {
	job        slurm.JobID
	from, till time.Time
}

func (f *forger) last(id slurm.JobID) *span {
	for i := len(f.starts) - 1; i >= 0; i-- {
		if f.starts[i].job == id {
			return &f.starts[i]
		}
	}
	return nil
}

func (f *forger) pick(t *rapid.T) *slurm.Job {
	id := slurm.JobID(rapid.IntRange(1000, int(f.next)).Draw(t, "job"))
	return f.jobs[id]
}

func (f *forger) begin(*rapid.T) {
	f.next++
	f.jobs[f.next] = f.onN2(f.s, f.next)
	f.starts = append(f.starts, span{job: f.next, from: f.clock.read()})
}

func (f *forger) wait(t *rapid.T) {
	f.clock.move(time.Duration(rapid.IntRange(1, 900).Draw(t, "seconds")) * time.Second)
}

func (f *forger) end(t *rapid.T) {
	if j := f.pick(t); j != nil && j.State.Base == slurm.Running {
		states := []slurm.State{slurm.Completed, slurm.Failed, slurm.Timeout}
		j.State.Base = rapid.SampledFrom(states).Draw(t, "state")
		j.End = f.clock.read()
		f.last(j.ID).till = j.End
		f.s.set(*j)
	}
}

func (f *forger) requeue(t *rapid.T) {
	if j := f.pick(t); j != nil && j.State.Base == slurm.Running {
		f.last(j.ID).till = f.clock.read()
		j.State.Base, j.Submit, j.Start, j.Restarts = slurm.Pending, f.clock.read(), time.Time{}, j.Restarts+1
		f.s.set(*j)
	}
}

func (f *forger) again(t *rapid.T) {
	if j := f.pick(t); j != nil && j.State.Base == slurm.Pending {
		f.clock.move(2 * time.Minute)
		j.State.Base, j.Start = slurm.Running, f.clock.read()
		f.starts = append(f.starts, span{job: j.ID, from: j.Start})
		f.s.set(*j)
	}
}

func (f *forger) purge(t *rapid.T) {
	if j := f.pick(t); j != nil && j.State.Ended() {
		f.s.purge(j.ID)
	}
}

func (f *forger) ask(t *rapid.T) {
	f.runs++
	id := slurm.JobID(rapid.IntRange(1000, int(f.next)+2).Draw(t, "job"))
	run := fmt.Sprint("f", rapid.IntRange(0, f.runs).Draw(t, "run"))
	_, _ = f.askOn2(id, run, rapid.IntRange(0, 64).Draw(t, "GPUs"))
}

// send sends an outcome whose every field may be made up.
func (f *forger) send(t *rapid.T) {
	now := f.clock.read()
	at := func(what string) time.Time {
		back := rapid.SampledFrom([]time.Duration{
			0, time.Second, time.Minute, time.Hour, 24 * time.Hour, 26 * 365 * 24 * time.Hour, -time.Hour,
		})
		return now.Add(-back.Draw(t, what))
	}
	number := func(what string, most float64) live.Number {
		return live.Known(math.Pow(10, rapid.Float64Range(-1, most).Draw(t, what)))
	}
	o := &record.Outcome{
		RunID: fmt.Sprint("f", rapid.IntRange(0, f.runs+1).Draw(t, "run")),
		JobID: int64(rapid.IntRange(1000, int(f.next)+2).Draw(t, "job")), Node: "n2",
		GPUs:     uuids(rapid.IntRange(0, 64).Draw(t, "GPUs")),
		GPUModel: rapid.SampledFrom([]string{"V100", "V100", "H100"}).Draw(t, "model"),
		Arm:      rapid.SampledFrom([]live.Arm{live.ArmTreated, live.ArmHeldOut}).Draw(t, "arm"),
		Workload: "made-up", ExitState: record.Completed, Restart: rapid.IntRange(0, 3).Draw(t, "restart"),
		Submitted: at("submitted"), Started: at("started"), Ended: at("ended"),
		TimeS: number("s", 9), GPUEnergyJ: number("J", 13), GPUSource: record.Counter,
		MeanPowerW: number("W", 4),
	}
	if rapid.Bool().Draw(t, "locked") {
		o.Setting.Core = rapid.SampledFrom([]dvfsmodel.MHz{802, 1087, 1380}).Draw(t, "at")
	}
	if rapid.Bool().Draw(t, "adapted") {
		o.Slowdown = live.Known(1.1)
	}
	if rapid.Bool().Draw(t, "throttled") {
		o.ThrottledS, o.WorkClock.CoreMHz = map[string]float64{"power-cap": 1e6}, live.Known(810)
	}
	_, _ = f.Record(context.Background(), o)
	f.clock.move(20 * time.Second)
}

// check wants totals of no more than n2's jobs can have taken by what Slurm had of them.
func (f *forger) check(t *rapid.T, honest totals) {
	f.clock.move(2 * time.Minute)
	sum := f.totals()
	most := totals{runs: honest.runs, seconds: honest.seconds, joules: honest.joules}
	for _, s := range f.starts {
		till := s.till
		if till.IsZero() {
			till = f.clock.read()
		}
		seconds := till.Sub(s.from).Seconds() + forgedSlack
		most.runs, most.seconds, most.joules = most.runs+1, most.seconds+seconds, most.joules+forgedWatts*seconds
	}
	if sum.runs > most.runs || sum.seconds > most.seconds || sum.joules > most.joules {
		t.Fatalf("the totals are %+v, with what Slurm had on n2 they can be %+v", sum, most)
	}
}

// Whatever a node makes up of its own jobs, in whatever order: its outcomes count for no more than Slurm had
// there, once for each start of a job; and what others run at is no slower than their bounds allow by their
// own runs.
func TestWhateverANodeMakesUpCountsForNoMoreThanItsJobs(t *testing.T) {
	storetest.NeedSQLite(t)
	dir := quickDir(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		s := &ctld{}
		f := &forger{
			s: s, jobs: make(map[slurm.JobID]*slurm.Job), next: 1000,
			rig: openRig(t, filepath.Join(dir, fmt.Sprint(n, ".db")), &hand{now: start}, enforceAll,
				func(o *Options) { o.Resolve, o.OnStrange = s.resolve, func(*ImplausibleReport) {} }),
		}
		for id := range slurm.JobID(4) {
			j := f.job(id+1, nil)
			j.Start, j.NodeList = f.clock.read(), "n1"
			s.set(j)
			o := f.ran(f.decide(ask(id+1)), ask(id+1).RunID, coreBound())
			s.change(id+1, func(j *slurm.Job) { j.State.Base, j.End = slurm.Completed, f.clock.read() })
			f.record(o, store.Stored)
		}
		defer f.close()
		honest := f.totals()
		f.begin(rt)
		steps := map[string]func(*rapid.T){
			"begin": f.begin, "wait": f.wait, "end": f.end, "requeue": f.requeue, "again": f.again, "purge": f.purge,
			"ask": f.ask, "ask anew": f.ask, "send": f.send, "send more": f.send, "send most": f.send,
		}
		rt.Repeat(steps)
		f.flush()
		f.check(rt, honest)
		f.job(900, nil)
		d := f.decide(ask(900))
		if d.Apply && d.Core > 0 {
			slower := coreBound().Time(float64(d.Core/base.Core), 1) / coreBound().Time(1, 1)
			if slower > 1.5 { // max_slowdown
				rt.Fatalf("n1 runs %.2f times as long: %s", slower, d.Reason)
			}
		}
	})
}
