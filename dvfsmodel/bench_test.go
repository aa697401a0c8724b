package dvfsmodel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

// benchParams are workloads from the paper's published ranges (EDL §5.1.3).
func benchParams(n int) []dvfsmodel.Params {
	rng := rand.New(rand.NewPCG(1, 2))
	ps := make([]dvfsmodel.Params, n)
	for i := range ps {
		power := 175 + 31*rng.Float64()
		p0, gamma := power*(0.2+0.21*rng.Float64()), power*(0.1+0.1*rng.Float64())
		ps[i] = dvfsmodel.Params{
			P0: dvfsmodel.Watt(p0), Gamma: dvfsmodel.Watt(gamma), C: dvfsmodel.Watt(power - p0 - gamma),
			D: 20 + 300*rng.Float64(), Delta: 0.07 + 0.84*rng.Float64(), T0: 1 + 40*rng.Float64(),
		}
	}
	return ps
}

func BenchmarkOptimumContinuous(b *testing.B) {
	ps := benchParams(1024)
	r := dvfsmodel.WideRange()
	b.Run("free", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			_ = r.FreeOptimum(ps[i%len(ps)])
		}
	})
	b.Run("limit", func(b *testing.B) {
		limits := make([]float64, len(ps))
		for i, p := range ps {
			limits[i] = (r.MinTime(p) + r.FreeOptimum(p).Time) / 2
		}
		for i := 0; b.Loop(); i++ {
			if _, err := r.Optimum(ps[i%len(ps)], dvfsmodel.MinEnergy(), limits[i%len(ps)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOptimumDiscrete searches 100 core by 4 memory clocks.
func BenchmarkOptimumDiscrete(b *testing.B) {
	pairs := make([]dvfsmodel.Setting, 0, 400)
	for _, mem := range []dvfsmodel.MHz{4000, 4500, 5000, 5500} {
		for i := range 100 {
			pairs = append(pairs, dvfsmodel.Setting{Core: dvfsmodel.MHz(900 + 12*i), Mem: mem})
		}
	}
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1800, Mem: 5000}, pairs, nil)
	if err != nil {
		b.Fatal(err)
	}
	ps := benchParams(1024)
	for _, limited := range []bool{false, true} {
		name := map[bool]string{false: "free", true: "limit"}[limited]
		b.Run(name, func(b *testing.B) {
			limits := make([]float64, len(ps))
			for i, p := range ps {
				limits[i] = math.Inf(1)
				if limited {
					limits[i] = 1.2 * table.MinTime(p)
				}
			}
			for i := 0; b.Loop(); i++ {
				if _, err := table.Optimum(ps[i%len(ps)], dvfsmodel.MinEnergy(),
					limits[i%len(ps)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
