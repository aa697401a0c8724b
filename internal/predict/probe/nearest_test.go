package probe_test

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/predict/probe"
)

func TestTheNearestAreThoseOfLikeStyleWhateverTheirNumbers(t *testing.T) {
	set := &probe.Set{
		Style: 1, Embeddings: [][]float64{{0, 0}, {5, 9}, {6, 0}, {9, 5}}, Values: []float64{1, 2, 3, 4},
	}
	d, err := probe.NewDistances(set)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Nearest([]float64{5.2, 0}, 3); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("%v", got)
	}
	if got := d.Nearest([]float64{0, 0}, 9); len(got) != 4 || got[0] != 0 {
		t.Errorf("%v", got)
	}
}
