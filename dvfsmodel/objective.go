package dvfsmodel

import (
	"errors"
	"fmt"
	"math"
)

// Objective is what a setting is chosen for: the least
//
//	(EnergyWeight·E + TimeWeight·t) · t^DelayPower
//
// where DelayPower is 0 for energy, 1 for the energy-delay product E·t, 2 for
// E·t². Weights are per joule and per second; only their ratio matters, and a
// price on time acts like power that no clock changes: it adds
// TimeWeight/EnergyWeight watts to P0. The zero value minimises energy alone.
type Objective struct {
	EnergyWeight float64
	TimeWeight   float64
	DelayPower   int
}

// MinEnergy minimises energy, exactly the paper's objective.
func MinEnergy() Objective { return Objective{EnergyWeight: 1} }

// PricedTime minimises energy plus price joules for each second.
func PricedTime(price Watt) Objective {
	return Objective{EnergyWeight: 1, TimeWeight: float64(price)}
}

// ObjectiveByName returns the objective called energy, edp (E·t), ed2p (E·t²)
// or time.
func ObjectiveByName(name string) (Objective, error) {
	switch name {
	case "energy", "":
		return MinEnergy(), nil
	case "edp":
		return Objective{EnergyWeight: 1, DelayPower: 1}, nil
	case "ed2p":
		return Objective{EnergyWeight: 1, DelayPower: 2}, nil
	case "time":
		return Objective{TimeWeight: 1}, nil
	}
	return Objective{}, fmt.Errorf("unknown objective %q, want energy, edp, ed2p or time", name)
}

// WithHost returns the objective of a GPU with its share of the node's power: energy that
// no clock changes, for as long as the run lasts. Without weights energy counts.
func (o Objective) WithHost(w Watt) Objective {
	if o.EnergyWeight == 0 && o.TimeWeight == 0 {
		o.EnergyWeight = 1
	}
	o.TimeWeight += o.EnergyWeight * float64(w)
	return o
}

// WithBacklog adds what it costs that others wait while a GPU is held: each of so many GPUs that are
// waited for by GPU, its second at the weight.
func (o Objective) WithBacklog(weight, backlog float64) Objective {
	o.TimeWeight += weight * backlog
	return o
}

// Validate reports weights that are negative or not finite.
func (o Objective) Validate() error {
	for _, w := range [...]float64{o.EnergyWeight, o.TimeWeight} {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Errorf("weight %v, want a finite number of 0 or more", w)
		}
	}
	if o.DelayPower < 0 || o.DelayPower > 2 {
		return fmt.Errorf("delay power %d, want 0, 1 or 2", o.DelayPower)
	}
	return nil
}

// timePrice returns the watts that the objective adds to P0; +Inf means that only time
// counts.
func (o Objective) timePrice() float64 {
	switch {
	case o.EnergyWeight > 0:
		return o.TimeWeight / o.EnergyWeight
	case o.TimeWeight > 0:
		return math.Inf(1)
	}
	return 0
}

// Cost returns the objective's value at a point; lower is better.
func (o Objective) Cost(p Point) float64 {
	energyWeight := o.EnergyWeight
	if energyWeight == 0 && o.TimeWeight == 0 {
		energyWeight = 1
	}
	cost := energyWeight*float64(p.Energy) + o.TimeWeight*p.Time
	for range o.DelayPower {
		cost *= p.Time
	}
	return cost
}

// ErrInfeasible is what [errors.Is] finds in an [InfeasibleError].
var ErrInfeasible = errors.New("no supported clock meets the time limit")

// InfeasibleError says that a time limit is below the shortest possible run
// time, and what that time is.
type InfeasibleError struct {
	Limit   float64 // seconds asked for
	MinTime float64 // seconds at the fastest setting
}

// Error states both times.
func (e *InfeasibleError) Error() string {
	return fmt.Sprintf("%v: %.6g s allowed, %.6g s needed at the fastest clocks", ErrInfeasible,
		e.Limit, e.MinTime)
}

// Unwrap makes errors.Is(err, ErrInfeasible) true.
func (e *InfeasibleError) Unwrap() error { return ErrInfeasible }

// limitSlack is the relative tolerance of "limit ≥ minimum time": a limit
// equal to the minimum up to rounding is feasible.
const limitSlack = 1e-12

// MeetsLimit reports whether a run time meets a limit, up to rounding.
func MeetsLimit(time, limit float64) bool { return limit >= time*(1-limitSlack) }
