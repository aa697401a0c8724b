package fleet_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/planner/fleet"
)

// class returns a class that every task is of.
func class(cpu int64, gpus, milli int, spec string) fleet.TaskClass {
	return fleet.TaskClass{Demand: fleet.Demand{CPU: cpu, GPUs: gpus, Milli: milli, Spec: spec}, P: 1}
}

func TestFragmentationIsWhatAClassCantUse(t *testing.T) {
	n := fleet.NewNode(g2())
	n.CPU = 32_000
	n.GPU = [fleet.MaxGPUs]uint16{1000, 0, 300, 500, 0, 0, 0, 1000} // 2,800 left
	for _, c := range []struct {
		name  string
		class fleet.TaskClass
		want  float64
	}{
		{"the paper's m of 8 vCPU and 2 GPUs: the shares are lost", class(8_000, 2, 1000, ""), 800},
		{"its m' of 32 vCPU and 8 GPUs: two idle ones don't do", class(32_000, 8, 1000, ""), 2800},
		{"half a GPU: the smaller share is lost", class(8_000, 1, 500, ""), 300},
		{
			"GPUs that could host the task count as usable, however many it needs",
			class(8_000, 1, 1000, ""), 800,
		},
		{"a small part: nothing is lost", class(8_000, 1, 10, ""), 0},
		{"CPU lacks", class(32_001, 1, 500, ""), 2800},
		{"CPU and GPUs lack", class(32_001, 3, 1000, ""), 2800},
		{"no GPU asked: all is lost", class(1_000, 0, 0, ""), 2800},
		{"no GPU asked, and CPU lacks", class(33_000, 0, 0, ""), 2800},
		{"another model", class(8_000, 1, 10, "T4|G3"), 2800},
		{"one of several models", class(8_000, 1, 10, "T4|G2"), 0},
	} {
		m := fleet.Workload{c.class}
		if got := fleet.NewFragmentation(m).OfNode(&n); got != c.want {
			t.Errorf("%s: %v milli-GPU, want %v", c.name, got, c.want)
		}
		if got := fleet.NewFragmentationMeter(m).OfNode(&n); got != c.want {
			t.Errorf("%s, fast: %v milli-GPU, want %v", c.name, got, c.want)
		}
	}
}

func TestExpectedFragmentationWeighsClassesByTheirProbability(t *testing.T) {
	n := fleet.NewNode(g2())
	n.GPU = [fleet.MaxGPUs]uint16{1000, 400}
	m := fleet.Workload{
		class(1000, 1, 1000, ""), class(1000, 1, 500, ""), class(1000, 0, 0, ""), class(1000, 2, 1000, ""),
	}
	for i, p := range []float64{0.5, 0.25, 0.125, 0.125} {
		m[i].P = p
	}
	const want = 0.5*400 + 0.25*400 + 0.125*1400 + 0.125*1400
	s := fleet.NewState([]*fleet.Kind{g2(), g2()})
	if got := fleet.NewFragmentation(m).OfNode(&n); got != want {
		t.Errorf("a node: %v, want %v", got, want)
	}
	// Empty nodes: only the class without GPUs can't use theirs.
	if got := s.FragmentedGPUs(fleet.NewFragmentation(m)); math.Abs(got-2) > 1e-12 {
		t.Errorf("an empty cluster of 16 GPUs: %v GPUs, want 2", got)
	}
}

func TestTargetWorkloadKeepsTheMostFrequentDemands(t *testing.T) {
	var demands []fleet.Demand
	add := func(count int, d fleet.Demand) {
		for i := range count {
			d.Mem = int64(i) // not looked at
			demands = append(demands, d)
		}
	}
	small := fleet.Demand{CPU: 1000, GPUs: 1, Milli: 200}
	large := fleet.Demand{CPU: 2000, GPUs: 1, Milli: 200}
	half := fleet.Demand{CPU: 1000, GPUs: 1, Milli: 500}
	add(2, small)
	add(2, large)
	add(5, fleet.Demand{CPU: 4000})
	add(1, half)
	m := fleet.NewWorkload(demands, 0.85) // 5, 2 and 2 of 10 are 90 %
	total, kept := 10.0, 9.0
	part := func(count float64) float64 { return (count / total) / (kept / total) }
	want := []fleet.TaskClass{
		{Demand: fleet.Demand{CPU: 4000}, P: part(5)},
		{Demand: large, P: part(2)},
		{Demand: small, P: part(2)},
	}
	if len(m) != len(want) {
		t.Fatalf("%d classes, want %d: %+v", len(m), len(want), m)
	}
	for i := range want {
		if m[i] != want[i] {
			t.Errorf("class %d is %+v, want %+v", i, m[i], want[i])
		}
	}
	if m := fleet.NewWorkload(nil, 1); len(m) != 0 {
		t.Errorf("of nothing: %+v", m)
	}
}
