package gpu

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

// steps drive a simulated GPU for a while and call look before, after and in
// between; it returns the energy that was really used.
func drive(t *rapid.T, g *Sim, clock *fakeClock, every time.Duration, look func()) dvfsmodel.Joule {
	start, err := g.Read()
	if err != nil {
		t.Fatal(err)
	}
	look()
	for range rapid.IntRange(1, 6).Draw(t, "phases") {
		if rapid.Bool().Draw(t, "work") {
			p := someParams().Scale(rapid.Float64Range(0.1, 3).Draw(t, "scale"))
			if err := g.Run(Work{PID: 1, Model: p}); err != nil {
				t.Fatal(err)
			}
		}
		f := rapid.SampledFrom([]dvfsmodel.MHz{802, 945, 1087, 1237, 1380}).Draw(t, "core")
		if err := g.Set(CoreClock, Value(f)); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			clock.advance(every)
			look()
		}
	}
	end, err := g.Read()
	if err != nil {
		t.Fatal(err)
	}
	return end.Energy - start.Energy
}

func rapidSim(t *rapid.T) (*Sim, *fakeClock) {
	clock := newClock()
	l, err := OpenSim("sim", builtinBoards, &SimOptions{Now: clock.now, Wait: clock.advance})
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Sims()
	if err != nil {
		t.Fatal(err)
	}
	return list[0], clock
}

func rapidRead(t *rapid.T, g *Sim) Reading {
	r, err := g.Read()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheMeterBelievesACounterThatPowerConfirms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, clock := rapidSim(t)
		var m EnergyMeter
		every := time.Duration(rapid.IntRange(100, 2000).Draw(t, "ms")) * time.Millisecond
		want := drive(t, g, clock, every, func() { m.Add(rapidRead(t, g)) })
		e := m.Sum()
		if e.Source != FromCounter || e.Disagree || e.Resets != 0 || e.Uncovered != 0 {
			t.Fatalf("%+v", e)
		}
		if math.Abs(float64(e.Joules-want)) > 1e-6 {
			t.Fatalf("%v J, want %v", e.Joules, want)
		}
	})
}

func TestWithoutACounterPowerIsIntegratedToWithinASample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, clock := rapidSim(t)
		var m EnergyMeter
		every := time.Duration(rapid.IntRange(100, 2000).Draw(t, "ms")) * time.Millisecond
		var swing dvfsmodel.Watt
		var last Reading
		want := drive(t, g, clock, every, func() {
			r := rapidRead(t, g)
			r.Energy = dvfsmodel.Joule(math.NaN())
			m.Add(r)
			if !last.At.IsZero() {
				swing += dvfsmodel.Watt(math.Abs(float64(r.Power - last.Power)))
			}
			last = r
		})
		e := m.Sum()
		if e.Source != FromPower || e.Uncovered != 0 {
			t.Fatalf("%+v", e)
		}
		// Power is known at both ends of a step; in between it changed at most
		// by the lock and by the end of work that also started in it.
		bound := swing.Over(every.Seconds()) + dvfsmodel.Watt(6*300).Over(every.Seconds())
		if math.Abs(float64(e.Joules-want)) > float64(bound) {
			t.Fatalf("%v J, want %v ± %v", e.Joules, want, bound)
		}
	})
}

func TestAResetOfTheCounterIsBridgedByPower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, clock := rapidSim(t)
		if err := g.Run(Work{PID: 1, Model: someParams().Scale(100)}); err != nil {
			t.Fatal(err)
		}
		var m EnergyMeter
		clock.advance(time.Hour)
		n := rapid.IntRange(2, 100).Draw(t, "samples")
		at := rapid.IntRange(1, n-1).Draw(t, "reset at")
		for i := range n {
			if i == at {
				if err := g.InjectFault(FaultReset); err != nil {
					t.Fatal(err)
				}
			}
			m.Add(rapidRead(t, g))
			clock.advance(time.Second)
		}
		e := m.Sum()
		want := 180 * float64(n-1)
		if e.Resets != 1 || math.Abs(float64(e.Joules)-want) > 1e-6*want || e.Disagree {
			t.Fatalf("%+v, want %v J", e, want)
		}
		if n > 2 && e.Source != FromBoth {
			t.Fatalf("source %v", e.Source)
		}
	})
}

func TestACounterThatStandsStillIsFoundOutByPower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, clock := rapidSim(t)
		if err := g.Run(Work{PID: 1, Model: someParams().Scale(100)}); err != nil {
			t.Fatal(err)
		}
		var m EnergyMeter
		good, bad := rapid.IntRange(1, 60).Draw(t, "good seconds"), rapid.IntRange(20, 120).Draw(t,
			"bad seconds")
		for i := range good + bad {
			if i == good {
				if err := g.InjectFault(FaultStuck); err != nil {
					t.Fatal(err)
				}
			}
			m.Add(rapidRead(t, g))
			clock.advance(time.Second)
		}
		e := m.Sum()
		if want := 180 * float64(good+bad-1); !e.Disagree || e.Source != FromPower ||
			math.Abs(float64(e.Joules)-want) > 1e-6*want {
			t.Fatalf("%+v, want %v J", e, want)
		}
	})
}

func TestACounterThatPowerContradictsIsNotBelieved(t *testing.T) {
	for name, wrong := range map[string]func(dvfsmodel.Joule) dvfsmodel.Joule{
		"stuck":  func(dvfsmodel.Joule) dvfsmodel.Joule { return 1e6 },
		"double": func(e dvfsmodel.Joule) dvfsmodel.Joule { return 2 * e },
	} {
		g, clock := oneSim(t, SimOptions{})
		must(t, g.Run(Work{PID: 1, Model: someParams()}))
		var m EnergyMeter
		for range 61 {
			r := read(t, g)
			r.Energy = wrong(r.Energy)
			m.Add(r)
			clock.advance(time.Second)
		}
		e := m.Sum()
		if !e.Disagree || e.Source != FromPower {
			t.Errorf("%s: %+v", name, e)
		}
		near(t, name, float64(e.Joules), 60*180, 1e-6)
	}
}

func TestTheMeterOfNothingSaysSo(t *testing.T) {
	var m EnergyMeter
	if e := m.Sum(); e.Source != FromNoMeasures || !math.IsNaN(float64(e.Joules)) {
		t.Errorf("%+v", e)
	}
	nan := math.NaN()
	at := newClock().now()
	blind := Reading{At: at, Power: dvfsmodel.Watt(nan), Energy: dvfsmodel.Joule(nan)}
	m.Add(blind)
	blind.At = at.Add(time.Minute)
	m.Add(blind)
	m.Add(blind)                                // the same moment again
	m.Add(Reading{At: at, Power: 1, Energy: 1}) // and an older one
	if e := m.Sum(); !math.IsNaN(float64(e.Peak)) || !math.IsNaN(float64(e.Mean())) {
		t.Errorf("%+v", e)
	}
	if e := m.Sum(); e.Source != FromNoMeasures || e.Uncovered != time.Minute || e.Span != time.Minute ||
		e.Gap != time.Minute {
		t.Errorf("%+v", e)
	}
}

func TestTheCounterCarriesOverALongGapThatPowerCannot(t *testing.T) {
	g, clock := oneSim(t, SimOptions{})
	must(t, g.Run(Work{PID: 1, Model: someParams()}))
	var m EnergyMeter
	first := read(t, g)
	m.Add(first)
	clock.advance(99 * time.Second)
	m.Add(read(t, g))
	clock.advance(time.Hour)
	last := read(t, g)
	m.Add(last)
	e := m.Sum()
	if e.Source != FromCounter || e.Disagree || e.Gap != time.Hour {
		t.Errorf("%+v", e)
	}
	near(t, "energy", float64(e.Joules), float64(last.Energy-first.Energy), 1e-9)
}

// A device may say -1 for what it can't measure, as well as NaN.
func TestANegativeValueIsNoMeasure(t *testing.T) {
	var m EnergyMeter
	at := newClock().now()
	for i := range 10 {
		m.Add(Reading{At: at.Add(time.Duration(i) * time.Second), Power: 100, Energy: -1})
	}
	e := m.Sum()
	if e.Source != FromPower || e.Joules != 900 || e.Peak != 100 || e.Mean() != 100 {
		t.Errorf("%+v", e)
	}
}
