package predict_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/predict"
)

// made returns a made-up history of jobs: users with templates of their own, a run time for
// each, and scatter.
func made(seed uint64, jobs int) *predict.Table {
	random := rand.New(rand.NewPCG(seed, 1))
	t := &predict.Table{Name: "made"}
	const users, templates = 100, 12
	clock := 0.0
	for i := range jobs {
		clock += random.ExpFloat64() * 120
		user, template := random.IntN(users), random.IntN(templates)
		fixed := rand.New(rand.NewPCG(uint64(user*templates+template), 2))
		length := math.Exp(fixed.NormFloat64()*1.5 + 6)
		gpus := float64(int(1) << fixed.IntN(4))
		v := length * math.Exp(0.15*random.NormFloat64())
		if random.Float64() < 0.08 {
			v *= random.Float64()
		}
		power := (80 + 200*fixed.Float64()) * math.Exp(0.05*random.NormFloat64())
		t.Jobs = append(t.Jobs, predict.Features{
			ID: fmt.Sprint("j", i), Submit: clock, Owner: fmt.Sprint("u", user),
			Labels: []string{fmt.Sprint("n", template)},
			Sizes:  []float64{gpus}, Requested: math.Ceil(length*fixed.Float64()*4/1800+1) * 1800,
		})
		t.Outcomes = append(t.Outcomes, predict.Outcome{
			End: clock + v, Completed: true, Value: [3]float64{v, v * power * gpus / 3.6e6, power},
		})
	}
	return t
}

// taught returns a forecaster that has seen a table.
func taught(tb testing.TB, t *predict.Table) *predict.Forecaster {
	tb.Helper()
	f := predict.NewForecaster(predict.Time, nil)
	for i := range t.Jobs {
		f.End(f.Submit(&t.Jobs[i]), &t.Outcomes[i])
	}
	if err := f.Fit(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return f
}

func BenchmarkTrainingOn100000Jobs(b *testing.B) {
	t := made(1, 100_000)
	for b.Loop() {
		taught(b, t)
	}
}

func BenchmarkPrediction(b *testing.B) {
	t := made(1, 100_000)
	f := taught(b, t)
	next := made(2, 5000)
	times := make([]time.Duration, 0, b.N)
	i := 0
	for b.Loop() {
		start := time.Now()
		f.Submit(&next.Jobs[i%len(next.Jobs)])
		times = append(times, time.Since(start))
		i++
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
}
