package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// decidedRun stores a decision for a clock and the outcome of its run.
func decidedRun(
	t *testing.T, s *store.Store, i int, core dvfsmodel.MHz, holdOut, joules float64,
	change func(*record.Outcome),
) {
	t.Helper()
	d := decision(i)
	d.Setting.Core, d.HoldOut, d.DefaultJ, d.Arm = core, live.Known(holdOut), live.Known(200), live.ArmTreated
	id, err := s.PutDecision(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	o := outcome(3 * i) // one workload
	o.DecisionID, o.GPUEnergyJ, o.JobID = id, live.Known(joules), d.JobID
	if change != nil {
		change(o)
	}
	put(t, s, o, store.Stored)
}

// both checks strata, and that they are the same after pruning.
func both(t *testing.T, s *store.Store, want []record.Stratum) {
	t.Helper()
	for _, when := range []string{"before", "after"} {
		got, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i].Node = record.Mean{}
		}
		t.Log(when)
		sameStrata(t, got, want)
		if _, err := s.Prune(t.Context(), start.AddDate(1, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
}

func stratum(holdOut float64, gpu record.Mean, predicted record.PredictedUse) record.Stratum {
	return record.Stratum{
		WorkloadKey: workload(0), HoldOut: holdOut, Arm: live.ArmTreated, GPU: gpu, Predicted: predicted,
	}
}

// Runs at other clocks differ by more than chance: their scatter is that around
// the mean of each setting.
func TestScatterIsThatOfRunsAtTheSameClocks(t *testing.T) {
	s, _ := openNew(t)
	for i, run := range []struct {
		core   dvfsmodel.MHz
		joules float64
	}{{1000, 100}, {1000, 110}, {1200, 150}, {1200, 152}, {1300, 500}} {
		decidedRun(t, s, i, run.core, 0.05, run.joules, nil)
	}
	both(t, s, []record.Stratum{stratum(0.05,
		record.Mean{Runs: 5, Value: 1012. / 5, Variance: (50. + 2) / 2, Freedom: 2},
		record.PredictedUse{Runs: 5, DefaultJ: 1000, GPUJ: 1012})})
}

// Which jobs of the constant arm are at its clocks, and which may not be, comes with the
// draw: their scatter is that around the mean of all.
func TestScatterInTheConstantArmIsThatOfAllItsRuns(t *testing.T) {
	s, _ := openNew(t)
	for i, run := range []struct {
		core   dvfsmodel.MHz
		joules float64
	}{{1000, 100}, {1000, 110}, {0, 150}} {
		decidedRun(t, s, i, run.core, 0.05, run.joules, func(o *record.Outcome) { o.Arm = live.ArmConstant })
	}
	want := stratum(0.05,
		record.Mean{Runs: 3, Value: 120, Variance: (400. + 100 + 900) / 2, Freedom: 2},
		record.PredictedUse{Runs: 3, DefaultJ: 600, GPUJ: 360})
	want.Arm = live.ArmConstant
	both(t, s, []record.Stratum{want})
}

// A time of another hold-out is another stratum: there the arms are mixed
// otherwise, and energies drift.
func TestAnotherHoldOutIsAnotherStratum(t *testing.T) {
	s, _ := openNew(t)
	decidedRun(t, s, 0, 1000, 0.2, 100, nil)
	decidedRun(t, s, 1, 1000, 0.05, 120, nil)
	both(t, s, []record.Stratum{
		stratum(0.05, record.Mean{Runs: 1, Value: 120},
			record.PredictedUse{Runs: 1, DefaultJ: 200, GPUJ: 120}),
		stratum(0.2, record.Mean{Runs: 1, Value: 100},
			record.PredictedUse{Runs: 1, DefaultJ: 200, GPUJ: 100}),
	})
}

// A time of another constant arm is another stratum, too, and what ran before there
// was one isn't mixed with it.
func TestAnotherConstantArmIsAnotherStratum(t *testing.T) {
	s, _ := openNew(t)
	for i, part := range []live.Number{{}, live.Known(0.1), live.Known(0.2)} {
		d := decision(i)
		d.HoldOut, d.ConstantArm, d.Arm = live.Known(0.05), part, live.ArmConstant
		id, err := s.PutDecision(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := s.DecisionByToken(t.Context(), d.Cluster, d.Token); err != nil ||
			stored.ConstantArm != part || stored.Arm != live.ArmConstant {
			t.Errorf("%+v, %v", stored, err)
		}
		o := outcome(3 * i)
		o.DecisionID, o.JobID, o.Arm, o.GPUEnergyJ = id, d.JobID, live.ArmConstant,
			live.Known(float64(100*(i+1)))
		put(t, s, o, store.Stored)
	}
	want := make([]record.Stratum, 3)
	for i, part := range []float64{0, 0.1, 0.2} {
		want[i] = stratum(0.05, record.Mean{Runs: 1, Value: float64(100 * (i + 1))},
			record.PredictedUse{})
		want[i].Arm, want[i].ConstantArm = live.ArmConstant, part
	}
	both(t, s, want)
}

// The lot is drawn for a job, so that its nodes are one run, and one whose energy
// isn't known on each node isn't compared.
func TestTheNodesOfAJobAreOneRun(t *testing.T) {
	s, _ := openNew(t)
	for job, energies := range [][]float64{{100, 60, 40}, {100, 60, 46}, {100, -1}} {
		for node, joules := range energies {
			decidedRun(t, s, 10*job+node, 1000, 0.05, max(0, joules), func(o *record.Outcome) {
				o.JobID, o.Submitted, o.Node = int64(7+job), start, fmt.Sprintf("n%d", node)
				if joules < 0 {
					o.GPUEnergyJ = live.Number{}
				}
			})
		}
	}
	// What a requeued job used in vain isn't a run of its own.
	decidedRun(t, s, 50, 1000, 0.05, 33, func(o *record.Outcome) {
		o.JobID, o.Submitted, o.ExitState = 7, start, "REQUEUED"
	})
	both(t, s,
		[]record.Stratum{stratum(0.05, record.Mean{Runs: 2, Value: 203, Variance: 18, Freedom: 1},
			record.PredictedUse{Runs: 2, DefaultJ: 1200, GPUJ: 406})})
}

func TestEndingsCountJobsByArm(t *testing.T) {
	s, _ := openNew(t)
	for i, state := range []string{"COMPLETED", "COMPLETED", "FAILED", "REQUEUED", "TIMEOUT", ""} {
		decidedRun(t, s, i, 1000, 0.05, 100, func(o *record.Outcome) { o.ExitState = state })
	}
	held := outcome(90)
	held.Arm = live.ArmHeldOut
	put(t, s, held, store.Stored)
	out := outcome(93)
	out.Arm = live.ArmExcluded
	put(t, s, out, store.Stored)
	strata, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[live.Arm]record.EndingCounts)
	for _, stratum := range strata {
		all := got[stratum.Arm]
		all.Ended += stratum.Endings.Ended
		all.Completed += stratum.Endings.Completed
		got[stratum.Arm] = all
	}
	if len(got) != 2 || got[live.ArmTreated] != (record.EndingCounts{Ended: 4, Completed: 2}) ||
		got[live.ArmHeldOut] != (record.EndingCounts{Ended: 1, Completed: 1}) {
		t.Errorf("%+v", got)
	}
}
