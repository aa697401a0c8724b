package trace_test

import (
	"math"
	"slices"
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

// On that A100, of jobs that may take from 3 to 15 % longer, those whose clocks and limit are chosen
// together take less energy than those whose clocks alone are, and none takes longer than it may.
func TestClocksAndLimitsChosenTogetherTakeLessThanClocksAlone(t *testing.T) {
	base := dvfsmodel.Setting{Core: 1410, Mem: 1512}
	for _, app := range readMeasured(t, a100Grid) {
		s := choose.SafeResponse{
			Fitted: uncapped(t, &app, base), TimeMargin: 0.01, Stretch: 2, Limit: 300,
		}
		for core := dvfsmodel.MHz(210); core <= base.Core; core += 15 {
			s.Ladder = append(s.Ladder, dvfsmodel.Setting{Core: core, Mem: base.Mem})
		}
		s.Standard = s.Under(base.Core, base.Mem, s.Limit)
		took := make(map[dvfsmodel.Setting]dvfsmodel.Sample)
		runs := slices.Clone(app.Samples)
		for i := range runs {
			runs[i].Mem = base.Mem
			took[runs[i].At()] = runs[i]
			if at := (dvfsmodel.Setting{Core: runs[i].Core, Mem: base.Mem}); !slices.Contains(s.Settings, at) {
				s.Settings = append(s.Settings, at)
			}
		}
		fitted, err := dvfsmodel.FitCapped(runs, dvfsmodel.Setting{Core: base.Core, Mem: base.Mem, Cap: 300})
		if err != nil {
			t.Fatal(err)
		}
		m := choose.Capped{Fitted: fitted, Low: dvfsmodel.Setting{Core: 1005, Mem: base.Mem, Cap: 150}}
		standard := took[dvfsmodel.Setting{Core: base.Core, Mem: base.Mem, Cap: 300}]
		var alone, together float64
		for _, slower := range []float64{1.03, 1.05, 1.08, 1.1, 1.15} {
			limit := slower * standard.Time
			best, err := s.Optimum(dvfsmodel.MinEnergy(), limit)
			if err != nil {
				t.Fatal(err)
			}
			clock := standard
			if best.Core != s.Standard.Core {
				clock = took[dvfsmodel.Setting{Core: best.Core, Mem: base.Mem, Cap: 300}]
			}
			both := clock
			if pt, ok := s.BetterUnderCap(&m, fitted.Caps[:len(fitted.Caps)-1], &best, dvfsmodel.MinEnergy(),
				limit); ok {
				both = took[dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem, Cap: pt.Cap}]
			}
			if both.Time > limit || both.Energy() > clock.Energy()*1.001 {
				t.Errorf("%s within ×%v: at %+v %v s and %v J, by clocks alone %v J", app.App, slower, both.At(),
					both.Time, both.Energy(), clock.Energy())
			}
			alone += 1 - float64(clock.Energy()/standard.Energy())
			together += 1 - float64(both.Energy()/standard.Energy())
		}
		t.Logf("%s: %.1f %% saved by clocks alone, %.1f %% with limits", app.App, 20*alone, 20*together)
		if !(together > alone) {
			t.Errorf("%s: %v saved with limits, %v without", app.App, together, alone)
		}
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
