package probe

import (
	"math"
	"math/rand/v2"
	"testing"
)

// scattered are jobs whose logarithms are a line in some coordinates and noise.
func scattered(seed uint64, rows int) *Set {
	random := rand.New(rand.NewPCG(seed, 3))
	s := &Set{Style: 5}
	for range rows {
		e := make([]float64, 12)
		for k := range e {
			e[k] = 3 * random.NormFloat64()
		}
		s.Embeddings = append(s.Embeddings, e)
		s.Values = append(s.Values, math.Exp(2+e[6]-0.5*e[7]+0.3*random.NormFloat64()))
	}
	return s
}

// without returns a set less one job.
func (s *Set) without(i int) *Set {
	out := &Set{Style: s.Style}
	for k := range s.Values {
		if k != i {
			out.Embeddings, out.Values = append(out.Embeddings, s.Embeddings[k]),
				append(out.Values, s.Values[k])
		}
	}
	return out
}

// What a job's error and its doubt would be without it is known without a fit for each.
func TestWhatIsLeftOutIsAsFittedWithoutIt(t *testing.T) {
	const style, number = 30, 0.3
	for seed := range uint64(5) {
		s := scattered(seed, 14)
		whole, ok := newDual(s).solve(style, number)
		if !ok {
			t.Fatal("no solution")
		}
		for i, e := range s.Embeddings {
			rest := newDual(s.without(i))
			sol, ok := rest.solve(style, number)
			if !ok {
				t.Fatal("no solution")
			}
			if off := math.Log(s.Values[i]) - rest.ridge(sol).value(e); math.Abs(off-whole.errors[i]) > 1e-8 {
				t.Errorf("seed %d, job %d: off by %g without it, want %g", seed, i, whole.errors[i], off)
			}
			if of := rest.uncertaintyOf(sol).ofJob(e); math.Abs(of-whole.doubts[i]) > 1e-8 {
				t.Errorf("seed %d, job %d: doubt %g without it, want %g", seed, i, whole.doubts[i], of)
			}
		}
	}
}

func TestAMarginHoldsNineOfTenErrors(t *testing.T) {
	for _, c := range []struct {
		jobs int
		want float64 // of errors 1, 2 …
	}{{9, 9}, {10, 10}, {19, 18}, {20, 19}, {39, 36}, {99, 90}} {
		errs, doubts := make([]float64, c.jobs), make([]float64, c.jobs)
		for i := range errs {
			errs[i], doubts[i] = float64(2*(i+1)), 2
			if i%2 == 0 {
				errs[i] *= -1
			}
		}
		if got := margin(errs, doubts); got != c.want {
			t.Errorf("%d jobs: %g, want %g", c.jobs, got, c.want)
		}
	}
	// Of an exponential distribution of mean 1 about nine of ten lie below its margin,
	// however few are known.
	random := rand.New(rand.NewPCG(1, 9))
	for _, jobs := range []int{2, 4, 8} {
		const draws = 4000
		below := 0.0
		for range draws {
			errs, doubts := make([]float64, jobs), make([]float64, jobs)
			for i := range errs {
				errs[i], doubts[i] = random.ExpFloat64(), 1
			}
			if random.ExpFloat64() <= margin(errs, doubts) {
				below += 1.0 / draws
			}
		}
		if math.Abs(below-0.9) > 0.03 {
			t.Errorf("of %d jobs: %.3f below, want 0.9", jobs, below)
		}
	}
}
