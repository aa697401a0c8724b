package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Set is what is learnt from: embeddings of equal length and what the jobs took.
type Set struct {
	Embeddings [][]float64
	Values     []float64 // above 0

	// Style is how many of the coordinates, the first ones, say how a source is written,
	// and not what numbers it has; 0 is all.
	Style int
}

func (s *Set) check() error {
	switch n := len(s.Embeddings); {
	case n < 2:
		return fmt.Errorf("%d jobs to learn from, want 2 at least", n)
	case len(s.Values) != n:
		return fmt.Errorf("%d embeddings and %d values, want as many", n, len(s.Values))
	case len(s.Embeddings[0]) == 0:
		return errors.New("embeddings of length 0")
	case s.Style < 0 || s.Style > len(s.Embeddings[0]):
		return fmt.Errorf("%d coordinates of style, embeddings have %d", s.Style, len(s.Embeddings[0]))
	}
	for i, e := range s.Embeddings {
		if len(e) != len(s.Embeddings[0]) {
			return fmt.Errorf("embedding %d has %d coordinates, the first one %d", i, len(e),
				len(s.Embeddings[0]))
		}
		if slices.ContainsFunc(e, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			return fmt.Errorf("embedding %d has coordinates that are not finite", i)
		}
		if v := s.Values[i]; !(v > 0) || math.IsInf(v, 1) {
			return fmt.Errorf("value %d is %g, want more than 0", i, v)
		}
	}
	return nil
}

// style returns the coordinates of an embedding that say how a source is written.
func (s *Set) style(e []float64) []float64 {
	if s.Style == 0 {
		return e
	}
	return e[:s.Style]
}

// logs returns the values' logarithms.
func (s *Set) logs() []float64 {
	out := make([]float64, len(s.Values))
	for i, v := range s.Values {
		out[i] = math.Log(v)
	}
	return out
}

// Estimate is what a probe expects of a job: a value above 0, and the interval that holds
// nine truths of ten where jobs are like those that were learnt from.
type Estimate struct{ Value, Low, High float64 }

// Probe estimates from an embedding of the length that it was fitted to.
type Probe interface {
	Estimate(embedding []float64) Estimate
}

// Kind is a kind of probe.
type Kind string

// The kinds.
const (
	Linear Kind = "linear"
	MLP    Kind = "mlp"
)

// Fit fits a probe of a kind.
func Fit(ctx context.Context, k Kind, s *Set) (Probe, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	switch k {
	case Linear:
		return fitRidge(s)
	case MLP:
		return fitNetwork(ctx, s)
	default:
		return nil, fmt.Errorf("probe %q, want %s or %s", k, Linear, MLP)
	}
}
