package trace_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
)

// On a measured A100 a run under a power limit is one at the clock that the limit allows, by a model of
// clocks that knows runs under the highest limit alone, and takes no longer than is promised.
func TestARunUnderAMeasuredPowerLimitIsOneAtTheClockThatItAllows(t *testing.T) {
	base := dvfsmodel.Setting{Core: 1410, Mem: 1512}
	var timeOff, powerOff float64
	cells := 0
	for _, app := range readMeasured(t, a100Grid) {
		s := choose.SafeResponse{Fitted: uncapped(t, &app, base), TimeMargin: 0.1}
		s.Standard = s.Fitted.At(base.Core, base.Mem)
		for core := dvfsmodel.MHz(210); core <= base.Core; core += 15 {
			s.Ladder = append(s.Ladder, dvfsmodel.Setting{Core: core, Mem: base.Mem})
		}
		for _, ran := range app.Samples {
			pt := s.Under(ran.Core, base.Mem, ran.Cap)
			pt.Cap = ran.Cap
			timeOff = max(timeOff, math.Abs(pt.Time/ran.Time-1))
			powerOff = max(powerOff, math.Abs(float64(pt.Power/ran.Power)-1))
			cells++
			if upper := s.UpperTime(&pt); !(ran.Time <= upper) {
				t.Errorf("%s at %v MHz under %v W took %v s, promised were %v", app.App, ran.Core, ran.Cap, ran.Time,
					upper)
			}
		}
	}
	t.Logf("%d settings: time within %.1f %%, power within %.1f %%", cells, 100*timeOff, 100*powerOff)
	if cells < 100 || timeOff > 0.055 || powerOff > 0.045 {
		t.Errorf("%d settings: time off by up to %v, power by up to %v", cells, timeOff, powerOff)
	}
}

// uncapped is a fit to an application's runs under the highest limit.
func uncapped(t *testing.T, app *dvfsmodel.AppSamples, base dvfsmodel.Setting) *choose.Model {
	t.Helper()
	m := &choose.Model{Low: base, High: base}
	var samples []dvfsmodel.Sample
	for _, s := range app.Samples {
		if atHighestCap(&s) {
			s.Mem = base.Mem
			samples = append(samples, s)
			m.Low.Core = min(m.Low.Core, s.Core)
		}
	}
	var err error
	if m.Fitted, err = dvfsmodel.Fit(samples, base, nil); err != nil {
		t.Fatal(err)
	}
	return m
}
