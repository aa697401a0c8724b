package planner_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/sharing"
)

func TestACurveSlowsTasksDownByLoadNumberAndMemory(t *testing.T) {
	p := curved(&sharing.Curve{Exponent: 2, ByTask: .1, ByMemory: .2}, 4, 80, 80)
	plan := solve(t, p, "hotcloud,place=share-cats")
	// From 10 s on both do a second's work in 1.6² · (1 + 0.1 + 0.2 · 8/32) =
	// 2.944 s; b ends after 88.32 s, and a has 60 s left then.
	for i, want := range []float64{158.32, 98.32} {
		if got := plan.Assignments[i].End; math.Abs(got-want) > 1e-9 {
			t.Errorf("job %q ends at %v s, want %v", p.Tasks[i].ID, got, want)
		}
	}
	if got, want := float64(plan.Ledger.Run), 158.32*144.8; math.Abs(got-want) > 1e-6 {
		t.Errorf("the GPU takes %v J, want %v", got, want)
	}
}

func TestTheLowestClockKeepsSLAsByTheCurve(t *testing.T) {
	p := curved(&sharing.Curve{Exponent: 1, ByTask: .05}, 1.2, 20, 20)
	plan := solve(t, p, "hotcloud,place=share-cats,clocks=lowest")
	clocks := make([]dvfsmodel.MHz, 0, len(plan.Shared.ClockIntervals))
	for _, s := range plan.Shared.ClockIntervals {
		clocks = append(clocks, s.MHz)
	}
	// 1.05 · (1350 / f)^0.91 is 1.2 at 1165.8 MHz.
	if want := []dvfsmodel.MHz{1125, 1170, 1125}; !slices.Equal(clocks, want) {
		t.Errorf("clocks %v MHz, want %v", clocks, want)
	}
}

func TestSafePoliciesKeepSLAsByTheCurve(t *testing.T) {
	beside, blind := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := sharedCrowd(rng)
		p.Cluster.Sharing.Contention = &sharing.Curve{
			Exponent: 1 + rng.Float64(), ByTask: .1 * rng.Float64(), ByMemory: .2 * rng.Float64(),
		}
		for _, text := range []string{"cats-safe", "cats-safe,clocks=lowest", "hotcloud"} {
			plan := solve(t, p, text)
			if plan.Shared == nil {
				continue
			}
			for i := range plan.Assignments {
				if plan.Assignments[i].Reason.Place == planner.PlaceBeside && text != "hotcloud" {
					beside++
				}
			}
			switch {
			case text == "hotcloud":
				blind += len(plan.Shared.Slowed)
			case len(plan.Shared.Slowed) > 0:
				t.Errorf("seed %d: %s slows %d jobs down too much", seed, text, len(plan.Shared.Slowed))
			}
			if lower := bound.Lower(p); plan.Status == planner.Complete &&
				(lower.Value == 0 || plan.Ledger.Total() < lower.Value*(1-1e-9)) {
				t.Errorf("seed %d, %s: %v J, the bound is %v J", seed, text, plan.Ledger.Total(), lower.Value)
			}
		}
	}
	if beside < 100 || blind < 100 {
		t.Errorf("%d jobs beside others, %d slowed down by a policy that knows no SLA: too few to tell",
			beside, blind)
	}
}

func TestACurveThatIsLinearChangesNoPlan(t *testing.T) {
	linear := sharing.LinearCurve()
	for seed := range uint64(30) {
		p := sharedCrowd(rand.New(rand.NewPCG(seed, 4)))
		for _, text := range append([]string{"cats-safe,place=share-cats-safe"}, sharingPolicies...) {
			p.Cluster.Sharing.Contention = nil
			want, lower := solve(t, p, text), bound.Lower(p)
			p.Cluster.Sharing.Contention = &linear
			if got := solve(t, p, text); !reflect.DeepEqual(got, want) ||
				!reflect.DeepEqual(bound.Lower(p), lower) {
				t.Errorf("seed %d, %s: another plan or bound than without a curve", seed, text)
			}
		}
	}
}

func TestImaginedFuturesKeepSLAsByTheCurveWhileGPUsAreLeft(t *testing.T) {
	beside := 0
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 5))
		p := sharedCrowd(rng)
		p.Cluster.Classes[0].Count = len(p.Tasks)
		for i := range p.Tasks {
			p.Tasks[i].Options[0].GPUs = 1 // else a piece may have to go where the first one is
		}
		p.Cluster.Sharing.Contention = &sharing.Curve{
			Exponent: 1 + rng.Float64(), ByTask: .1 * rng.Float64(), ByMemory: .2 * rng.Float64(),
		}
		plan := solve(t, p, "cats-safe,place=share-cats-safe,clocks=lowest")
		if plan.Shared == nil {
			continue
		}
		if len(plan.Shared.Slowed) > 0 {
			t.Errorf("seed %d: %d jobs are slowed down too much", seed, len(plan.Shared.Slowed))
		}
		for i := range plan.Assignments {
			if plan.Assignments[i].Reason.Place == planner.PlaceBeside {
				beside++
			}
		}
	}
	if beside < 30 {
		t.Errorf("%d jobs beside others: too few to tell", beside)
	}
}

func TestCurvesThatMakeNoSenseAreRefused(t *testing.T) {
	p := curved(nil, 1.2, 50)
	for _, bad := range []sharing.Curve{
		{},
		{Exponent: .9},
		{Exponent: 11},
		{Exponent: math.NaN()},
		{Exponent: 1, ByTask: -1},
		{Exponent: 1, ByTask: math.Inf(1)},
		{Exponent: 1, ByMemory: -1},
	} {
		p.Cluster.Sharing.Contention = &bad
		if p.Validate() == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
