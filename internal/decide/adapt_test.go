package decide

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/learn"
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
