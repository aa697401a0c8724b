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

// ridge is a linear probe in its dual form: there are more coordinates than jobs.
type ridge struct {
	weights      []float64 // by coordinate
	mean         []float64 // by coordinate
	offset       float64
	below, above float64
	reach        reach
}

// fitRidge fits with the penalties whose errors on left-out jobs are least.
func fitRidge(s *Set) (*ridge, error) {
	d := newDual(s)
	best := math.Inf(1)
	var found *solution
	for _, style := range stylePenalties {
		for _, number := range numberPenalties {
			if s.Style == 0 && number != numberPenalties[0] {
				continue // there are no others
			}
			sol, ok := d.solve(style, number)
			if ok && sol.cost < best {
				best, found = sol.cost, sol
			}
		}
	}
	if found == nil {
		return nil, errors.New("fitting a linear probe: the equations are not definite")
	}
	r := &ridge{weights: make([]float64, len(d.mean)), mean: d.mean, offset: d.offset, reach: s.reach()}
	for i, e := range d.centred {
		for k, v := range e {
			penalty := found.style
			if s.Style > 0 && k >= s.Style {
				penalty = found.number
			}
			r.weights[k] += found.alpha[i] * v / penalty
		}
	}
	r.below, r.above = margins(found.errors)
	return r, nil
}

// Estimate is the probe's answer.
func (r *ridge) Estimate(e []float64) Estimate {
	v := r.offset
	for k, w := range r.weights {
		v += w * (e[k] - r.mean[k])
	}
	return r.reach.estimate(v, r.below, r.above)
}

// dual is what all penalties have in common.
type dual struct {
	centred       [][]float64
	mean          []float64
	y             []float64 // logarithms less their mean
	offset        float64
	style, number *mat.SymDense // inner products
}

func newDual(s *Set) *dual {
	n, width := len(s.Embeddings), len(s.Embeddings[0])
	d := &dual{mean: make([]float64, width), y: s.logs(), style: mat.NewSymDense(n, nil), number: mat.NewSymDense(n, nil)}
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
	split := s.Style
	if split == 0 {
		split = width
	}
	for i := range n {
		for k := i; k < n; k++ {
			d.style.SetSym(i, k, dot(d.centred[i][:split], d.centred[k][:split]))
			d.number.SetSym(i, k, dot(d.centred[i][split:], d.centred[k][split:]))
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

// solution is the probe of two penalties.
type solution struct {
	style, number float64
	alpha         []float64
	errors        []float64 // of each job when left out, in logarithms
	cost          float64   // mean absolute error of left-out jobs, in the values' unit
}

// solve solves for the weights and, from the inverse's diagonal, for what each job's
// error would be if it were left out.
func (d *dual) solve(style, number float64) (*solution, bool) {
	n := len(d.y)
	a := mat.NewSymDense(n, nil)
	for i := range n {
		for k := i; k < n; k++ {
			a.SetSym(i, k, d.style.At(i, k)/style+d.number.At(i, k)/number)
		}
		a.SetSym(i, i, a.At(i, i)+1)
	}
	var c mat.Cholesky
	if !c.Factorize(a) {
		return nil, false
	}
	var alpha mat.VecDense
	var inverse mat.SymDense
	if c.SolveVecTo(&alpha, mat.NewVecDense(n, d.y)) != nil || c.InverseTo(&inverse) != nil {
		return nil, false
	}
	s := &solution{style: style, number: number, alpha: make([]float64, n), errors: make([]float64, n)}
	for i := range n {
		s.alpha[i] = alpha.AtVec(i)
		s.errors[i] = s.alpha[i] / inverse.At(i, i)
		truth := d.offset + d.y[i]
		s.cost += math.Abs(math.Exp(truth-s.errors[i])-math.Exp(truth)) / float64(n)
	}
	return s, true
}
