package choose_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
)

var base = dvfsmodel.Setting{Core: 1400, Mem: 900}

// drawModel returns a model through any coefficients, good ones or not.
func drawModel(rt *rapid.T) *choose.Model {
	positive := func(name string, most float64) dvfsmodel.Coefficient {
		return dvfsmodel.Coefficient{Name: name, Value: rapid.Float64Range(0, most).Draw(rt, name)}
	}
	list := []dvfsmodel.Coefficient{
		positive("time.t0_s", 500), positive("time.core_s", 3000), positive("time.mem_s", 3000),
		positive("power.p0_w", 80), positive("power.gamma_w", 50), positive("power.c_w", 150),
	}
	list[0].Value++
	list[3].Value++
	fitted, err := dvfsmodel.NewFitted(dvfsmodel.PaperForm(), base, list)
	if err != nil {
		rt.Fatal(err)
	}
	clock := func(name string, least, most dvfsmodel.MHz) dvfsmodel.MHz {
		return dvfsmodel.MHz(rapid.IntRange(int(least), int(most)).Draw(rt, name))
	}
	m := &choose.Model{Fitted: fitted, Margin: rapid.Float64Range(0, 0.5).Draw(rt, "margin")}
	m.Low = dvfsmodel.Setting{Core: clock("low core", 500, 1400), Mem: clock("low memory", 500, 900)}
	m.High = dvfsmodel.Setting{
		Core: clock("high core", m.Low.Core, 1600), Mem: clock("high memory", 900, 1000),
	}
	return m
}

func drawSure(rt *rapid.T) *choose.SafeResponse {
	s := &choose.SafeResponse{
		Fitted: drawModel(rt), TimeMargin: rapid.Float64Range(0, 0.3).Draw(rt, "time margin"),
		LimitMargin: rapid.Float64Range(0, 0.3).Draw(rt, "limit margin"),
		Stretch:     rapid.Float64Range(1, 3).Draw(rt, "stretch"),
	}
	s.Standard = s.Fitted.At(base.Core, base.Mem)
	for range rapid.IntRange(0, 12).Draw(rt, "settings") {
		s.Settings = append(s.Settings, dvfsmodel.Setting{
			Core: dvfsmodel.MHz(rapid.IntRange(5, 16).Draw(rt, "core") * 100),
			Mem:  dvfsmodel.MHz(rapid.IntRange(5, 10).Draw(rt, "memory") * 100),
		})
	}
	return s
}

func TestTheOptimumIsTheCheapestSettingThatIsSureToEndInTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSure(rt)
		o := dvfsmodel.Objective{
			EnergyWeight: 1, TimeWeight: rapid.Float64Range(0, 200).Draw(rt, "time weight"),
		}
		limit := s.RequiredTime(&s.Standard) * rapid.Float64Range(0.5, 3).Draw(rt, "limit")
		got, err := s.Optimum(o, limit)
		least, shortest := math.Inf(1), s.RequiredTime(&s.Standard)
		for _, at := range append([]dvfsmodel.Setting{{Core: base.Core, Mem: base.Mem}}, s.Settings...) {
			pt := s.At(at.Core, at.Mem)
			if !s.Fitted.Covers(&pt) {
				continue
			}
			shortest = min(shortest, s.RequiredTime(&pt))
			if dvfsmodel.MeetsLimit(s.RequiredTime(&pt), limit) &&
				dvfsmodel.MeetsLimit(s.UpperTime(&pt),
					s.Stretch*s.Fitted.UpperTime(&s.Standard, s.TimeMargin)) {
				least = min(least, o.Cost(pt))
			}
		}
		switch {
		case errors.Is(err, dvfsmodel.ErrInfeasible):
			if !math.IsInf(least, 1) {
				rt.Fatalf("none found, one costs %v", least)
			}
		case math.Abs(o.Cost(got)-least) > 1e-9*least:
			rt.Fatalf("%v costs %v, want %v", got, o.Cost(got), least)
		case !s.Allows(got.Scaling):
			rt.Fatalf("%v isn't allowed", got)
		case math.Abs(s.Model().Time(got.Scaling.Fc, got.Scaling.Fm)-got.Time) > 1e-9*got.Time:
			rt.Fatalf("%v takes %v s by its model", got, s.Model().Time(got.Scaling.Fc, got.Scaling.Fm))
		}
		if s.MinTime() != shortest {
			rt.Fatalf("the shortest time is %v, want %v", s.MinTime(), shortest)
		}
	})
}

// A run that follows the clocks by any part is within the bounds, wherever was measured.
func TestARunIsWithinItsBoundsWhereverWasMeasured(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawModel(rt)
		core := dvfsmodel.MHz(rapid.IntRange(300, 1600).Draw(rt, "core"))
		mem := dvfsmodel.MHz(rapid.IntRange(300, 1000).Draw(rt, "memory"))
		pt := m.At(core, mem)
		if low, high := m.LowerTime(&pt, 0), m.UpperTime(&pt, 0); pt.Time < low*(1-1e-9) ||
			pt.Time > high*(1+1e-9) {
			rt.Fatalf("%v s, want %v to %v", pt.Time, low, high)
		}
		standard := m.At(base.Core, base.Mem)
		if at := m.NoFaster(core, mem, &standard); core <= base.Core && mem <= base.Mem &&
			at.Time < standard.Time {
			rt.Fatalf("%v is faster than %v", at, standard)
		}
	})
}

func TestOnlyDefaultClocksAndThoseThatMayBeSetAreAllowed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSure(rt)
		if !s.Allows(s.Default().Scaling) {
			rt.Fatal("default clocks aren't allowed")
		}
		for _, at := range s.Settings {
			pt := s.At(at.Core, at.Mem)
			if !s.Allows(pt.Scaling) {
				rt.Fatalf("%v isn't allowed", at)
			}
			if pt.Scaling.Fc += 1e-3; s.Allows(pt.Scaling) {
				rt.Fatalf("%v is allowed", pt.Scaling)
			}
		}
	})
}
