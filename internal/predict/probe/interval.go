package probe

import (
	"math"
	"slices"
)

const (
	missOneIn    = 10   // one truth in so many may lie outside its interval: predict.Coverage
	maxHalfWidth = 20.0 // logarithm: wider intervals say nothing, and might not be finite
)

// uncertainty is how unsure ridge regression is of a job that it hasn't learnt from: the more,
// the less the job's words and numbers are like those of others. Errors grow with it, so
// it is what they are measured in before their quantile is taken, and what makes an
// interval of that quantile again (locally weighted conformal prediction). It is
// the root of the standard deviation which a Gaussian process of the same penalties has
// there, in units of a job's noise: between the deviation itself, which at some dozen
// jobs makes intervals of jobs unlike others too wide, and one width for all, which is
// too narrow for them.
type uncertainty struct {
	penalties
	mean   []float64   // by coordinate
	shares [][]float64 // by coordinate: what each job tells of it, orthonormal
	centre []float64   // by job: of the mean
}

// ofJob returns the doubt about a job, in units of what is left where all is known: 1 at least.
// Most coordinates of a source's embedding are zero, and cost next to nothing.
func (d *uncertainty) ofJob(e []float64) float64 {
	known := make([]float64, len(d.centre))
	for i, v := range d.centre {
		known[i] = -v
	}
	variance := 1 + 1/float64(len(known)) // its own noise, and that of the mean
	for k, v := range e {
		c := v - d.mean[k]
		variance += c * c / d.penaltyOf(k)
		if v != 0 {
			addScaled(known, v, d.shares[k])
		}
	}
	return fourthRoot(variance - dot(known, known))
}

// fourthRoot returns the doubt of a variance.
func fourthRoot(variance float64) float64 { return math.Sqrt(math.Sqrt(max(1, variance))) }

// addScaled adds a multiple of numbers to others.
func addScaled(to []float64, times float64, of []float64) {
	for i, v := range of {
		to[i] += times * v
	}
}

// margin is by how many doubts estimates lie off the truth at most, nine times in ten,
// in logarithms and to either side: the quantile of split conformal prediction over errors of jobs
// that were left out. Fewer than nine errors don't reach that far: then it is what
// the next one of an exponential distribution keeps below, whose mean is known from
// so many.
func margin(errs, doubts []float64) float64 {
	n, sum := len(errs), 0.0
	off := make([]float64, n)
	for i, err := range errs {
		off[i] = math.Abs(err) / doubts[i]
		sum += off[i]
	}
	slices.Sort(off)
	if rank := n + 1 - (n+1)/missOneIn; rank <= n {
		return off[rank-1]
	}
	return max(off[n-1], sum*(math.Pow(missOneIn, 1/float64(n))-1))
}

// outputBounds bounds estimates: a source without the numbers that all others have would
// else be expected to take a millisecond or a century.
type outputBounds struct{ least, most float64 } // logarithms

const boundsSlack = 1.1 // logarithm: three times less than the least value, or more than the most

func (s *Set) bounds() outputBounds {
	logs := s.logs()
	return outputBounds{least: slices.Min(logs) - boundsSlack, most: slices.Max(logs) + boundsSlack}
}

// clamp returns a logarithm, or the bound that it is beyond.
func (r outputBounds) clamp(v float64) float64 { return min(r.most, max(r.least, v)) }

// estimate is that of a logarithm and of how far off it may be.
func (r outputBounds) estimate(v, off float64) Estimate {
	v, off = r.clamp(v), min(maxHalfWidth, off)
	return Estimate{Value: math.Exp(v), Low: math.Exp(v - off), High: math.Exp(v + off)}
}
