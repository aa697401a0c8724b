package boost

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Settings say how to fit.
type Settings struct {
	Trees     int     // how many trees
	Leaves    int     // of a tree, at most
	MinLeaf   int     // rows of a leaf, at least
	Rate      float64 // the part of its correction that a tree applies
	Quantile  float64 // what is predicted: 0.5 is the median
	Rows      float64 // the part of the rows that a tree is grown on
	Features  float64 // the part of the features that a tree may ask for
	Smoothing float64 // rows of no correction that each leaf is judged with
	Bins      int     // of a feature, at most 255
	Seed      uint64
}

// DefaultSettings are settings that do for some thousands to a hundred thousand rows.
func DefaultSettings() Settings {
	return Settings{
		Trees: 200, Leaves: 24, MinLeaf: 20, Rate: 0.08, Quantile: 0.5,
		Rows: 0.7, Features: 0.6, Smoothing: 5, Bins: 63, Seed: 1,
	}
}

func (s *Settings) check() error {
	switch {
	case s.Trees < 1 || s.Leaves < 2 || s.MinLeaf < 1:
		return fmt.Errorf("%d trees of %d leaves with %d rows, want 1, 2 and 1 at least", s.Trees,
			s.Leaves, s.MinLeaf)
	case !(s.Rate > 0 && s.Rate <= 1):
		return fmt.Errorf("rate %g, want more than 0 and at most 1", s.Rate)
	case !(s.Quantile > 0 && s.Quantile < 1):
		return fmt.Errorf("quantile %g, want it between 0 and 1", s.Quantile)
	case !(s.Rows > 0 && s.Rows <= 1 && s.Features > 0 && s.Features <= 1):
		return fmt.Errorf("parts %g and %g of rows and features, want more than 0 and at most 1",
			s.Rows, s.Features)
	case s.Bins < 2 || s.Bins >= maxBins:
		return fmt.Errorf("%d bins, want 2 to %d", s.Bins, maxBins-1)
	}
	return nil
}

// Model is a fitted sum of trees. Its methods may be called from many goroutines.
type Model struct {
	start float64
	trees []tree
}

// Predict returns the model's answer for one row of features.
func (m *Model) Predict(x []float64) float64 {
	sum := m.start
	for i := range m.trees {
		sum += m.trees[i].value(x)
	}
	return sum
}

// Fit fits a model of y from rows x of equal length. Weights may be nil: all 1.
// It looks at done now and then, which may be nil, and returns its error.
func Fit(x [][]float64, y, weights []float64, s Settings, done func() error) (*Model, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if len(x) == 0 || len(y) != len(x) || (weights != nil && len(weights) != len(x)) {
		return nil, fmt.Errorf("%d rows, %d targets and %d weights, want as many, and one at least", len(x),
			len(y), len(weights))
	}
	for i := range x {
		switch {
		case len(x[i]) != len(x[0]):
			return nil, fmt.Errorf("row %d has %d features, row 0 has %d", i, len(x[i]), len(x[0]))
		case math.IsNaN(y[i]) || math.IsInf(y[i], 0):
			return nil, fmt.Errorf("target of row %d is %g", i, y[i])
		case weights != nil && !(weights[i] > 0 && weights[i] < math.Inf(1)):
			return nil, fmt.Errorf("weight of row %d is %g", i, weights[i])
		}
	}
	if len(x[0]) == 0 {
		return nil, errors.New("rows without features")
	}
	if weights == nil {
		weights = slices.Repeat([]float64{1}, len(x))
	}
	g := newTreeGrower(x, y, weights, &s)
	for range s.Trees {
		if done != nil {
			if err := done(); err != nil {
				return nil, err
			}
		}
		g.addTree()
	}
	return &Model{start: g.start, trees: g.trees}, nil
}

// treeGrower is a fit on its way.
type treeGrower struct {
	s        *Settings
	data     *binnedRows
	weights  []float64
	residual []float64 // by row: y less what the trees so far say
	gradient []float64 // by row: of the pinball loss, times the weight
	start    float64
	trees    []tree
	random   *rand.Rand

	order          []int32 // rows, those of a leaf side by side
	features       []int
	scratch        []int32
	ranked         []weightedValue
	freeHistograms []histogram
}

func newTreeGrower(x [][]float64, y, weights []float64, s *Settings) *treeGrower {
	g := &treeGrower{
		s: s, data: cutIntoBins(x, len(x[0]), s.Bins), weights: weights,
		residual: slices.Clone(y), gradient: make([]float64, len(y)),
		random: rand.New(rand.NewPCG(s.Seed, 0x6b6f6f73)),
		order:  make([]int32, 0, len(y)), scratch: make([]int32, len(y)),
	}
	all := make([]int32, len(y))
	for i := range all {
		all[i] = int32(i)
	}
	g.start = g.quantile(all)
	for i := range g.residual {
		g.residual[i] -= g.start
	}
	return g
}

// addTree grows one more tree and takes what it says from the residuals.
func (g *treeGrower) addTree() {
	q := g.s.Quantile
	for i, r := range g.residual {
		switch {
		case r > 0:
			g.gradient[i] = q * g.weights[i]
		case r < 0:
			g.gradient[i] = (q - 1) * g.weights[i]
		default:
			g.gradient[i] = 0
		}
	}
	g.order = g.order[:0]
	for i := range g.residual {
		if g.s.Rows >= 1 || g.random.Float64() < g.s.Rows {
			g.order = append(g.order, int32(i))
		}
	}
	g.features = g.random.Perm(len(g.data.columns))
	g.features = g.features[:max(1, int(math.Round(g.s.Features*float64(len(g.features)))))]
	slices.Sort(g.features)
	t := g.grow()
	g.trees = append(g.trees, t)
	for i := range g.residual {
		g.residual[i] -= t.binnedValue(g.data, i)
	}
}

type weightedValue struct{ value, weight float64 }

// quantile returns the weighted quantile of the residuals of rows.
func (g *treeGrower) quantile(rows []int32) float64 {
	if len(rows) == 0 {
		return 0
	}
	g.ranked = g.ranked[:0]
	total := 0.0
	for _, i := range rows {
		g.ranked = append(g.ranked, weightedValue{g.residual[i], g.weights[i]})
		total += g.weights[i]
	}
	slices.SortFunc(g.ranked, func(a, b weightedValue) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	want, sum := g.s.Quantile*total, 0.0
	for _, r := range g.ranked {
		if sum += r.weight; sum >= want {
			return r.value
		}
	}
	return g.ranked[len(g.ranked)-1].value
}
