package probe_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/predict/source"
)

// world draws jobs: embeddings of eight coordinates, four of them of style, and what
// they take.
type world func(r *rand.Rand, rows int) *probe.Set

// worldOf draws jobs whose logarithm is a line in two numbers, and more that depends
// on the job.
func worldOf(more func(r *rand.Rand, e []float64) float64) world {
	return func(r *rand.Rand, rows int) *probe.Set {
		s := &probe.Set{Style: 4}
		for range rows {
			e := make([]float64, 8)
			for k := range e {
				e[k] = r.NormFloat64()
			}
			v := more(r, e) + e[4] + 2*e[5] // more may change the job
			s.Embeddings, s.Values = append(s.Embeddings, e), append(s.Values, math.Exp(4+v))
		}
		return s
	}
}

// inside returns the part of ten new jobs in their intervals, in the mean of draws, and its
// standard error: draws are independent, jobs of one draw share a probe.
func inside(t *testing.T, kind probe.Kind, draws, rows int, draw world) (mean, off float64) {
	t.Helper()
	const asked = 10
	squares := 0.0
	for seed := range uint64(draws) {
		s := draw(rand.New(rand.NewPCG(seed, 12)), rows+asked)
		p, err := probe.Fit(t.Context(), kind, &probe.Set{
			Style: s.Style, Embeddings: s.Embeddings[:rows], Values: s.Values[:rows],
		})
		if err != nil {
			t.Fatal(err)
		}
		part := 0.0
		for i := rows; i < rows+asked; i++ {
			if e := p.Estimate(s.Embeddings[i]); e.Low <= s.Values[i] && s.Values[i] <= e.High {
				part += 1.0 / asked
			}
		}
		mean += part / float64(draws)
		squares += part * part / float64(draws)
	}
	return mean, math.Sqrt((squares - mean*mean) / float64(draws))
}

func TestNineOfTenTruthsLieInTheirIntervals(t *testing.T) {
	worlds := map[string]world{
		"even noise": worldOf(func(r *rand.Rand, _ []float64) float64 { return 0.3 * r.NormFloat64() }),
		"noise of some jobs ten times that of others": worldOf(func(r *rand.Rand, e []float64) float64 {
			return 0.2 * math.Exp(1.15*min(1, max(-1, e[6]))) * r.NormFloat64()
		}),
		"noise with wide tails": worldOf(func(r *rand.Rand, _ []float64) float64 {
			return 0.2 * math.Tan(1.5*(2*r.Float64()-1))
		}),
		"most take longer, none less": worldOf(func(r *rand.Rand, _ []float64) float64 {
			return 0.5 * r.ExpFloat64()
		}),
		"three families": worldOf(func(r *rand.Rand, e []float64) float64 {
			family := r.IntN(3)
			for k := range 4 {
				e[k] = 0.1*e[k] + 3*float64((family+k)%3)
			}
			return 2*float64(family*family) + 0.2*r.NormFloat64()
		}),
		"nothing that a line tells": worldOf(func(_ *rand.Rand, e []float64) float64 {
			return 3*math.Sin(3*e[4]) - 2*e[5]
		}),
	}
	for name, draw := range worlds {
		for _, rows := range []int{5, 12, 40} {
			mean, off := inside(t, probe.Linear, 300, rows, draw)
			t.Logf("linear, %d jobs, %s: %.3f ± %.3f", rows, name, mean, off)
			// Of split conformal prediction: 0.9, and 1/(n+1) more at most. Penalties are
			// chosen by the same errors, which takes about a point.
			if least, most := 0.885-3*off, 0.9+1/float64(rows+1)+3*off; mean < least ||
				mean > most && rows >= 9 {
				t.Errorf("linear, %d jobs, %s: %.3f inside, want %.3f to %.3f", rows, name, mean, least, most)
			}
		}
	}
}

func TestNetworksHoldNineOfTenTruths(t *testing.T) {
	draw := worldOf(func(r *rand.Rand, _ []float64) float64 { return 0.3 * r.NormFloat64() })
	mean, off := inside(t, probe.MLP, 30, 40, draw)
	t.Logf("%.3f ± %.3f", mean, off)
	if mean < 0.9-3*off || mean > 0.97 {
		t.Errorf("%.3f inside, want 0.9 ± %.3f, and not nearly all", mean, 3*off)
	}
}

// drawnWorld are programs as those of the fixture.
func drawnWorld(column int) world {
	return func(r *rand.Rand, rows int) *probe.Set {
		x, values := drawn(r, rows)
		return &probe.Set{Style: source.Style, Embeddings: x, Values: values[column]}
	}
}

func TestNineOfTenProgramsLieInTheirIntervals(t *testing.T) {
	for column, name := range drawnColumns {
		for _, rows := range []int{16, 40} {
			mean, off := inside(t, probe.Linear, 60, rows, drawnWorld(column))
			t.Logf("linear, %d programs, %s: %.3f ± %.3f", rows, name, mean, off)
			if mean < 0.885-3*off || mean > 0.9+1/float64(rows+1)+3*off {
				t.Errorf("linear, %d programs, %s: %.3f inside, want 0.9 ± %.3f", rows, name, mean, 3*off)
			}
		}
	}
}

func TestIntervalsHoldTheirEstimateAndAreAboveZero(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		width, rows := rapid.IntRange(1, 5).Draw(t, "width"), rapid.IntRange(2, 14).Draw(t, "rows")
		coordinate := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-10, 10), rapid.Float64Range(-1e6, 1e6))
		embedding := rapid.SliceOfN(coordinate, width, width)
		s := &probe.Set{
			Style:      rapid.IntRange(0, width).Draw(t, "style"),
			Embeddings: rapid.SliceOfN(embedding, rows, rows).Draw(t, "embeddings"),
			Values:     rapid.SliceOfN(rapid.Float64Range(1e-9, 1e12), rows, rows).Draw(t, "values"),
		}
		asked := embedding.Draw(t, "asked")
		p, err := probe.Fit(ctx, probe.Linear, s)
		if err != nil {
			t.Fatal(err)
		}
		e := p.Estimate(asked)
		if !(0 < e.Low && e.Low <= e.Value && e.Value <= e.High && !math.IsInf(e.High, 1)) {
			t.Errorf("%+v", e)
		}
		again, err := probe.Fit(ctx, probe.Linear, s)
		if err != nil {
			t.Fatal(err)
		}
		if f := again.Estimate(asked); f != e {
			t.Errorf("%+v, and fitted again %+v", e, f)
		}
	})
}

// The less a job is like others, the wider its interval.
func TestIntervalsWidenAwayFromWhatWasLearntFrom(t *testing.T) {
	set := powers(40)
	for _, kind := range []probe.Kind{probe.Linear, probe.MLP} {
		p, err := probe.Fit(t.Context(), kind, set)
		if err != nil {
			t.Fatal(err)
		}
		before := 0.0
		for _, far := range []float64{0, 3, 30, 300} {
			e := p.Estimate([]float64{0, far, 0, far, 0, 0, 0, 0})
			if wide := e.High / e.Low; wide <= before {
				t.Errorf("%s: %g at a distance of %g, %g nearer", kind, wide, far, before)
			} else {
				before = wide
			}
		}
	}
}

func TestFittedAgainANetworkSaysTheSame(t *testing.T) {
	set := powers(30)
	var first probe.Estimate
	for i := range 2 {
		p, err := probe.Fit(t.Context(), probe.MLP, set)
		if err != nil {
			t.Fatal(err)
		}
		if e := p.Estimate(set.Embeddings[3]); i == 0 {
			first = e
		} else if e != first {
			t.Errorf("%+v, and before %+v", e, first)
		}
	}
}
