package predict

// Coverage is the part of true values that intervals are meant to hold.
const Coverage = 0.9

const (
	window   = 400  // errors of a situation that are kept
	fewest   = 40   // of them that an interval takes
	farthest = 7.0  // logarithm: wider intervals say nothing
	nearest  = 1e-9 // logarithm: narrower ones are rounding

	outside   = (1 - Coverage) / 2 // below an interval, and above it
	haste     = 0.3                // of corrections, for each job that is submitted meanwhile
	unhurried = 10                 // jobs
)

// calibration makes intervals of predictions from the errors that earlier ones had:
// conformal prediction for each situation apart, on logarithms, below and above
// apart, over a window that moves with the jobs that end. The part that may lie
// outside is corrected by the misses that there were (adaptive conformal inference,
// Gibbs and Candès 2021), but the slower, the more jobs were submitted before a miss
// is known: what it teaches comes late, and then for a whole burst of jobs at once.
type calibration struct {
	errors       map[situation]*errorWindow
	below, above float64 // parts of truths that may lie outside
}

// errorWindow is by how much truths lay above predictions, in logarithms.
type errorWindow struct{ lately }

func newCalibration() *calibration {
	return &calibration{errors: map[situation]*errorWindow{}, below: outside, above: outside}
}

// interval is where the logarithm of a value predicted in a situation lies.
func (c *calibration) interval(s situation, v float64) (low, high float64) {
	for _, w := range s.wider() {
		if e := c.errors[w]; e != nil && e.count >= fewest {
			low, high = e.bound(c.below, false), e.bound(c.above, true)
			return v + min(-nearest, max(-farthest, low)), v + max(nearest, min(farthest, high))
		}
	}
	return v - farthest/2, v + farthest/2
}

// bound is the error beyond which a part of the next ones lies, by the rank of split
// conformal prediction.
func (e *errorWindow) bound(part float64, above bool) float64 {
	n := len(e.sorted)
	rank := min(n, max(1, int(part*float64(n+1))))
	if above {
		return e.sorted[n-rank]
	}
	return e.sorted[rank-1]
}

// learn books the error of a prediction, and by it corrects how much may lie outside;
// meanwhile are the jobs that were submitted before it was known.
func (c *calibration) learn(s situation, err float64, p *Prediction, v float64, meanwhile int) {
	rate := haste / float64(unhurried+meanwhile)
	c.below = corrected(c.below, v < p.Low, rate)
	c.above = corrected(c.above, v > p.High, rate)
	for _, w := range s.wider() {
		e := c.errors[w]
		if e == nil {
			e = &errorWindow{}
			c.errors[w] = e
		}
		e.keep(err, window)
	}
}

func corrected(part float64, missed bool, rate float64) float64 {
	part += rate * outside
	if missed {
		part -= rate
	}
	return min(2*outside, max(outside/10, part))
}
