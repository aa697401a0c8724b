package pick

import (
	"math"
	"math/rand/v2"
)

// ages tells how long tasks still run that have run for some time: run times are
// normal around their predictions, with a relative spread.
type ages struct {
	spread float64
	table  []float64 // expected remaining time by age, both in predicted run times
}

// ageStep is the table's step, and agesKnown how many there are.
const (
	ageStep   = 0.02
	agesKnown = 250
)

func newAges(spread float64) *ages {
	a := &ages{spread: spread, table: make([]float64, agesKnown)}
	for i := range a.table {
		a.table[i] = meanRemaining(spread, float64(i)*ageStep)
	}
	return a
}

// meanRemaining is the mean of what is left of a run time around 1 that is known
// to be longer than age; never next to nothing.
func meanRemaining(spread, age float64) float64 {
	const least, tail = 0.02, 6
	x := (age - 1) / spread
	hazard := x + 1/x // of the normal distribution, far out
	if x <= tail {
		hazard = math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) / (0.5 * math.Erfc(x/math.Sqrt2))
	}
	return max(1+spread*hazard-age, least)
}

// remaining is the expected rest of a run predicted to take so long.
func (a *ages) remaining(predicted, age float64) float64 {
	i := min(int(age/predicted/ageStep), agesKnown-1)
	return predicted * a.table[max(i, 0)]
}

// draw is a random rest of such a run.
func (a *ages) draw(rng *rand.Rand, predicted, age float64) float64 {
	const tail, tries = 3, 1000
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
