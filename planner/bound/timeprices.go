package bound

import (
	"math"
	"slices"
)

// timePrices holds prices over time that are constant between ends.
type timePrices struct {
	ends  []float64 // seconds, ascending
	level []float64 // up to each of them, and beyond the last
	paid  []float64 // from 0 to each of them
}

func newTimePrices(ends []float64) timePrices {
	return timePrices{ends: ends, level: make([]float64, len(ends)+1), paid: make([]float64, len(ends))}
}

// sum sets the levels from prices that end at each end, less values that begin there; the first value begins
// at 0.
func (s *timePrices) sum(price, value []float64) {
	sum := 0.0
	for j := len(s.ends) - 1; j >= 0; j-- {
		if price != nil {
			sum += price[j]
		}
		s.level[j] = sum
	}
	sum = 0
	for j, v := range value {
		sum += v
		s.level[j] -= sum
	}
	s.level[len(s.ends)] = -sum
	last, paid := 0.0, 0.0
	for j, end := range s.ends {
		paid += s.level[j] * (end - last)
		s.paid[j], last = paid, end
	}
}

// priceUntil returns the price of a GPU from 0 to a moment.
func (s *timePrices) priceUntil(at float64) float64 {
	n := len(s.ends)
	switch {
	case at <= 0:
		return 0
	case n == 0:
		return s.level[0] * at
	case at < s.ends[n-1]:
		j, _ := slices.BinarySearch(s.ends, at)
		return s.paid[j] - s.level[j]*(s.ends[j]-at)
	case s.level[n] == 0:
		return s.paid[n-1]
	}
	return s.paid[n-1] + s.level[n]*(at-s.ends[n-1])
}

// priceBefore returns the price of a GPU for some seconds before a moment, which may be +Inf.
func (s *timePrices) priceBefore(at, seconds float64) float64 {
	if math.IsInf(at, 1) {
		return s.level[len(s.ends)] * seconds
	}
	return s.priceUntil(at) - s.priceUntil(at-seconds)
}
