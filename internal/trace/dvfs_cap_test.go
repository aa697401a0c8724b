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
	for _, app := range readMeasured(t, a100Grid) {
		g := newLimited(t, &app)
		standard := g.took[dvfsmodel.Setting{Core: 1410, Mem: 1512, Cap: 300}]
		var alone, together float64
		for _, slower := range []float64{1.03, 1.05, 1.08, 1.1, 1.15} {
			limit := slower * standard.Time
			clock, both := g.chosen(t, limit)
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

// limited is an application of the grid: how it responds by its models, and what it took.
type limited struct {
	choose.SafeResponse
	model choose.Capped
	took  map[dvfsmodel.Setting]dvfsmodel.Sample
}

func newLimited(t *testing.T, app *dvfsmodel.AppSamples) *limited {
	t.Helper()
	top := dvfsmodel.Setting{Core: 1410, Mem: 1512, Cap: 300}
	g := &limited{took: make(map[dvfsmodel.Setting]dvfsmodel.Sample)}
	g.SafeResponse = choose.SafeResponse{
		Fitted: uncapped(t, app, dvfsmodel.Setting{Core: top.Core, Mem: top.Mem}), TimeMargin: 0.01, Stretch: 2,
		Limit: top.Cap,
	}
	for core := dvfsmodel.MHz(210); core <= top.Core; core += 15 {
		g.Ladder = append(g.Ladder, dvfsmodel.Setting{Core: core, Mem: top.Mem})
	}
	g.Standard = g.Under(top.Core, top.Mem, top.Cap)
	runs := slices.Clone(app.Samples)
	for i := range runs {
		runs[i].Mem = top.Mem
		g.took[runs[i].At()] = runs[i]
		if at := (dvfsmodel.Setting{Core: runs[i].Core, Mem: top.Mem}); !slices.Contains(g.Settings, at) {
			g.Settings = append(g.Settings, at)
		}
	}
	fitted, err := dvfsmodel.FitCapped(runs, top)
	if err != nil {
		t.Fatal(err)
	}
	g.model = choose.Capped{Fitted: fitted, Low: dvfsmodel.Setting{Core: 1005, Mem: top.Mem, Cap: 150}}
	return g
}

// chosen returns what was measured at the setting of clocks alone, and at that of both.
func (g *limited) chosen(t *testing.T, limit float64) (clock, both dvfsmodel.Sample) {
	t.Helper()
	best, err := g.Optimum(dvfsmodel.MinEnergy(), limit)
	if err != nil {
		t.Fatal(err)
	}
	at := dvfsmodel.Setting{Core: best.Core, Mem: best.Mem, Cap: g.Limit}
	if best.Core == g.Standard.Core { // the clock that the limit leaves one at default clocks
		at.Core = g.Fitted.Base.Core
	}
	caps := g.model.Caps[:len(g.model.Caps)-1]
	if pt, ok := g.BetterUnderCap(&g.model, caps, &best, dvfsmodel.MinEnergy(), limit); ok {
		return g.took[at], g.took[dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem, Cap: pt.Cap}]
	}
	return g.took[at], g.took[at]
}

// uncapped returns a fit to an application's runs under the highest limit.
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
