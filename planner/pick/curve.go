package pick

import "slices"

// curve is how much of a class is free from each of some rising times on.
type curve struct{ at, free []float64 }

// gain notes an amount that comes free, before the curve is summed up.
func (c *curve) gain(at, amount float64) {
	c.at, c.free = append(c.at, at), append(c.free, amount)
	i := len(c.at) - 1
	for ; i > 1 && c.at[i-1] > at; i-- {
		c.at[i], c.free[i] = c.at[i-1], c.free[i-1]
	}
	c.at[i], c.free[i] = at, amount
}

// sumUp makes a curve of what was noted.
func (c *curve) sumUp() {
	for i := 1; i < len(c.free); i++ {
		c.free[i] += c.free[i-1]
	}
}

// earliest is the first step of the curve from which on an amount is free for so
// long; below 0: never.
func (c *curve) earliest(amount, seconds float64) int {
	amount -= shareSlack
	for i := 0; i < len(c.at); {
		if c.free[i] < amount {
			i++
			continue
		}
		end, j := c.at[i]+seconds, i+1
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

// book takes an amount for so long from a step of the curve on.
func (c *curve) book(step int, amount, seconds float64) {
	end, last := c.at[step]+seconds, step
	for last < len(c.at) && c.at[last] < end {
		last++
	}
	if last == len(c.at) || c.at[last] > end {
		c.at, c.free = slices.Insert(c.at, last, end), slices.Insert(c.free, last, c.free[last-1])
	}
	for i := step; i < last; i++ {
		c.free[i] -= amount
	}
}
