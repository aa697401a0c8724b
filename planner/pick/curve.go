package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// capacityProfile is how many GPUs of a class are free from each of some rising times on.
type capacityProfile struct {
	at, free []float64 // seconds, GPUs

	// Times so far apart at most, in seconds, are one; 0: each is a step of its own.
	// The same end reckoned at two events differs by rounding: what fits exactly
	// between two runs by the plan of one event has to fit at the next one.
	instant float64
}

func (c *capacityProfile) set(from *capacityProfile) {
	c.at, c.free, c.instant = append(c.at[:0], from.at...), append(c.free[:0], from.free...), from.instant
}

func (c *capacityProfile) dropBefore(until float64) {
	past := 0
	for past+1 < len(c.at) && c.at[past+1] <= until {
		past++
	}
	c.at, c.free = slices.Delete(c.at, 0, past), slices.Delete(c.free, 0, past)
	c.at[0] = max(c.at[0], until)
}

// addFreed notes an amount that comes free, before the curve is summed up.
func (c *capacityProfile) addFreed(at, amount float64) {
	i := len(c.at)
	for i > 1 && c.at[i-1] > at+c.instant {
		i--
	}
	if c.instant > 0 && i > 1 && c.at[i-1] >= at-c.instant {
		c.at[i-1], c.free[i-1] = max(c.at[i-1], at), c.free[i-1]+amount
		return
	}
	c.at, c.free = slices.Insert(c.at, i, at), slices.Insert(c.free, i, amount)
}

func (c *capacityProfile) sumUp() {
	for i := 1; i < len(c.free); i++ {
		c.free[i] += c.free[i-1]
	}
}

// earliest returns the first step of the curve from which on an amount is free for so
// many seconds; below 0: never.
func (c *capacityProfile) earliest(amount, seconds float64) int {
	amount -= planner.ShareSlack
	for i := 0; i < len(c.at); {
		if c.free[i] < amount {
			i++
			continue
		}
		end, j := c.at[i]+seconds-c.instant, i+1
		for j < len(c.at) && c.at[j] < end && c.free[j] >= amount {
			j++
		}
		if j == len(c.at) || c.at[j] >= end {
			return i
		}
		i = j + 1
	}
	return -1
}

// isFree reports whether an amount is free for so many seconds from the first step of
// the curve on: earliest would answer 0.
func (c *capacityProfile) isFree(amount, seconds float64) bool {
	amount -= planner.ShareSlack
	end := c.at[0] + seconds - c.instant
	for i := 0; i == 0 || (i < len(c.at) && c.at[i] < end); i++ {
		if c.free[i] < amount {
			return false
		}
	}
	return true
}

// split returns the step that begins at a time, not before the first; it is made where
// there is none.
func (c *capacityProfile) split(at float64) (step int) {
	step, _ = slices.BinarySearch(c.at, at-c.instant)
	if step == len(c.at) || c.at[step] > at+c.instant {
		c.at, c.free = slices.Insert(c.at, step, at), slices.Insert(c.free, step, c.free[step-1])
	}
	return step
}

// firstFree returns the first time, not before another one, from which an amount is free
// for so long; +Inf: never.
func (c *capacityProfile) firstFree(at, amount, seconds float64) float64 {
	amount -= planner.ShareSlack
	at = max(at, c.at[0])
	step, found := slices.BinarySearch(c.at, at)
	if !found {
		step--
	}
	for ; step < len(c.at) && c.at[step] < at+seconds-c.instant; step++ {
		if c.free[step] < amount {
			if step+1 == len(c.at) {
				return math.Inf(1)
			}
			at = c.at[step+1]
		}
	}
	return at
}

// book takes an amount for so long from a step of the curve on.
func (c *capacityProfile) book(step int, amount, seconds float64) {
	end, last := c.at[step]+seconds, step
	for last < len(c.at) && c.at[last] < end-c.instant {
		last++
	}
	if last == len(c.at) || c.at[last] > end+c.instant {
		c.at, c.free = slices.Insert(c.at, last, end), slices.Insert(c.free, last, c.free[last-1])
	}
	for i := step; i < last; i++ {
		c.free[i] -= amount
	}
}
