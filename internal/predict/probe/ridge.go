package probe

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Ridge penalties are chosen from these: of coordinates of style and of the others.
// Names' numbers explain more than words do, so theirs are the smaller ones.
var (
	stylePenalties  = []float64{30, 100, 300}
	numberPenalties = []float64{0.1, 0.3, 1, 3}
)

// penalties are those of coordinates: of the first ones, of style, and of the others.
type penalties struct {
	split         int
	style, number float64
}

func (p *penalties) penaltyOf(k int) float64 {
	if k < p.split {
		return p.style
	}
	return p.number
}

// minLeverageGap is the part of a job that the others don't tell, at least.
const minLeverageGap = 1e-12

// ridge is a linear probe in its dual form: there are more coordinates than jobs.
type ridge struct {
	weights []float64 // by coordinate
	mean    []float64 // by coordinate
	offset  float64
	margin  float64
	doubt   *uncertainty
	reach   outputBounds
}

// fitRidge fits with the penalties whose errors on left-out jobs are least.
func fitRidge(s *Set) (*ridge, error) {
	d := newDual(s)
	found, err := d.best()
	if err != nil {
		return nil, err
	}
	r := d.ridge(found)
	r.doubt, r.reach = d.uncertaintyOf(found), s.bounds()
	errs := make([]float64, len(found.errors))
	for i, err := range found.errors {
		truth := d.offset + d.y[i]
		errs[i] = truth - r.reach.clamp(truth-err)
	}
	r.margin = margin(errs, found.doubts)
	return r, nil
}

// Estimate returns the probe's answer.
func (r *ridge) Estimate(e []float64) Estimate {
	return r.reach.estimate(r.value(e), r.margin*r.doubt.ofJob(e))
}

// value returns the logarithm that it expects.
func (r *ridge) value(e []float64) float64 {
	v := r.offset
	for k, w := range r.weights {
		v += w * (e[k] - r.mean[k])
	}
	return v
}

// dualRidge is what all penalties have in common.
type dualRidge struct {
	split         int // coordinates of style
	centred       [][]float64
	mean          []float64
	y             []float64 // logarithms less their mean
	offset        float64
	style, number *mat.SymDense // inner products
}

func newDual(s *Set) *dualRidge {
	n, width := len(s.Embeddings), len(s.Embeddings[0])
	d := &dualRidge{
		mean: make([]float64, width), y: s.logs(), style: mat.NewSymDense(n, nil),
		number: mat.NewSymDense(n, nil),
	}
	for i, e := range s.Embeddings {
		for k, v := range e {
			d.mean[k] += v / float64(n)
		}
		d.offset += d.y[i] / float64(n)
	}
	for i, e := range s.Embeddings {
		c := make([]float64, width)
		for k, v := range e {
			c[k] = v - d.mean[k]
		}
		d.centred = append(d.centred, c)
		d.y[i] -= d.offset
	}
	if d.split = s.Style; d.split == 0 {
		d.split = width
	}
	for i := range n {
		for k := i; k < n; k++ {
			d.style.SetSym(i, k, dot(d.centred[i][:d.split], d.centred[k][:d.split]))
			d.number.SetSym(i, k, dot(d.centred[i][d.split:], d.centred[k][d.split:]))
		}
	}
	return d
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// dualSolution is the probe of two penalties.
type dualSolution struct {
	penalties
	root   mat.Cholesky // of inner products and noise
	alpha  []float64
	errors []float64 // of each job when left out, in logarithms
	doubts []float64 // of each job when left out
	cost   float64   // mean absolute error of left-out jobs, in the values' unit
}

// best returns the penalties whose errors on left-out jobs are least.
func (d *dualRidge) best() (*dualSolution, error) {
	var found *dualSolution
	for _, style := range stylePenalties {
		for _, number := range numberPenalties {
			if d.split == len(d.mean) && number != numberPenalties[0] {
				continue // there are no others
			}
			if sol, ok := d.solve(style, number); ok && (found == nil || sol.cost < found.cost) {
				found = sol
			}
		}
	}
	if found == nil {
		return nil, errors.New("fitting a linear probe: the equations are not definite")
	}
	return found, nil
}

// solve solves for the weights and, from the inverse's diagonal, for what each job's
// error would be if it were left out, of the mean as well.
func (d *dualRidge) solve(style, number float64) (*dualSolution, bool) {
	n := len(d.y)
	a := mat.NewSymDense(n, nil)
	for i := range n {
		for k := i; k < n; k++ {
			a.SetSym(i, k, d.style.At(i, k)/style+d.number.At(i, k)/number)
		}
		a.SetSym(i, i, a.At(i, i)+1)
	}
	s := &dualSolution{
		penalties: penalties{split: d.split, style: style, number: number},
		alpha:     make([]float64, n), errors: make([]float64, n), doubts: make([]float64, n),
	}
	if !s.root.Factorize(a) {
		return nil, false
	}
	var alpha mat.VecDense
	var inverse mat.SymDense
	if s.root.SolveVecTo(&alpha, mat.NewVecDense(n, d.y)) != nil || s.root.InverseTo(&inverse) != nil {
		return nil, false
	}
	for i := range n {
		// Inner products are of centred embeddings, so that a fitted mean takes 1/n from
		// each element of the inverse. Rounding may leave nothing of a job far from all others.
		left := max(minLeverageGap, inverse.At(i, i)-1/float64(n))
		s.alpha[i] = alpha.AtVec(i)
		s.errors[i] = s.alpha[i] / left
		s.doubts[i] = fourthRoot(1 / left)
		truth := d.offset + d.y[i]
		s.cost += math.Abs(math.Exp(truth-s.errors[i])-math.Exp(truth)) / float64(n)
	}
	return s, true
}

// ridge returns the probe of a solution, without its interval.
func (d *dualRidge) ridge(s *dualSolution) *ridge {
	r := &ridge{weights: make([]float64, len(d.mean)), mean: d.mean, offset: d.offset}
	for i, e := range d.centred {
		for k, v := range e {
			r.weights[k] += s.alpha[i] * v / s.penaltyOf(k)
		}
	}
	return r
}

func (d *dualRidge) uncertaintyOf(s *dualSolution) *uncertainty {
	n, width := len(d.y), len(d.mean)
	out := &uncertainty{
		penalties: s.penalties, mean: d.mean, shares: make([][]float64, width), centre: make([]float64, n),
	}
	var root mat.TriDense
	s.root.LTo(&root)
	lower := root.RawTriangular()
	for k := range width {
		column := make([]float64, n) // root × column = what jobs have of the coordinate
		for i := range n {
			row := lower.Data[i*lower.Stride:]
			column[i] = (d.centred[i][k]/s.penaltyOf(k) - dot(row[:i], column)) / row[i]
		}
		out.shares[k] = column
		addScaled(out.centre, d.mean[k], column)
	}
	return out
}
