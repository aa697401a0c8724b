package consolidate

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// drawProgram returns a set partition for the simplex method and for gonum's.
func drawProgram(r *rand.Rand) (program *simplex, costs []float64, matrix *mat.Dense) {
	rows, columns := 3+r.IntN(10), 20+r.IntN(60)
	right, artificial := make([]float64, rows), make([]float64, rows)
	matrix = mat.NewDense(rows, rows+columns, nil)
	for i := range right {
		right[i], artificial[i] = 1+1e-6*r.Float64(), 1000
		matrix.Set(i, i, 1)
		costs = append(costs, 1000)
	}
	program = newSimplex(right, artificial)
	for j := range columns {
		var entries []coefficient
		for i := range rows {
			if r.IntN(3) == 0 || i == j%rows {
				entries = append(entries, coef(i, 1))
				matrix.Set(i, rows+j, 1)
			}
		}
		costs = append(costs, math.Sqrt(float64(len(entries)))*(1+r.Float64()))
		program.add(entries, costs[rows+j])
		if j == columns/2 { // the rest comes later
			program.solve(context.Background(), 10000)
		}
	}
	return program, costs, matrix
}

func TestSimplexFindsTheLeastOfASetPartition(t *testing.T) {
	for seed := range uint64(60) {
		program, costs, matrix := drawProgram(rand.New(rand.NewPCG(seed, 3)))
		if !program.solve(context.Background(), 10000) {
			t.Fatalf("seed %d: not solved", seed)
		}
		want, _, err := lp.Simplex(costs, matrix, program.right, 1e-9, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		before := objective(program)
		program.refresh()
		if got := objective(program); math.Abs(got-want) > 1e-6 || math.Abs(got-before) > 1e-7 {
			t.Errorf("seed %d: %.9f, after a new inverse %.9f; want %.9f", seed, before, got, want)
		}
		dual := 0.0
		for i, y := range program.dual {
			dual += y * program.right[i]
		}
		if math.Abs(dual-want) > 1e-6 {
			t.Errorf("seed %d: the duals come to %.9f, want %.9f", seed, dual, want)
		}
	}
}

func objective(l *simplex) float64 {
	sum := 0.0
	for r, j := range l.basis {
		sum += l.value[r] * l.cost[j]
	}
	return sum
}
