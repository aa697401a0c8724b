package boost_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/predict/boost"
)

// steps are rows whose target jumps with a feature, with outliers and a feature that
// says nothing.
func steps(rows int) (x [][]float64, y []float64) {
	random := rand.New(rand.NewPCG(1, 1))
	for i := range rows {
		a, b := random.Float64()*10, random.Float64()
		v := 1.0
		if a > 5 {
			v = 4
		}
		if i%10 == 0 {
			v += 1000 // an outlier
		}
		x, y = append(x, []float64{a, b}), append(y, v)
	}
	return x, y
}

func fit(t *testing.T, x [][]float64, y []float64, change func(*boost.Settings)) *boost.Model {
	t.Helper()
	s := boost.DefaultSettings()
	if change != nil {
		change(&s)
	}
	m, err := boost.Fit(x, y, nil, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOutliersDoNotMoveTheMedian(t *testing.T) {
	x, y := steps(2000)
	m := fit(t, x, y, nil)
	for _, c := range []struct{ a, want float64 }{{1, 1}, {4.5, 1}, {5.5, 4}, {9, 4}} {
		if got := m.Predict([]float64{c.a, 0.5}); math.Abs(got-c.want) > 0.1 {
			t.Errorf("at %g: %g, want about %g", c.a, got, c.want)
		}
	}
}

func TestQuantilesHoldTheirPart(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	x, y := make([][]float64, 0, 4000), make([]float64, 0, 4000)
	for range 4000 {
		a := random.Float64()
		x, y = append(x, []float64{a}), append(y, a*10+random.NormFloat64()*(0.1+a))
	}
	for _, q := range []float64{0.1, 0.5, 0.9} {
		m := fit(t, x, y, func(s *boost.Settings) { s.Quantile = q })
		below := 0.0
		for i := range x {
			if y[i] <= m.Predict(x[i]) {
				below += 1 / float64(len(x))
			}
		}
		if math.Abs(below-q) > 0.04 {
			t.Errorf("quantile %g holds %g", q, below)
		}
	}
}

func TestMissingValuesFindTheirWay(t *testing.T) {
	x, y := make([][]float64, 0, 600), make([]float64, 0, 600)
	for i := range 600 {
		v := float64(i % 3)
		row := v
		if v == 2 {
			row = math.NaN()
		}
		x, y = append(x, []float64{row}), append(y, v*10)
	}
	m := fit(t, x, y, func(s *boost.Settings) { s.Features, s.Rows = 1, 1 })
	for _, c := range []struct{ a, want float64 }{{0, 0}, {1, 10}, {math.NaN(), 20}} {
		if got := m.Predict([]float64{c.a}); math.Abs(got-c.want) > 0.5 {
			t.Errorf("at %g: %g, want about %g", c.a, got, c.want)
		}
	}
}

func TestTheSameSeedGivesTheSameModel(t *testing.T) {
	x, y := steps(500)
	a, b := fit(t, x, y, nil), fit(t, x, y, nil)
	for i := range x {
		if a.Predict(x[i]) != b.Predict(x[i]) {
			t.Fatalf("row %d: %g and %g", i, a.Predict(x[i]), b.Predict(x[i]))
		}
	}
}

func TestPredictionsStayWithinWhatWasSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "rows")
		value := rapid.Float64Range(-100, 100)
		x, y, w := make([][]float64, 0, n), make([]float64, 0, n), make([]float64, 0, n)
		low, high := math.Inf(1), math.Inf(-1)
		for range n {
			row := []float64{value.Draw(t, "a"), float64(rapid.IntRange(0, 3).Draw(t, "b"))}
			if rapid.Bool().Draw(t, "missing") {
				row[1] = math.NaN()
			}
			x, y = append(x, row), append(y, value.Draw(t, "y"))
			w = append(w, rapid.Float64Range(0.1, 10).Draw(t, "w"))
			low, high = min(low, y[len(y)-1]), max(high, y[len(y)-1])
		}
		s := boost.DefaultSettings()
		s.Trees, s.MinLeaf, s.Smoothing = 20, 1, 0
		m, err := boost.Fit(x, y, w, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range x {
			// Every tree takes a part of a residual that lies within the range.
			if got := m.Predict(row); got < low-(high-low)-1e-9 || got > high+(high-low)+1e-9 {
				t.Fatalf("%g, seen were %g to %g", got, low, high)
			}
		}
	})
}

func TestBadTrainingSetsAreRefused(t *testing.T) {
	one := [][]float64{{1}}
	for name, c := range map[string]struct {
		x      [][]float64
		y, w   []float64
		change func(*boost.Settings)
	}{
		"no rows":         {},
		"no features":     {x: [][]float64{{}}, y: []float64{1}},
		"uneven rows":     {x: [][]float64{{1}, {1, 2}}, y: []float64{1, 2}},
		"missing targets": {x: one, y: nil},
		"infinite target": {x: one, y: []float64{math.Inf(1)}},
		"weight of 0":     {x: one, y: []float64{1}, w: []float64{0}},
		"no trees":        {x: one, y: []float64{1}, change: func(s *boost.Settings) { s.Trees = 0 }},
		"rate of 2":       {x: one, y: []float64{1}, change: func(s *boost.Settings) { s.Rate = 2 }},
		"quantile of 1":   {x: one, y: []float64{1}, change: func(s *boost.Settings) { s.Quantile = 1 }},
		"no part of rows": {x: one, y: []float64{1}, change: func(s *boost.Settings) { s.Rows = 0 }},
		"too many bins":   {x: one, y: []float64{1}, change: func(s *boost.Settings) { s.Bins = 300 }},
	} {
		s := boost.DefaultSettings()
		if c.change != nil {
			c.change(&s)
		}
		if _, err := boost.Fit(c.x, c.y, c.w, s, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAFitCanBeStopped(t *testing.T) {
	x, y := steps(100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := boost.Fit(x, y, nil, boost.DefaultSettings(), ctx.Err); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}
