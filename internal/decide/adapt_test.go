package decide

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/live"
)

// What work costs at most is no less than it truly costs, for work that follows
// the core clock by any part and waits for any part of the time, as long as runs
// repeat and the model is right.
func TestNoLevelStretchesWorkMoreThanItSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		usage := rapid.Float64Range(0.05, 1).Draw(rt, "usage")
		delta := rapid.Float64Range(0, 1).Draw(rt, "delta")
		whole := dvfsmodel.Params{
			P0: 60, Gamma: 20, C: 150, D: 600 * usage, Delta: delta, T0: 600 * (1 - usage),
		}
		m := &learn.Model{Model: choose.Model{
			Low: dvfsmodel.Setting{Core: 802, Mem: 877}, High: dvfsmodel.Setting{Core: 1380, Mem: 877},
		}}
		cores := []dvfsmodel.MHz{802, 945, 1087, 1237, 1380}
		samples := make([]dvfsmodel.Sample, 0, len(cores))
		for _, core := range cores {
			fc := float64(core) / 1380
			pt := whole.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
			samples = append(samples, dvfsmodel.Sample{Core: core, Mem: 877, Time: pt.Time, Power: pt.Power})
		}
		var err error
		if m.Fitted, err = dvfsmodel.Fit(samples, base, nil); err != nil {
			rt.Skip(err)
		}
		ch := chooser{
			settings: settings(t, adaptAll), model: learn.View{Model: m, Usage: usage},
			table: &ClockTable{Base: base},
		}
		ch.safe = &choose.SafeResponse{
			Fitted: &m.Model, Standard: m.At(base.Core, base.Mem), TimeMargin: ch.settings.Live.TimeMargin,
		}
		for _, s := range samples {
			pt := m.At(s.Core, 877)
			truth := delta*1380/float64(s.Core) + 1 - delta
			if got := ch.stretch(&pt); got < truth*(1-1e-6) {
				rt.Fatalf("%v MHz stretches by %v, truly by %v", float64(s.Core), got, truth)
			}
		}
	})
}

// Only where an administrator wants it, and only without a model, GPUs go to their lowest allowed clock
// at rest.
func TestJobsWithoutAModelRestAtTheLowestClockIfThatIsWanted(t *testing.T) {
	const enforced, wanted = "[live]\nmode = \"enforce\"\n", "[live.adapt]\nrest_s = 60\n"
	d := decidedUnder(t, enforced+wanted, "")
	if a := d.Adapt; !d.Apply || a == nil || d.Core != 1380 || a.RestS != 60 || a.SLA != restSLA ||
		len(a.Levels) != 2 || a.Levels[0].Core != 1380 || a.Levels[1].Core != 802 ||
		d.Arm != live.ArmExcluded || d.HoldOut ||
		!strings.HasPrefix(d.Reason, "adapted between core 802 MHz after 60 s without work") {
		t.Errorf("%+v, %+v", d, d.Adapt)
	}
	made := Decided{Decision: live.Decision{Reason: d.Reason}}
	if low, is := made.adaptedDownTo(); !is || low != 802 {
		t.Errorf("by the records down to %v, %v", float64(low), is)
	}
	d = decidedUnder(t, enforced+"min_core = 0.65\n"+wanted, "")
	if d.Adapt == nil || d.Adapt.Levels[1].Core != 945 {
		t.Errorf("below what the administrator allows: %+v", d.Adapt)
	}
	for name, text := range map[string]string{
		"nobody wants it": enforced, "advice": strings.Replace(enforced, "enforce", "advise", 1) + wanted,
		"no writes":      enforced + wanted + "writes_per_minute = 2\n",
		"no clock below": enforced + "min_core = 1\n" + wanted,
	} {
		if d := decidedUnder(t, text, ""); d.Adapt != nil || d.Apply {
			t.Errorf("%s: %+v, %+v", name, d, d.Adapt)
		}
	}
	for _, comment := range []string{"epplan:off", "epplan:fixed=945"} {
		if d := decidedUnder(t, enforced+wanted, comment); d.Adapt != nil {
			t.Errorf("%s: %+v, %+v", comment, d, d.Adapt)
		}
	}
}
