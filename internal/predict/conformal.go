package predict

import "math"

// Coverage is the part of true values that intervals are meant to hold.
const Coverage = 0.9

const (
	maxErrors    = 1500 // errors of a situation that are kept
	minErrors    = 40   // of them that an interval takes
	maxHalfWidth = 7.0  // logarithm: wider intervals say nothing
	minHalfWidth = 1e-9 // logarithm: narrower ones are rounding

	tailShare      = (1 - Coverage) / 2 // below an interval, and above it
	minTailShare   = -tailShare         // after corrections: below 0 until misses are made up for
	maxTailShare   = 4 * tailShare
	minTail        = 0.0003 // that is asked for
	correctionRate = 0.4    // of corrections, for each job whose value isn't known yet
	correctionJobs = 10     // jobs
	tailRank       = 10     // one in so many errors says how errors thin out
)

// minWindowErrors is how many errors there must be of a situation, and of wider ones, for those
// to be taken as they are.
var minWindowErrors = [...]int{minErrors, minErrors, 10 * minErrors}

// calibration makes intervals of predictions from the errors that earlier ones had:
// conformal prediction for each situation apart, on logarithms, below and above
// apart, over a window that moves with the jobs that end. The part that may lie
// outside is corrected by the misses that there were (adaptive conformal inference,
// Gibbs and Candès 2021), to either side, but the slower, the more jobs are on their
// way: what a miss teaches comes late, and then for a whole burst of jobs at once.
// All jobs that end at a time count the same. If those counted less that ran long,
// which tend to be those above their interval, upper ends would be too low for good.
// Where errors are too few, as in a young history, intervals are made from scores.
type calibration struct {
	errors       map[situation]*errorWindow // of predictions that what is fitted had a part in
	scores       map[situation]*errorWindow // of all predictions
	below, above float64                    // parts of truths that may lie outside
}

// errorWindow is by how much truths lay above predictions, in logarithms or as scores.
type errorWindow struct{ lastValues }

func newCalibration() *calibration {
	return &calibration{
		errors: map[situation]*errorWindow{}, scores: map[situation]*errorWindow{}, below: tailShare,
		above: tailShare,
	}
}

// interval returns where the logarithm of a value predicted in a situation lies, given its
// error scale. Errors are taken as they are where there are some of jobs that are as much
// alike and differ as much, or very many of jobs that are as much alike; else as scores.
func (c *calibration) interval(s situation, errorScale, v float64) (low, high float64) {
	wider := s.broader()
	for i, least := range minWindowErrors {
		if e := c.errors[wider[i]]; e != nil && e.count >= least {
			low, high = e.bound(c.below, false), e.bound(c.above, true)
			return v + min(-minHalfWidth, max(-maxHalfWidth, low)),
				v + max(minHalfWidth, min(maxHalfWidth, high))
		}
	}
	p := c.poolScores(s)
	low, high = errorScale*p.bound(tailShare, false), errorScale*p.bound(tailShare, true)
	return v - max(minHalfWidth, min(maxHalfWidth, low)), v + max(minHalfWidth, min(maxHalfWidth, high))
}

// bound returns the error beyond which a part of the next ones lies: the rank of split
// conformal prediction, between two errors where it isn't whole. Beyond the last one
// errors are taken to thin out exponentially, as fast as the last tenth does.
func (e *errorWindow) bound(part float64, above bool) float64 {
	last := len(e.sorted) - 1
	at := func(rank int) float64 {
		if above {
			return e.sorted[last-rank]
		}
		return e.sorted[rank]
	}
	share := max(minTail, part) * float64(last+2)
	if share < 1 {
		k := len(e.sorted) / tailRank
		return at(0) - (at(0)-at(k-1))/math.Log(float64(k))*math.Log(share)
	}
	rank := min(int(share)-1, last)
	return at(rank) + (share-math.Floor(share))*(at(min(rank+1, last))-at(rank))
}

// learn books the error of a prediction, and by it corrects how much may lie outside;
// so many jobs are on their way whose value isn't known.
func (c *calibration) learn(s situation, err float64, p *Prediction, v float64, waiting int) {
	rate := correctionRate / float64(correctionJobs+waiting)
	c.below = correctTail(c.below, v < p.Low, rate)
	c.above = correctTail(c.above, v > p.High, rate)
	for _, w := range s.broader() {
		windowOf(c.errors, w).add(err, maxErrors)
	}
}

// windowOf returns the window of a situation, empty at first.
func windowOf(all map[situation]*errorWindow, s situation) *errorWindow {
	e := all[s]
	if e == nil {
		e = &errorWindow{}
		all[s] = e
	}
	return e
}

// correctTail returns the part that may lie outside after a truth that missed its interval, or didn't.
func correctTail(part float64, missed bool, rate float64) float64 {
	part += rate * tailShare
	if missed {
		part -= rate
	}
	return min(maxTailShare, max(minTailShare, part))
}
