package planner_test

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/planner"
)

func TestABacklogIsByGPUThatCouldBeHad(t *testing.T) {
	b := planner.NewBacklog([]int{4, 12, 8})
	if could := b.Add(3, func(place int) float64 { return []float64{2, 2, 0}[place] }); could != 16 {
		t.Errorf("%d GPUs could be had, want 16", could)
	}
	if could := b.Add(1, func(place int) float64 { return []float64{0, 0, 4}[place] }); could != 8 {
		t.Errorf("%d GPUs could be had, want 8", could)
	}
	if could := b.Add(1, func(int) float64 { return 0 }); could != 0 {
		t.Errorf("%d GPUs could be had, want none", could)
	}
	if want := []float64{6. / 16, 6. / 16, 4. / 8}; !slices.Equal(b.By, want) {
		t.Errorf("%v, want %v", b.By, want)
	}
}
