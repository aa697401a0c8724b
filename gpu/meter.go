package gpu

import (
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// EnergySource says where an energy comes from.
type EnergySource string

// Sources, best first.
const (
	FromCounter EnergySource = "counter" // the GPU's own counter
	// The counter, and power over time where it was reset or silent.
	FromBoth       EnergySource = "spliced"
	FromPower      EnergySource = "integrated" // power over time, by trapezoids
	FromNoMeasures EnergySource = "none"       // nothing was measured
)

// Energy is what a GPU used between the first and the last reading of an [EnergyMeter].
type Energy struct {
	Joules dvfsmodel.Joule // NaN when Source is FromNoMeasures
	Source EnergySource
	// Counter and Integrated are the same energy by either measure, over those
	// steps only for which both are known: what the check compares.
	Counter, Integrated dvfsmodel.Joule
	// Disagree tells that the two differ by more than sampling explains.
	Disagree  bool
	Resets    int            // times the counter went back
	Peak      dvfsmodel.Watt // the highest power of a reading; NaN when none is known
	Gap       time.Duration  // the longest time between two readings
	Span      time.Duration  // from the first reading to the last
	Uncovered time.Duration  // of which neither measure tells
}

// Mean returns the mean power over the time of which a measure tells; NaN without
// such a time.
func (e *Energy) Mean() dvfsmodel.Watt {
	covered := e.Span - e.Uncovered
	if covered <= 0 {
		return dvfsmodel.Watt(math.NaN())
	}
	return dvfsmodel.Watt(float64(e.Joules) / covered.Seconds())
}

// EnergyMeter sums a GPU's energy over readings. The zero value is ready.
type EnergyMeter struct {
	last             Reading
	started, powered bool

	counted, integrated dvfsmodel.Joule // parts of the sum by source
	// The whole by power alone, for when the counter can't be trusted.
	power                         dvfsmodel.Joule
	powerUncovered                time.Duration
	checkCounter, checkPower      dvfsmodel.Joule
	rough                         dvfsmodel.Joule // how far trapezoids may be off over the checked steps
	countedSteps, integratedSteps int
	peak                          dvfsmodel.Watt
	e                             Energy
}

// Steps longer than this say nothing about the counter: power may have been
// anything in between.
const maxCheckedStep = 30 * time.Second

// Besides what sampling explains, the two measures may differ by this part of
// the energy, and by the energy of this time at the highest power: sensors show
// a mean over up to a second, and counters lag behind.
const (
	tolerance  = 0.1
	counterLag = 2 * time.Second
)

// Add takes the next reading. One that isn't later than the last is dropped.
func (m *EnergyMeter) Add(r Reading) {
	d := r.At.Sub(m.last.At)
	if m.started && d <= 0 {
		return
	}
	if IsMeasured(r.Power) {
		m.peak, m.powered = max(m.peak, r.Power), true
	}
	if !m.started {
		m.last, m.started = r, true
		return
	}
	m.e.Span += d
	m.e.Gap = max(m.e.Gap, d)
	m.step(r, d)
	m.last = r
}

func (m *EnergyMeter) step(r Reading, d time.Duration) {
	byPower := (m.last.Power + r.Power).Over(d.Seconds() / 2)
	byCounter := r.Energy - m.last.Energy
	powerKnown := IsMeasured(m.last.Power) && IsMeasured(r.Power)
	counterKnown := IsMeasured(m.last.Energy) && IsMeasured(r.Energy)
	if counterKnown && byCounter < 0 {
		m.e.Resets++
		counterKnown = false
	}
	if powerKnown {
		m.power += byPower
	} else {
		m.powerUncovered += d
	}
	switch {
	case counterKnown:
		m.counted += byCounter
		m.countedSteps++
	case powerKnown:
		m.integrated += byPower
		m.integratedSteps++
	default:
		m.e.Uncovered += d
	}
	if counterKnown && powerKnown && d <= maxCheckedStep {
		m.checkCounter += byCounter
		m.checkPower += byPower
		m.rough += dvfsmodel.Joule(math.Abs(float64(r.Power-m.last.Power)) * d.Seconds() / 2)
	}
}

// SoFar returns what was booked at each step, in its turn: [EnergyMeter.Sum] is the same as
// long as power doesn't contradict the counter.
func (m *EnergyMeter) SoFar() dvfsmodel.Joule { return m.counted + m.integrated }

// IsMeasured reports whether a value of a [Reading] is known: NaN, an infinity and
// a negative value aren't.
func IsMeasured[T ~float64](v T) bool { return v >= 0 && !math.IsInf(float64(v), 1) }

// Sum returns the energy so far. The counter is believed unless power contradicts
// it by more than sampling explains; then power is.
func (m *EnergyMeter) Sum() Energy {
	e := m.e
	e.Counter, e.Integrated = m.checkCounter, m.checkPower
	off := dvfsmodel.Joule(math.Abs(float64(e.Counter - e.Integrated)))
	e.Disagree = off > m.rough+m.peak.Over(counterLag.Seconds())+tolerance*max(e.Counter, e.Integrated)
	e.Joules = m.counted + m.integrated
	if e.Peak = m.peak; !m.powered {
		e.Peak = dvfsmodel.Watt(math.NaN())
	}
	switch {
	case e.Disagree:
		e.Source, e.Joules, e.Uncovered = FromPower, m.power, m.powerUncovered
	case m.countedSteps > 0 && m.integratedSteps > 0:
		e.Source = FromBoth
	case m.countedSteps > 0:
		e.Source = FromCounter
	case m.integratedSteps > 0:
		e.Source = FromPower
	default:
		e.Source, e.Joules = FromNoMeasures, dvfsmodel.Joule(math.NaN())
	}
	return e
}
