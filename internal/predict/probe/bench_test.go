package probe_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/predict/source"
)

// benched are the probes that are measured, and of how many jobs.
var benched = []struct { //nolint:gochecknoglobals // constant
	name string
	kind probe.Kind
	rows int
}{{"linear of 48", probe.Linear, 48}, {"linear of 400", probe.Linear, 400}, {"mlp of 48", probe.MLP, 48}}

// BenchmarkEstimate is one prediction from an embedding that is there already.
func BenchmarkEstimate(b *testing.B) {
	for _, c := range benched {
		b.Run(c.name, func(b *testing.B) {
			x, values := drawn(rand.New(rand.NewPCG(1, 1)), c.rows+50)
			p, err := probe.Fit(b.Context(), c.kind, &probe.Set{
				Style: source.Style, Embeddings: x[:c.rows], Values: values[0][:c.rows],
			})
			if err != nil {
				b.Fatal(err)
			}
			times := make([]time.Duration, 0, 1<<16)
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				p.Estimate(x[c.rows+i%50])
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// BenchmarkFit is one training.
func BenchmarkFit(b *testing.B) {
	for _, c := range benched {
		b.Run(c.name, func(b *testing.B) {
			x, values := drawn(rand.New(rand.NewPCG(1, 1)), c.rows)
			set := &probe.Set{Style: source.Style, Embeddings: x, Values: values[0]}
			for b.Loop() {
				if _, err := probe.Fit(b.Context(), c.kind, set); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
