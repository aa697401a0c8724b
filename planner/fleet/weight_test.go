package fleet_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/planner/fleet"
)

func TestAWeightChangesWhatANodeCostsAndNotWhatItDraws(t *testing.T) {
	light, heavy := g2(), g2()
	heavy.Power.Weight = 2.5
	s := fleet.NewState([]*fleet.Kind{light, heavy})
	d := fleet.Demand{CPU: 8_000, GPUs: 1, Milli: 400}
	check := func(what string) {
		t.Helper()
		sum := 0.0
		for i, weight := range []float64{1, 2.5} {
			cpu, gpu := s.Node(i).Power()
			if got := s.Node(i).Cost(); got != weight*float64(cpu+gpu) {
				t.Errorf("%s: node %d costs %v at %v W", what, i, got, cpu+gpu)
			}
			sum += s.Node(i).Cost()
		}
		if got := s.Cost(); got != sum {
			t.Errorf("%s: the cluster costs %v, want %v", what, got, sum)
		}
	}
	check("empty")
	empty := s.Cost()
	for i := range 2 {
		if err := s.Place(i, &d, 1); err != nil {
			t.Fatal(err)
		}
		check("with a task")
	}
	s.Release(1, &d, 1)
	s.Sleep(1)
	check("asleep")
	s.Wake(1)
	s.Release(0, &d, 1)
	if got := s.Cost(); got != empty {
		t.Errorf("empty again, the cluster costs %v, want %v", got, empty)
	}
	for _, weight := range []float64{-1, math.Inf(1), math.NaN()} {
		heavy.Power.Weight = weight
		if err := heavy.Validate(); err == nil {
			t.Errorf("weight %v: no error", weight)
		}
	}
}
