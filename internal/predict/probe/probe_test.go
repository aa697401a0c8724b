package probe_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/predict/probe"
)

// powers are jobs whose time is a product of two numbers, given by their logarithms
// among coordinates that say nothing.
func powers(rows int) *probe.Set {
	random := rand.New(rand.NewPCG(7, 7))
	s := &probe.Set{Style: 4}
	for range rows {
		e := make([]float64, 8)
		for k := range e {
			e[k] = random.NormFloat64()
		}
		s.Embeddings = append(s.Embeddings, e)
		s.Values = append(s.Values, math.Exp(4+e[4]+2*e[5]))
	}
	return s
}

func TestProbesFindAProduct(t *testing.T) {
	all := powers(120)
	set := &probe.Set{Embeddings: all.Embeddings[:100], Values: all.Values[:100], Style: all.Style}
	for kind, most := range map[probe.Kind]float64{probe.Linear: 0.1, probe.MLP: 1} {
		p, err := probe.Fit(t.Context(), kind, set)
		if err != nil {
			t.Fatal(err)
		}
		off, inside := 0.0, 0
		for i := 100; i < 120; i++ {
			e := p.Estimate(all.Embeddings[i])
			off += math.Abs(math.Log(e.Value/all.Values[i])) / 20
			if e.Low <= all.Values[i] && all.Values[i] <= e.High {
				inside++
			}
		}
		if off > most || inside < 14 {
			t.Errorf("%s: logarithms off by %.3f, %d of 20 inside, want %g at most and 14", kind, off,
				inside, most)
		}
	}
}

func TestProbesWorkWithoutKnowingWhatIsStyle(t *testing.T) {
	set := powers(60)
	set.Style = 0
	for _, kind := range []probe.Kind{probe.Linear, probe.MLP} {
		p, err := probe.Fit(t.Context(), kind, set)
		if err != nil {
			t.Fatal(err)
		}
		if e := p.Estimate(set.Embeddings[0]); !(e.Low <= e.Value && e.Value <= e.High && e.Value > 0) {
			t.Errorf("%s: %+v", kind, e)
		}
	}
}

func TestEstimatesDoNotLeaveWhatWasSeenFarBehind(t *testing.T) {
	set := powers(60)
	p, err := probe.Fit(t.Context(), probe.Linear, set)
	if err != nil {
		t.Fatal(err)
	}
	most := 0.0
	for _, v := range set.Values {
		most = max(most, v)
	}
	if e := p.Estimate([]float64{0, 0, 0, 0, 100, 100, 0, 0}); e.Value > 4*most {
		t.Errorf("%g, the longest one took %g", e.Value, most)
	}
}

func TestBadSetsAreRefused(t *testing.T) {
	two := [][]float64{{1, 2}, {3, 4}}
	for name, s := range map[string]*probe.Set{
		"one job":       {Embeddings: two[:1], Values: []float64{1}},
		"no values":     {Embeddings: two},
		"no length":     {Embeddings: [][]float64{{}, {}}, Values: []float64{1, 2}},
		"uneven":        {Embeddings: [][]float64{{1, 2}, {3}}, Values: []float64{1, 2}},
		"not finite":    {Embeddings: [][]float64{{1, 2}, {3, math.NaN()}}, Values: []float64{1, 2}},
		"value of 0":    {Embeddings: two, Values: []float64{1, 0}},
		"too much else": {Embeddings: two, Values: []float64{1, 2}, Style: 3},
	} {
		if _, err := probe.Fit(t.Context(), probe.Linear, s); err == nil {
			t.Errorf("%s: a probe and no error", name)
		}
		if _, err := probe.NewDistances(s); err == nil {
			t.Errorf("%s: distances and no error", name)
		}
	}
	if _, err := probe.Fit(t.Context(), "deep", powers(5)); err == nil {
		t.Error("an unknown kind: no error")
	}
}

func TestTrainingCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := probe.Fit(ctx, probe.MLP, powers(20)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

func TestNumbersDoNotMakeASourceStrange(t *testing.T) {
	set := &probe.Set{
		Style: 2, Values: []float64{1, 1, 1}, Embeddings: [][]float64{{0, 0, 5}, {0, 1, 5}, {1, 0, 5}},
	}
	d, err := probe.NewDistances(set)
	if err != nil {
		t.Fatal(err)
	}
	if s := d.NoveltyOf([]float64{0, 0.5, 1e6}); s.IsOutside || s.Score > 1 {
		t.Errorf("%+v, want that it is usual", s)
	}
	if s := d.NoveltyOf([]float64{3, 3, 5}); !s.IsOutside || s.Score <= 1 {
		t.Errorf("%+v, want that it is strange", s)
	}
	same := &probe.Set{Values: []float64{1, 1}, Embeddings: [][]float64{{1}, {1}}}
	if d, err = probe.NewDistances(same); err != nil {
		t.Fatal(err)
	}
	if d.NoveltyOf([]float64{1}).IsOutside || !d.NoveltyOf([]float64{2}).IsOutside {
		t.Error("of equal sources only an equal one is usual")
	}
}
