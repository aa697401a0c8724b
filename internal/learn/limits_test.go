package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// drawUnder returns a workload on V100s whose boards keep limits alike.
func drawUnder(t *testing.T, random *rand.Rand) *dvfsmodel.Fitted {
	t.Helper()
	at := base
	at.Cap = 300
	between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	truth, err := dvfsmodel.NewFitted(dvfsmodel.CappedForm(), at, []dvfsmodel.Coefficient{
		{Name: "time.scale_s", Value: between(100, 1000)},
		{Name: "time.core_share", Value: between(0.5, 0.8)},
		{Name: "time.core_knee", Value: between(1, 1.2)},
		{Name: "time.memory_exponent", Value: 0.5},
		{Name: "power.static_w", Value: between(60, 75)},
		{Name: "power.dynamic_w", Value: between(90, 120)},
		{Name: "power.voltage_slope", Value: between(1.2, 1.4)},
		{Name: "power.voltage_knee", Value: between(0.68, 0.72)},
		{Name: "power.memory_exponent", Value: 0.2},
		{Name: "power.cap_ratio", Value: 0.97},
		{Name: "power.cap_edge", Value: 25},
	})
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

// runAt returns a recorded run of a workload, with a scatter of .5 %.
func runAt(
	key record.WorkloadKey, truth *dvfsmodel.Fitted, at dvfsmodel.Setting, random *rand.Rand,
) record.Outcome {
	noise := func() float64 { return math.Exp(0.005 * random.NormFloat64()) }
	pt := truth.Under(at.Cap).At(at.Core, base.Mem)
	o := record.Outcome{
		RunID:   strconv.FormatUint(random.Uint64(), 10),
		Cluster: key.Cluster, Workload: key.Workload, GPUModel: key.GPUModel,
		ExitState: record.Completed, Ended: start, GPUs: []string{"GPU-a"},
		Details: record.Details{CapW: live.Known(float64(at.Cap))},
		Setting: dvfsmodel.Setting{Core: at.Core}, TimeS: live.Known(pt.Time * noise()),
		MeanPowerW: live.Known(float64(pt.Power) * noise()),
	}
	if truth.Under(1000).At(at.Core, base.Mem).Power > pt.Power*1.1 {
		o.ThrottledS = map[string]float64{powerCapped: o.TimeS.Or(0)}
		o.WorkClock.CoreMHz, o.WorkClock.SpreadMHz = live.Known(float64(at.Core)*0.9), live.Known(100)
	}
	return o
}

// knowingOthers returns a learner of V100s that may be limited from 100 W to 300 W, after others ran at
// clocks under limits.
func knowingOthers(t *testing.T, random *rand.Rand, others int, caps bool) (*Learner, *remembered) {
	t.Helper()
	kept := &remembered{outcomes: make(map[record.WorkloadKey][]record.Outcome)}
	o := optionsOf(kept)
	o.Settings = func() Settings {
		return Settings{TimeMargin: 0.1, Caps: caps, Explore: true, MaxSlowdown: 1.5}
	}
	o.GPU = func(string) GPU {
		gpu := GPU{Base: base, HostW: 25, Limit: epdapi.PowerLimit{InForce: 300, Min: 100, Max: 300}}
		for _, core := range clocks {
			gpu.Allowed = append([]dvfsmodel.Setting{{Core: core, Mem: base.Mem}}, gpu.Allowed...)
		}
		return gpu
	}
	l := New(o)
	for w := range others {
		key, truth := keyOf(fmt.Sprint("other", w)), drawUnder(t, random)
		for _, core := range clocks {
			for _, limit := range []dvfsmodel.Watt{300, 240, 200, 160} {
				at := dvfsmodel.Setting{Core: core, Cap: limit}
				kept.outcomes[key] = append(kept.outcomes[key], runAt(key, truth, at, random))
			}
		}
		if err := l.refit(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	return l, kept
}

// What others' runs say of limits is known of a workload that never ran under a lower one, and its bounds
// hold there; two others say nothing.
func TestANewWorkloadKnowsWhatOthersRanLikeUnderLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 5))
	l, kept := knowingOthers(t, random, 8, true)
	within, all, worst, margins := 0, 0, 0., 0.
	const workloads = 8
	for w := range workloads {
		key, truth := keyOf(fmt.Sprint("new", w)), drawUnder(t, random)
		for _, core := range []dvfsmodel.MHz{base.Core, clocks[1]} {
			kept.outcomes[key] = append(kept.outcomes[key],
				runAt(key, truth, dvfsmodel.Setting{Core: core, Cap: 300}, random))
		}
		if err := l.refit(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		m := l.Model(key).Model.Capped
		if m == nil {
			t.Fatalf("workload %d: nothing is known of limits", w)
		}
		if margins += m.Margin / workloads; len(m.Caps) < 3 {
			t.Errorf("workload %d: limits %v", w, m.Caps)
		}
		for _, limit := range m.Caps {
			for _, core := range clocks[:4] {
				got, want := m.Under(limit).At(core, base.Mem), truth.Under(limit).At(core, base.Mem)
				off := math.Abs(math.Log(got.Time / want.Time))
				if all++; off <= math.Log1p(m.Margin) {
					within++
				}
				worst = max(worst, off)
			}
		}
	}
	t.Logf("%d of %d settings within the margin, on the mean %.2f, the worst off by %.1f %%", within, all,
		margins, 100*worst)
	if within < all*95/100 || margins > 0.35 {
		t.Errorf("%d of %d settings are within the margin, on the mean %v; the worst is off by %v", within, all,
			margins, worst)
	}

	few, kept := knowingOthers(t, random, minUnderLimits-1, true)
	key, truth := keyOf("new"), drawUnder(t, random)
	kept.outcomes[key] = []record.Outcome{
		runAt(key, truth, dvfsmodel.Setting{Core: base.Core, Cap: 300}, random),
	}
	if err := few.refit(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if m := few.Model(key).Model.Capped; m != nil {
		t.Errorf("%d others, and a model of limits: %+v", minUnderLimits-1, m)
	}
}

// Runs that are taken out of the records are no longer in what is common of limits.
func TestWhatIsCommonOfLimitsForgetsTheRunsThatAreTakenOut(t *testing.T) {
	l, _ := knowingOthers(t, rand.New(rand.NewPCG(20, 6)), minUnderLimits, true)
	if l.priors.limits(priorKey{gpuModel: "V100"}, base) == nil {
		t.Fatal("nothing is common")
	}
	if l.priors.forget(keyOf("other0")); l.priors.limits(priorKey{gpuModel: "V100"}, base) != nil {
		t.Error("until it has learnt anew it goes by what it learnt")
	}
	if l.priors.learn(priorKey{gpuModel: "V100"}); l.priors.limits(priorKey{gpuModel: "V100"}, base) != nil {
		t.Error("it goes by too few workloads")
	}
}

// afterOneRun returns what is known of a workload that ran once at default clocks.
func afterOneRun(t *testing.T, random *rand.Rand, l *Learner, kept *remembered) (View, *dvfsmodel.Fitted) {
	t.Helper()
	key, truth := keyOf("new"), drawUnder(t, random)
	at := dvfsmodel.Setting{Core: base.Core, Cap: 300}
	kept.outcomes[key] = []record.Outcome{runAt(key, truth, at, random)}
	if err := l.refit(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return l.Model(key), truth
}

// Limits are worth trying where they hold a workload down, within what boards take and jobs may take longer;
// where limits aren't chosen nothing of them is learnt.
func TestLimitsAreTriedWhereTheyHoldAWorkloadDown(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 7))
	alone, nobody := knowingOthers(t, random, 0, true)
	among, kept := knowingOthers(t, random, 4, true)
	tried := make(map[*Learner]int)
	for i := range 8 {
		l, runs := alone, nobody
		if i%2 == 0 {
			l, runs = among, kept
		}
		view, truth := afterOneRun(t, random, l, runs)
		draws := truth.Under(300).At(base.Core, base.Mem).Power
		for _, c := range view.LimitCandidates {
			if c.At.Cap == 0 {
				continue
			}
			tried[l]++
			if c.At.Cap < 100 || c.At.Cap >= 300 || c.At.Cap > 1.15*draws {
				t.Errorf("%+v of a workload that draws %v W", c, draws)
			}
			if !(c.Expected <= 1.5) || !(c.AtMost >= c.Expected) {
				t.Errorf("%+v", c)
			}
		}
	}
	if tried[alone] == 0 || tried[among] == 0 {
		t.Errorf("%d limits tried where nothing is known of others, %d where something is", tried[alone],
			tried[among])
	}
	among, kept = knowingOthers(t, random, 4, false)
	view, _ := afterOneRun(t, random, among, kept)
	if view.LimitCandidates != nil || view.Model.Capped != nil || len(view.Candidates) == 0 {
		t.Errorf("limits aren't chosen anywhere: %+v", view)
	}
}
