package correlate

import (
	"fmt"
	"math"
	"slices"
)

// Candidates follows the correlations of many GPUs, each with some others that
// it might share its work with, over a window of their latest samples. A tick,
// one sample of every GPU, costs O(1) for each pair.
//
// Each pair's moments gain the new sample and lose the oldest. What rounding
// leaves behind is bounded: every tick so many pairs are computed afresh that
// each pair has its turn once in a window, and a pair whose series have
// calmed down so much that the rest of older values could matter, or that may
// not vary at all, is computed afresh when it is asked for.
//
// It takes 64 bytes for each pair, and 8 for each sample in the windows.
type Candidates struct {
	window int
	values []float64 // by series, window values each from its origin; a ring
	origin []float64 // by series: its first value; a gap until there is one
	offset int       // where in the rings the next values go
	filled int       // how many values each ring has
	newest []float64 // by series: the value that enters the window, from its origin
	oldest []float64 // by series: the one that leaves it
	turn   int       // which pair is computed afresh next

	peak    [3][]float64 // by series: the greatest magnitude in this round of the ring and the two before
	first   []int        // by series: its first pair; then their number
	partner []int        // by pair: the candidate
	owner   []int        // by pair: the series
	pairs   []moments
	inverse []float64
}

// NewCandidates makes an empty window over the latest samples of so many
// series; candidates[i] lists those that series i is correlated with, by
// number.
func NewCandidates(series, window int, candidates [][]int) (*Candidates, error) {
	if window < 2 {
		return nil, fmt.Errorf("correlate a window of %d samples: at least 2 are needed", window)
	}
	if len(candidates) != series {
		return nil, fmt.Errorf("correlate candidates of %d series: %d lists of them", series, len(candidates))
	}
	c := &Candidates{window: window, inverse: reciprocals(window)}
	c.values, c.oldest, c.newest = make([]float64, series*window), make([]float64, series),
		make([]float64, series)
	c.origin = slices.Repeat([]float64{math.NaN()}, series)
	for round := range c.peak {
		c.peak[round] = make([]float64, series)
	}
	for i, list := range candidates {
		c.first = append(c.first, len(c.partner))
		for _, partner := range list {
			if partner < 0 || partner >= series {
				return nil, fmt.Errorf("correlate series %d of %d: candidate %d doesn't exist", i,
					series, partner)
			}
			c.partner, c.owner = append(c.partner, partner), append(c.owner, i)
		}
	}
	c.first = append(c.first, len(c.partner))
	c.pairs = make([]moments, len(c.partner))
	return c, nil
}

// AddSample takes the next value of each series, in their order; NaN and infinities
// are gaps.
func (c *Candidates) AddSample(values []float64) error {
	series := len(c.first) - 1
	if len(values) != series {
		return fmt.Errorf("correlate the next values of %d series: %d of them", series, len(values))
	}
	for i, v := range values {
		if !isFinite(c.origin[i]) {
			c.origin[i] = v
		}
		c.newest[i], c.oldest[i] = v-c.origin[i], c.values[i*c.window+c.offset]
	}
	for pair := range c.pairs {
		i, j := c.owner[pair], c.partner[pair]
		c.slide(&c.pairs[pair], c.newest[i], c.newest[j], c.oldest[i], c.oldest[j])
	}
	c.storeSample()
	for range (len(c.pairs) + c.window - 1) / c.window {
		c.pairs[c.turn] = c.recompute(c.turn)
		c.turn = (c.turn + 1) % len(c.pairs)
	}
	return nil
}

// slide lets a sample into a pair's moments, and the oldest one out.
func (c *Candidates) slide(m *moments, x, y, oldX, oldY float64) {
	if c.filled == c.window && isFinite(oldX) && isFinite(oldY) {
		if m.n == 1 {
			*m = moments{}
		} else {
			m.remove(oldX, oldY, c.inverse[int(m.n)-2])
		}
	}
	if isFinite(x) && isFinite(y) {
		m.add(x, y, c.inverse[int(m.n)])
	}
}

// storeSample puts the newest values into the rings.
func (c *Candidates) storeSample() {
	if c.offset == 0 {
		c.peak[0], c.peak[1], c.peak[2] = c.peak[2], c.peak[0], c.peak[1]
		clear(c.peak[0])
	}
	for i, v := range c.newest {
		c.values[i*c.window+c.offset] = v
		if isFinite(v) {
			c.peak[0][i] = max(c.peak[0][i], math.Abs(v))
		}
	}
	c.offset = (c.offset + 1) % c.window
	c.filled = min(c.window, c.filled+1)
}

// recompute computes a pair's moments from the samples in its window.
func (c *Candidates) recompute(pair int) moments {
	m, origin := momentsOf(c.ring(c.owner[pair]), c.ring(c.partner[pair]))
	m.meanX += origin.x
	m.meanY += origin.y
	return m
}

// ring are the values of a series in the window; not in their order, but in
// the same as of every other series.
func (c *Candidates) ring(series int) []float64 {
	return c.values[series*c.window:][:c.filled]
}

// Pearson is the correlation of a series with the candidate that has this
// place in its list, over the window.
func (c *Candidates) Pearson(series, place int) Result {
	pair := c.first[series] + place
	m := c.pairs[pair]
	if c.needsRecompute(m.sumXX, series, m.n) || c.needsRecompute(m.sumYY, c.partner[pair], m.n) {
		return Pearson(c.ring(series), c.ring(c.partner[pair]))
	}
	return m.result(c.filled)
}

// needsRecompute reports whether a series varies so little against what it was since
// its pairs were last computed afresh that rounding could matter. Where it
// doesn't, seven digits hold in windows of 300 samples.
func (c *Candidates) needsRecompute(squares float64, series int, n float64) bool {
	const digits = 1e-4
	bound := digits * max(c.peak[0][series], c.peak[1][series], c.peak[2][series])
	return !(squares > n*bound*bound)
}
