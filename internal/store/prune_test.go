package store_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestPruningKeepsTheMeansAndKnowsRepeats(t *testing.T) {
	now := start
	s := open(t, filepath.Join(tempDir(t), "epd.db"), &store.Options{Now: func() time.Time { return now }})
	const runs = 2500 // more than two steps
	for i := range runs {
		o := outcome(i)
		switch i % 7 {
		case 0:
			o.Arm = live.ArmHeldOut
		case 1:
			o.ExitState = "FAILED"
		case 2:
			o.GPUEnergyJ = live.Number{}
		case 3:
			o.Unmatched = true
		}
		put(t, s, o, store.Stored)
		now = now.Add(time.Second)
	}
	before, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if oldest, err := s.Oldest(t.Context()); err != nil || !oldest.Equal(start) {
		t.Errorf("the oldest record is of %v, %v, want %v", oldest, err, start)
	}
	pruned, err := s.Prune(t.Context(), start.Add(2200*time.Second))
	if err != nil || pruned.Outcomes != 2200 {
		t.Fatalf("pruned %+v, %v", pruned, err)
	}
	after, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	sameStrata(t, after, before)
	if n := len(exported(t, s, "outcome_details")); n != runs-2200 {
		t.Errorf("%d details are left", n)
	}
	if oldest, err := s.Oldest(t.Context()); err != nil || !oldest.Equal(start.Add(2200*time.Second)) {
		t.Errorf("after pruning the oldest record is of %v, %v", oldest, err)
	}
	put(t, s, outcome(4), store.Repeated) // pruned, and neither of the special kinds
	changed := outcome(4)
	changed.TimeS = live.Known(1)
	put(t, s, changed, store.Conflicting)
	again, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	sameStrata(t, again, before)
}

// sameStrata wants two lists of strata to be equal but for rounding.
func sameStrata(tb testing.TB, got, want []record.Stratum) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%d strata, not %d: %+v", len(got), len(want), got)
	}
	for i, g := range got {
		w := want[i]
		if g.WorkloadKey != w.WorkloadKey || g.Arm != w.Arm || g.HoldOut != w.HoldOut ||
			g.ConstantArm != w.ConstantArm || g.Predicted != w.Predicted || !sameMean(g.GPU, w.GPU) ||
			!sameMean(g.Node, w.Node) {
			tb.Errorf("stratum %d is %+v, not %+v", i, g, w)
		}
	}
}

func sameMean(a, b record.Mean) bool {
	near := func(x, y, scale float64) bool { return math.Abs(x-y) <= 1e-9*scale }
	return a.Runs == b.Runs && a.Freedom == b.Freedom && near(a.Value, b.Value, 1+b.Value) &&
		near(a.Variance, b.Variance, 1+b.Value*b.Value)
}

func TestStrataAreMeansByWorkloadAndArm(t *testing.T) {
	s, _ := openNew(t)
	for i, energy := range []float64{100, 110, 120} {
		o := outcome(3 * i) // one workload
		o.GPUEnergyJ = live.Known(energy)
		put(t, s, o, store.Stored)
	}
	held := outcome(9)
	held.Arm, held.GPUEnergyJ = live.ArmHeldOut, live.Known(150)
	put(t, s, held, store.Stored)
	strata, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil || len(strata) != 2 {
		t.Fatalf("%+v, %v", strata, err)
	}
	if got, want := strata[0].GPU, (record.Mean{Runs: 1, Value: 150}); strata[0].Arm !=
		live.ArmHeldOut || got != want {
		t.Errorf("held out: %+v", strata[0])
	}
	if got, want := strata[1].GPU, (record.Mean{
		Runs: 3, Value: 110, Variance: 100,
		Freedom: 2,
	}); !sameMean(got, want) {
		t.Errorf("treated: %+v", got)
	}
	// All but the first ended later.
	late, err := s.Strata(t.Context(), "alpha", start.Add(23*time.Minute), time.Time{})
	if err != nil || len(late) != 2 || late[1].GPU.Runs != 2 {
		t.Errorf("since later: %+v, %v", late, err)
	}
}

func TestPruningRemovesOldRecordsOfEveryKindButModels(t *testing.T) {
	s, _ := openNew(t)
	fill(t, s)
	pruned, err := s.Prune(t.Context(), start.Add(24*time.Hour))
	if want := (store.PruneResult{
		Outcomes: 1, Decisions: 1, Jobs: 1, Conflicts: 1, History: 2,
		Features: 1,
	}); err != nil || pruned != want {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	for table, want := range map[string]int{
		"jobs": 0, "decisions": 0, "outcomes": 0, "outcome_details": 0, "outcome_conflicts": 0,
		"models": 1, "pruned_runs": 2, "outcome_months": 2,
	} {
		lines := exported(t, s, table)
		if len(lines) != want {
			t.Errorf("%s has %d rows, not %d", table, len(lines), want)
		}
		if table == "outcome_months" && !strings.Contains(lines[0], `"month":"2026-03"`) {
			t.Errorf("no month in %s", lines[0])
		}
	}
}
