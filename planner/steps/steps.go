// Package steps has what is constant between moments: power, prices or use over time.
package steps

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Step is a value from a time on, seconds, until that of the next step.
type Step[V ~float64] struct {
	From  float64
	Value V
}

// Function is a value over time: steps, ascending. The last one has no end.
type Function[V ~float64] []Step[V]

// Constant returns a function that is the same at all times.
func Constant[V ~float64](value V) Function[V] { return Function[V]{{math.Inf(-1), value}} }

// index returns the step that holds at a time; -1 before the first.
func (f Function[V]) index(at float64) int {
	i, found := slices.BinarySearchFunc(f, at, func(s Step[V], at float64) int {
		return cmp.Compare(s.From, at)
	})
	if found {
		return i
	}
	return i - 1
}

// At returns the value at a time that isn't before the first step.
func (f Function[V]) At(at float64) V { return f[f.index(at)].Value }

// NextAfter returns when the first step after a time begins; +Inf: none does.
func (f Function[V]) NextAfter(at float64) float64 {
	if next := f.index(at) + 1; next < len(f) {
		return f[next].From
	}
	return math.Inf(1)
}

// split makes a step begin at a time, and returns its index.
func (f *Function[V]) split(at float64) int {
	i := f.index(at)
	if (*f)[i].From == at {
		return i
	}
	*f = slices.Insert(*f, i+1, Step[V]{From: at, Value: (*f)[i].Value})
	return i + 1
}

// Add adds a value during a time that isn't before the first step.
func (f *Function[V]) Add(during planner.Interval, value V) {
	if during.From >= during.To {
		return
	}
	from, to := f.split(during.From), f.split(during.To)
	for i := from; i < to; i++ {
		(*f)[i].Value += value
	}
}

// During yields the steps that hold at some time of an interval, the part of it in which each does.
func (f Function[V]) During(interval planner.Interval) func(yield func(planner.Interval, V) bool) {
	return func(yield func(planner.Interval, V) bool) {
		for i := max(0, f.index(interval.From)); i < len(f) && f[i].From < interval.To; i++ {
			part := planner.Interval{From: max(interval.From, f[i].From), To: interval.To}
			if i+1 < len(f) {
				part.To = min(part.To, f[i+1].From)
			}
			if !yield(part, f[i].Value) {
				return
			}
		}
	}
}

// WhenAtMost returns the first time from one on, which isn't before the first step, at which the value is at
// most so much for a length of time; +Inf: there is none.
func (f Function[V]) WhenAtMost(from, length float64, most V) float64 {
	for i := f.index(from); i < len(f); i++ {
		end := math.Inf(1)
		if i+1 < len(f) {
			end = f[i+1].From
		}
		if f[i].Value > most {
			from = end
		} else if end >= from+length {
			break
		}
	}
	return from
}

// Integral returns the integral of the value over a time; the first step holds before it, too. That of a
// price times a power is what the energy costs.
func (f Function[V]) Integral(during planner.Interval) (sum V) {
	if len(f) == 0 {
		return 0
	}
	if first := f[0]; during.From < first.From {
		sum = first.Value * V(min(during.To, first.From)-during.From)
		during.From = min(during.To, first.From)
	}
	for part, value := range f.During(during) {
		sum += value * V(part.Len())
	}
	return sum
}

// MeanAndPeak returns the mean and the highest value, 0 or more, during a time.
func (f Function[V]) MeanAndPeak(interval planner.Interval) (mean, peak V) {
	for part, value := range f.During(interval) {
		mean += value * V(part.Len()/interval.Len())
		peak = max(peak, value)
	}
	return mean, peak
}
