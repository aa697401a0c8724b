package liveplan_test

import (
	"maps"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

var start = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// planOf has jobs 1 to 4 start in turn, an hour after each other, the first at once; 5 is held out.
func planOf(at time.Time) *live.Plan {
	p := &live.Plan{Policy: "edl", At: at, Until: at.Add(time.Hour)}
	for i := range 5 {
		p.Jobs = append(p.Jobs, live.PlannedJob{
			Job: uint32(i + 1), User: "ada", Start: at.Add(time.Duration(i) * time.Hour), GPUModel: "V100", GPUs: 2,
			Setting: dvfsmodel.Setting{Core: 1087}, TimeS: 1000, EnergyJ: 2000, HeldOut: i == 4,
		})
	}
	return p
}

var all = []slurm.JobID{1, 2, 3, 4, 5, 6}

func startOf(job slurm.JobID, at time.Time) *liveplan.Start {
	return &liveplan.Start{
		Job: job, User: "ada", GPUModel: "V100", Setting: dvfsmodel.Setting{Core: 1087}, At: at,
	}
}

func TestStartsAreCountedByHowTheyKeepToThePlan(t *testing.T) {
	for how, s := range map[live.PlanKept]func(f *liveplan.InForce) *liveplan.Start{
		live.KeptAsPlanned: func(*liveplan.InForce) *liveplan.Start { return startOf(1, start.Add(time.Minute)) },
		live.KeptEarlier:   func(*liveplan.InForce) *liveplan.Start { return startOf(2, start.Add(time.Minute)) },
		live.KeptHeldOut:   func(*liveplan.InForce) *liveplan.Start { return startOf(5, start) },
		live.KeptNoPlace:   func(*liveplan.InForce) *liveplan.Start { return startOf(6, start) },
		live.KeptUnknown:   func(*liveplan.InForce) *liveplan.Start { return startOf(7, start) },
		live.KeptStale:     func(*liveplan.InForce) *liveplan.Start { return startOf(1, start.Add(2*time.Hour)) },
		live.KeptElsewhere: func(*liveplan.InForce) *liveplan.Start {
			s := startOf(1, start)
			s.GPUModel = "T4"
			return s
		},
		// Plans had it start at once for ten minutes.
		live.KeptLater: func(f *liveplan.InForce) *liveplan.Start {
			at := start
			for range 10 {
				at = at.Add(time.Minute)
				f.Put(planOf(at), all, 1)
			}
			return startOf(1, at)
		},
	} {
		f := new(liveplan.InForce)
		f.Put(planOf(start), all, 1)
		one := s(f)
		f.Started(one)
		f.Started(one) // on another node
		p := f.Plan(one.At)
		if !maps.Equal(p.Record.Starts, map[live.PlanKept]int64{how: 1}) || len(p.Recent) != 1 ||
			p.Recent[0].How != how {
			t.Errorf("%s: %v, %+v", how, p.Record.Starts, p.Recent)
		}
		planned := how != live.KeptNoPlace && how != live.KeptUnknown && how != live.KeptStale
		if (p.Recent[0].Planned != nil) != planned {
			t.Errorf("%s: planned %+v", how, p.Recent[0].Planned)
		}
		want := 1.0
		if how != live.KeptAsPlanned {
			want = 0
		}
		if got, known := p.Record.KeptShare().Get(); known == (how == live.KeptHeldOut) || known && got != want {
			t.Errorf("%s: %v as planned", how, got)
		}
	}
}

func TestRunsAtPlannedClocksAreHeldAgainstWhatTheyWereToTake(t *testing.T) {
	f := new(liveplan.InForce)
	f.Put(planOf(start), all, 1)
	f.Started(startOf(1, start))
	other := startOf(2, start)
	other.Core = 945
	f.Started(other)
	f.Put(planOf(start.Add(time.Minute)), all, 1)
	f.Ended(1, 1, live.Known(900), live.Known(1100))
	f.Ended(1, 1, live.Known(1200), live.Known(1300)) // on its other node
	f.Ended(2, 2, live.Known(900), live.Known(1e6))   // it had clocks of its own
	f.Ended(1, 1, live.Number{}, live.Known(5))
	if r := f.Plan(start).Record; r.Ended != 2 || r.PlannedJ != 2000 || r.MeasuredJ != 2400 || r.Longer != 1 ||
		r.Made != 2 {
		t.Errorf("%+v", r)
	}
}

func TestAnOrderAloneCountsNoStarts(t *testing.T) {
	f := new(liveplan.InForce)
	p := planOf(start)
	p.OrderOnly = true
	f.Put(p, all, 1)
	f.Started(startOf(1, start))
	if p := f.Plan(start); len(p.Record.Starts) > 0 || f.AdviceFor(1, 0, start) != (liveplan.Advice{}) {
		t.Errorf("%+v", p.Record)
	}
}

// TestALongJobMayStartATenthOfItsTimeOff: when a GPU comes free is known no better.
func TestALongJobMayStartATenthOfItsTimeOff(t *testing.T) {
	planned := start.Add(time.Hour)
	for off, how := range map[time.Duration]live.PlanKept{
		-990 * time.Second: live.KeptAsPlanned, 990 * time.Second: live.KeptAsPlanned,
		-1010 * time.Second: live.KeptEarlier, 1010 * time.Second: live.KeptLater,
	} {
		f := new(liveplan.InForce)
		plan := planOf(start)
		plan.Until, plan.Jobs[1].TimeS = start.Add(2*time.Hour), 10_000
		f.Put(plan, all, 1)
		f.Started(startOf(2, planned.Add(off)))
		if got := f.Plan(planned).Record.Starts; got[how] != 1 {
			t.Errorf("%v off: %v, want %s", off, got, how)
		}
	}
}

// A job that ran at a plan's clocks, was queued again and runs at others isn't one that runs at a plan's.
func TestARequeuedJobAtOtherClocksIsNoRunByAPlan(t *testing.T) {
	f := new(liveplan.InForce)
	f.Put(planOf(start), all, 1)
	f.Started(startOf(1, start))
	later := start.Add(20 * time.Minute)
	f.Put(planOf(later), all, 1)
	again := startOf(1, later)
	again.Core = 945
	f.Started(again)
	f.Ended(1, 2, live.Known(900), live.Known(1e6))
	if r := f.Plan(later).Record; r.Ended != 0 {
		t.Errorf("%+v", r)
	}
}
