package pick

import (
	"math"
	"math/rand/v2"
)

// residualTimes tells how long tasks still run that have run for some time: run times are
// normal around their predictions, with a relative spread.
type residualTimes struct {
	spread float64
	table  []float64 // expected remaining time by age, both in predicted run times
	fine   bool      // between two steps of the table it is read from both

	instant float64 // seconds by which two reckonings of an end may differ that are to be one
}

// ageStep is the table's step, in predicted run times, and agesKnown how many there
// are: up to five predicted run times.
const (
	ageStep   = 0.02
	agesKnown = 250
)

// promiseSlack is the rounding that a promised start may carry, seconds.
const promiseSlack = 1e-6

// newResidualTimes are ages by which a task that is about to end, or overdue, still runs for
// a moment.
func newResidualTimes(spread float64) *residualTimes {
	const least = 0.02 // predicted run times
	a := exactResidualTimes(spread)
	for i := range a.table {
		a.table[i] = max(a.table[i], least)
	}
	a.fine, a.instant = false, 0
	return a
}

// exactResidualTimes are ages that are exact where run times are as predicted.
func exactResidualTimes(spread float64) *residualTimes {
	a := &residualTimes{spread: spread, table: make([]float64, agesKnown), fine: true, instant: promiseSlack}
	for i := range a.table {
		a.table[i] = meanRemaining(spread, float64(i)*ageStep)
	}
	return a
}

// meanRemaining returns the mean of what is left of a run time that is normal around 1
// and known to be longer than age.
func meanRemaining(spread, age float64) float64 {
	const tail = 6 // standard deviations; beyond, hazard is 0/0 before long, and its limit will do
	x := (age - 1) / spread
	if x > tail {
		return spread / x
	}
	hazard := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) / (0.5 * math.Erfc(x/math.Sqrt2))
	return 1 + spread*hazard - age
}

// remaining returns the expected rest of a run predicted to take so long.
func (a *residualTimes) remaining(predicted, age float64) float64 {
	steps := min(max(age/predicted/ageStep, 0), agesKnown-1)
	i := int(steps)
	rest := a.table[i]
	if a.fine && i+1 < agesKnown {
		rest += (steps - float64(i)) * (a.table[i+1] - rest)
	}
	return predicted * rest
}

// draw returns a random rest of such a run.
func (a *residualTimes) draw(rng *rand.Rand, predicted, age float64) float64 {
	const tail, tries = 3, 1000 // standard deviations; beyond, drawing until one fits would take too long
	sd := a.spread * predicted
	if over := age - predicted; over > tail*sd {
		return max(1, rng.ExpFloat64()*sd*sd/over)
	}
	for range tries {
		if x := predicted + sd*rng.NormFloat64(); x > age {
			return x - age
		}
	}
	return predicted * a.table[agesKnown-1]
}

// wakeAfter is after which part of a usual run time the waiting tasks are looked
// at again if nothing happens.
const wakeAfter = 0.15

// newRand returns the random source of a run.
func newRand(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, seed))
}
