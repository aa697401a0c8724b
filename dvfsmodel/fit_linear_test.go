package dvfsmodel

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// randomGram returns the Gram matrix of a random k-column matrix.
func randomGram(rng *rand.Rand, k int) (square, *mat.SymDense) {
	var g square
	for range 12 {
		var x [maxTerms]float64
		for i := range k {
			x[i] = rng.NormFloat64() * math.Pow(10, float64(i)-2)
		}
		for i := range k {
			for j := range k {
				g[i][j] += x[i] * x[j]
			}
		}
	}
	sym := mat.NewSymDense(k, nil)
	for i := range k {
		for j := range i + 1 {
			sym.SetSym(i, j, g[i][j])
		}
	}
	return g, sym
}

func TestInverseOfASmallMatrixIsThatOfGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for trial := range 1000 {
		k := 1 + trial%maxTerms
		g, sym := randomGram(rng, k)
		got, ok := g.inverse(k)
		var chol mat.Cholesky
		var want mat.SymDense
		if !chol.Factorize(sym) || chol.InverseTo(&want) != nil || !ok {
			t.Fatalf("trial %d: no inverse (ours %v)", trial, ok)
		}
		for i := range k {
			for j := range k {
				size := math.Sqrt(want.At(i, i) * want.At(j, j))
				if math.Abs(got[i][j]-want.At(i, j)) > 1e-8*size {
					t.Fatalf("trial %d: element %d,%d is %v, want %v", trial, i, j, got[i][j], want.At(i, j))
				}
			}
		}
	}
}

func TestCollinearTermsHaveNoInverse(t *testing.T) {
	g := square{{1, 2}, {2, 4}}
	if _, ok := g.inverse(2); ok {
		t.Error("a singular matrix was inverted")
	}
}

func TestClosedFormDeletionEqualsARefit(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	p := &leastSquares{cols: []int{0, 1, 2}}
	for range 10 {
		p.rows = append(p.rows, [maxTerms]float64{1, rng.NormFloat64(), rng.NormFloat64()})
		p.target = append(p.target, rng.NormFloat64())
		p.weight = append(p.weight, 0.1+rng.Float64())
	}
	all, ok := p.solve(p.cols)
	if !ok {
		t.Fatal("not solved")
	}
	for i := range p.rows {
		without := *p
		without.weight = append([]float64(nil), p.weight...)
		without.weight[i] = 0
		s, ok := without.solve(p.cols)
		if !ok {
			t.Fatal("not solved")
		}
		if d := all.deletedResidual(i); math.Abs(d-s.residual[i]) > 1e-9 {
			t.Errorf("row %d: deleted residual %v, refit says %v", i, d, s.residual[i])
		}
		if loss := all.loss - p.weight[i]*all.residual[i]*
			all.deletedResidual(i); math.Abs(loss-s.loss) > 1e-9 {
			t.Errorf("row %d: loss without it %v, refit says %v", i, loss, s.loss)
		}
	}
}

func TestNonNegativeSolutionSatisfiesItsOptimalityConditions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	held := 0
	for range 500 {
		p := &leastSquares{cols: []int{0, 1, 2, 3}}
		for range 9 {
			p.rows = append(p.rows, [maxTerms]float64{1, rng.Float64(), rng.Float64(), rng.Float64()})
			p.target = append(p.target, 1+rng.NormFloat64())
			p.weight = append(p.weight, 1)
		}
		s, ok := p.solveNonNegative()
		if !ok {
			continue // every coefficient would be negative
		}
		for _, c := range p.cols {
			slope := 0.0 // of half the loss, by −coefficient
			for r := range p.rows {
				slope += p.rows[r][c] * s.residual[r]
			}
			if s.coef[c] == 0 {
				held++
			}
			if s.coef[c] < 0 || slope > 1e-8 || s.coef[c] > 0 && slope < -1e-8 {
				t.Fatalf("coefficient %d is %v with slope %v", c, s.coef[c], slope)
			}
		}
	}
	if held == 0 {
		t.Error("no coefficient was ever held at 0")
	}
}

func BenchmarkInverse(b *testing.B) {
	g, sym := randomGram(rand.New(rand.NewPCG(4, 4)), 4)
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = g.inverse(4)
		}
	})
	b.Run("gonum", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var chol mat.Cholesky
			var inv mat.SymDense
			chol.Factorize(sym)
			_ = chol.InverseTo(&inv)
		}
	})
}

func BenchmarkFit(b *testing.B) {
	truth := Params{P0: 60, Gamma: 25, C: 110, D: 20, Delta: 0.6, T0: 4}
	rng := rand.New(rand.NewPCG(5, 5))
	samples := make([]Sample, 0, 20)
	for _, fc := range []float64{0.6, 0.75, 0.9, 1, 1.15} {
		for _, fm := range []float64{0.7, 0.85, 1, 1.1} {
			p := truth.At(Scaling{V: VoltageFor(fc), Fc: fc, Fm: fm})
			samples = append(samples, Sample{
				Core: MHz(fc * 1000), Mem: MHz(fm * 1000),
				Time: p.Time * (1 + 0.01*rng.NormFloat64()), Power: p.Power,
			})
		}
	}
	for b.Loop() {
		if _, err := Fit(samples, Setting{Core: 1000, Mem: 1000}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
