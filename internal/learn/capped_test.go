package learn

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// cappedTruth returns a workload on V100s, whose limit is 300 W by default.
func cappedTruth(t *testing.T) *dvfsmodel.Fitted {
	t.Helper()
	values := map[string]float64{
		"time.scale_s": 600, "time.core_share": 0.7, "time.core_knee": 1.1, "time.memory_exponent": 0.5,
		"power.static_w": 70, "power.dynamic_w": 140, "power.voltage_slope": 1.3, "power.voltage_knee": 0.7,
		"power.memory_exponent": 0.2, "power.cap_ratio": 1, "power.cap_edge": 20,
	}
	list := make([]dvfsmodel.Coefficient, 0, len(values))
	for name, x := range values {
		list = append(list, dvfsmodel.Coefficient{Name: name, Value: x})
	}
	at := base
	at.Cap = 300
	truth, err := dvfsmodel.NewFitted(dvfsmodel.CappedForm(), at, list)
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

// runsUnder are recorded runs of the workload at clocks under limits, with a scatter of .5 %.
func runsUnder(t *testing.T, key record.WorkloadKey, limits ...dvfsmodel.Watt) []record.Outcome {
	t.Helper()
	truth, random := cappedTruth(t), rand.New(rand.NewPCG(7, 1))
	noise := func() float64 { return math.Exp(0.005 * random.NormFloat64()) }
	runs := make([]record.Outcome, 0, len(limits)*len(clocks))
	for _, limit := range limits {
		for _, core := range clocks {
			pt := truth.Under(limit).At(core, base.Mem)
			free := truth.Under(1000).At(core, base.Mem)
			o := record.Outcome{
				RunID: fmt.Sprintf("r%d", len(runs)), Cluster: key.Cluster, Workload: key.Workload,
				GPUModel:  key.GPUModel,
				ExitState: record.Completed, Ended: start, GPUs: []string{"GPU-a"},
				Details: record.Details{CapW: live.Known(float64(limit))},
				Setting: dvfsmodel.Setting{Core: core}, TimeS: live.Known(pt.Time * noise()),
				MeanPowerW: live.Known(float64(pt.Power) * noise()),
			}
			if free.Power > pt.Power*1.01 { // held down, at a clock that goes up and down
				o.ThrottledS = map[string]float64{powerCapped: o.TimeS.Or(0)}
				o.WorkClock = record.WorkClock{CoreMHz: live.Known(float64(core) * 0.9), SpreadMHz: live.Known(100)}
			}
			runs = append(runs, o)
		}
	}
	return runs
}

// refitted returns the model after a refit to runs.
func refitted(t *testing.T, runs []record.Outcome, caps bool) *Model {
	t.Helper()
	key := keyOf("w")
	o := optionsOf(&remembered{outcomes: map[record.WorkloadKey][]record.Outcome{key: runs}})
	o.Settings = func() Settings { return Settings{TimeMargin: 0.1, Caps: caps} }
	l := New(o)
	if err := l.refit(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return l.Model(key).Model
}

func TestAModelOfClocksAndLimitsIsFittedToRunsUnderSeveral(t *testing.T) {
	truth, runs := cappedTruth(t), runsUnder(t, keyOf("w"), 300, 220, 160)
	m := refitted(t, runs, true).Capped
	if m == nil {
		t.Fatal("no model of clocks and limits")
	}
	if fmt.Sprint(m.Caps) != "[160 220 300]" || m.Low.Core != 802 || m.Margin > 0.05 {
		t.Errorf("limits %v, lowest %+v, margin %v", m.Caps, m.Low, m.Margin)
	}
	for _, limit := range []dvfsmodel.Watt{160, 190, 220, 300} {
		for _, core := range clocks {
			got, want := m.Under(limit).At(core, base.Mem), truth.Under(limit).At(core, base.Mem)
			if math.Abs(got.Time/want.Time-1) > 0.02 || math.Abs(float64(got.Power/want.Power)-1) > 0.02 {
				t.Errorf("%v MHz under %v W: %v s at %v W, want %v s at %v W", core, limit, got.Time, got.Power,
					want.Time, want.Power)
			}
		}
	}
	if refitted(t, runs, false).Capped != nil {
		t.Error("limits aren't chosen anywhere, and there is a model of them")
	}
	if refitted(t, runsUnder(t, keyOf("w"), 300), true).Capped != nil {
		t.Error("one limit, and a model of several")
	}
}

func TestAModelOfClocksAndLimitsIsTheSameAfterItWasStored(t *testing.T) {
	m := refitted(t, runsUnder(t, keyOf("w"), 300, 220, 160), true)
	r, err := modelRecord(keyOf("w"), m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := fromModelRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	if again.Capped == nil {
		t.Fatalf("no model of limits in %s", r.Coefficients)
	}
	for _, limit := range m.Capped.Caps {
		a, b := m.Capped.Under(limit).At(1087, 877), again.Capped.Under(limit).At(1087, 877)
		if math.Abs(a.Time/b.Time-1) > 1e-9 || math.Abs(float64(a.Power/b.Power)-1) > 1e-9 {
			t.Errorf("under %v W: %+v, before %+v", limit, b, a)
		}
	}
	if fmt.Sprint(again.Capped.Caps, again.Capped.Low, again.Capped.Margin) !=
		fmt.Sprint(m.Capped.Caps, m.Capped.Low, m.Capped.Margin) {
		t.Errorf("%+v, want %+v", again.Capped, m.Capped)
	}
	m.Capped = nil
	if r, err = modelRecord(keyOf("w"), m); err != nil || strings.Contains(string(r.Coefficients), "capped") {
		t.Errorf("without one: %s, %v", r.Coefficients, err)
	}
	var broken storedModel
	if err := json.Unmarshal([]byte(`{"capped": {"low": {"core_mhz": 1, "mem_mhz": 1}}}`), &broken); err != nil ||
		broken.Capped.model() != nil {
		t.Errorf("one that can't be rebuilt: %v", err)
	}
}

func TestRunsUnderALimitAreAtTheClocksThatWereSet(t *testing.T) {
	good := runsUnder(t, keyOf("w"), 160)[0]
	for name, c := range map[string]struct {
		change func(*record.Outcome)
		limit  dvfsmodel.Watt // 0: it is no sample
	}{
		"as it is":             {func(*record.Outcome) {}, 160},
		"a limit that epd set": {func(o *record.Outcome) { o.CapW, o.Setting.Cap = live.Number{}, 200 }, 200},
		"no limit is known":    {func(o *record.Outcome) { o.CapW = live.Number{} }, 0},
		"the limit changed":    {func(o *record.Outcome) { o.OtherCapsS = live.Known(300) }, 0},
		"it was hot, too": {func(o *record.Outcome) {
			o.ThrottledS = map[string]float64{powerCapped: 600, "thermal": 300}
		}, 0},
		"it failed":             {func(o *record.Outcome) { o.ExitState = "FAILED" }, 0},
		"clocks were adapted":   {func(o *record.Outcome) { o.Slowdown = live.Known(1.1) }, 0},
		"a limit beyond belief": {func(o *record.Outcome) { o.CapW = live.Known(1e9) }, 0},
	} {
		o := good
		c.change(&o)
		s, ok := cappedSample(&o, base)
		if ok != (c.limit > 0) || ok && (s.Cap != c.limit || s.Core != 1380 || s.Mem != base.Mem) {
			t.Errorf("%s: %+v, %v, want the limit %v", name, s, ok, c.limit)
		}
	}
}
