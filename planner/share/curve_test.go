package share_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// crowded returns an instance of small tasks that fit a GPU together, under a curve.
func crowded(seed uint64, curve *sharing.Curve) *sharing.Instance {
	r := rand.New(rand.NewPCG(seed, 9))
	in := &sharing.Instance{
		Physics: sharing.PaperPhysics(), SLA: 1.2, SlotS: 60, Contention: curve,
		Servers: []sharing.Server{
			{StaticW: 100, GPUMemGB: []float64{32, 32, 16, 16, 32, 32}},
			{StaticW: 90, GPUMemGB: []float64{32, 32}},
		},
	}
	for i := range 4 + r.IntN(8) {
		task := sharing.Task{
			ID: string(rune('a' + i)), MemGB: 1 + 6*r.Float64(), GPUs: 1 + r.IntN(2),
			Kappa: 1.2 + 0.3*r.Float64(),
		}
		for range 6 {
			task.UtilPct = append(task.UtilPct, 70*r.Float64())
		}
		in.Tasks = append(in.Tasks, task)
	}
	return in
}

// tasksOn returns the tasks of a GPU.
func tasksOn(p share.Placement, gpu int) []int {
	var here []int
	for task, on := range p.GPUs {
		if slices.Contains(on, gpu) {
			here = append(here, task)
		}
	}
	return here
}

// sharingOf returns what some tasks come to on a GPU.
func sharingOf(in *sharing.Instance, gpu int, tasks []int) sharing.Occupancy {
	s := sharing.Occupancy{LoadPct: make([]float64, in.Slots()), Tasks: len(tasks)}
	for _, task := range tasks {
		s.Memory += in.Tasks[task].MemGB / in.GPUs()[gpu].MemGB
		for i, u := range in.Tasks[task].UtilPct {
			s.LoadPct[i] += u
		}
	}
	return s
}

func TestJudgeSlowsTasksDownByTheInstancesCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := &sharing.Curve{
			Exponent: rapid.Float64Range(1, 2).Draw(t, "exponent"), ByTask: rapid.Float64Range(0, .1).Draw(t,
				"by task"), ByMemory: rapid.Float64Range(0, .2).Draw(t, "by memory"),
		}
		in := crowded(rapid.Uint64().Draw(t, "seed"), curve)
		p := share.Place(in, share.HotCloud(), share.MaxClock)
		v := share.Evaluate(in, p)
		want := make([]float64, len(in.Tasks))
		for gpu := range in.GPUs() {
			here := tasksOn(p, gpu)
			s := sharingOf(in, gpu, here)
			for _, task := range here {
				want[task] = max(want[task], curve.Slowdown(s))
			}
		}
		for task := range want {
			if math.Abs(v.Slowdown[task]-want[task]) > 1e-9 {
				t.Fatalf("task %d is slowed down %v times, want %v", task, v.Slowdown[task], want[task])
			}
		}
	})
}

func TestOnlineSLAKeepsEverybodysSLAByTheCurve(t *testing.T) {
	steep := &sharing.Curve{Exponent: 1.5, ByTask: .06, ByMemory: .1}
	broken := 0
	for seed := range uint64(60) {
		in := crowded(seed, steep)
		if v := share.Evaluate(in, share.Place(in, share.OnlineSLA{},
			share.LowestClock)); v.Unplaced == 0 && v.Violations > 0 {
			// only where no GPU is left to sleep on may anybody be slowed down
			if v.GPUsOn < len(in.GPUs()) {
				t.Errorf("seed %d: %d violations with %d GPUs on", seed, v.Violations, v.GPUsOn)
			}
		}
		in.Contention = nil
		blind := share.Place(in, share.OnlineSLA{}, share.LowestClock)
		in.Contention = steep
		if v := share.Evaluate(in, blind); v.Violations > 0 {
			broken++
		}
	}
	if broken < 30 {
		t.Errorf("placements that don't know the curve break SLAs in %d of 60 instances: the curve is too "+
			"mild to show anything", broken)
	}
}

func TestALinearCurveChangesNothing(t *testing.T) {
	for seed := range uint64(30) {
		in := crowded(seed, nil)
		plain := share.Place(in, share.OnlineSLA{}, share.LowestClock)
		before := share.Evaluate(in, plain)
		linear := sharing.LinearCurve()
		in.Contention = &linear
		after := share.Evaluate(in,
			share.Place(in, share.OnlineSLA{}, share.LowestClock))
		if before.PowerW != after.PowerW || before.WorstSlowdown != after.WorstSlowdown {
			t.Errorf("seed %d: %v W and %v, want %v W and %v", seed, after.PowerW, after.WorstSlowdown,
				before.PowerW, before.WorstSlowdown)
		}
	}
}
