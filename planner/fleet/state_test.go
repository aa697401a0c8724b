package fleet_test

import (
	"reflect"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

func TestPlacingWhatDoesNotFitIsAnErrorAndChangesNothing(t *testing.T) {
	s := fleet.NewState([]*fleet.Kind{g2()})
	if err := s.Place(0, &fleet.Demand{CPU: 1000, GPUs: 1, Milli: 600}, 1<<3); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		d    fleet.Demand
		gpus planner.GPUSet
	}{
		{"CPU lacks", fleet.Demand{CPU: 95_001}, 0},
		{"memory lacks", fleet.Demand{Mem: 393_217}, 0},
		{"the GPU is too full", fleet.Demand{GPUs: 1, Milli: 401}, 1 << 3},
		{"the GPU isn't idle", fleet.Demand{GPUs: 2, Milli: 1000}, 0b1001},
		{"no GPU of that number", fleet.Demand{GPUs: 1, Milli: 100}, 1 << 8},
		{"fewer GPUs than asked", fleet.Demand{GPUs: 2, Milli: 1000}, 1},
		{"GPUs for a task that asks for none", fleet.Demand{CPU: 1}, 1},
		{"another model", fleet.Demand{GPUs: 1, Milli: 100, Spec: "T4"}, 1},
	} {
		before := *s.Node(0)
		cpu, gpu := s.Power()
		if err := s.Place(0, &c.d, c.gpus); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if afterCPU, afterGPU := s.Power(); *s.Node(0) != before || cpu != afterCPU || gpu != afterGPU ||
			s.Allocated() != 600 {
			t.Errorf("%s: the state has changed", c.name)
		}
	}
}

func TestASleepingNodeDrawsItsSleepPowerUntilATaskComes(t *testing.T) {
	s := fleet.NewState([]*fleet.Kind{g2(), g2()})
	fresh := fleet.NewState([]*fleet.Kind{g2(), g2()})
	check := func(want float64) {
		t.Helper()
		if cpu, gpu := s.Power(); float64(cpu+gpu) != want {
			t.Errorf("%v W, want %v W", cpu+gpu, want)
		}
	}
	const idle = 3*15 + 8*30
	s.Sleep(1)
	check(idle + 9)
	s.Sleep(1)
	check(idle + 9)
	d := fleet.Demand{CPU: 1000}
	if err := s.Place(1, &d, 0); err != nil {
		t.Fatal(err)
	}
	check(2*idle + 105)
	s.Sleep(1) // not while a task runs
	check(2*idle + 105)
	s.Release(1, &d, 0)
	check(2 * idle)
	s.Sleep(0)
	s.Wake(0)
	check(2 * idle)
	for i := range 2 {
		if a, b := *s.Node(i), *fresh.Node(i); !reflect.DeepEqual(a.GPU, b.GPU) || a.Asleep {
			t.Errorf("node %d: %+v, want %+v", i, a, b)
		}
	}
}

func TestGPUsAreChosenByNumberAndByFit(t *testing.T) {
	n := fleet.NewNode(g2())
	n.GPU = [fleet.MaxGPUs]uint16{300, 1000, 200, 1000, 1000, 300, 0, 1000}
	if got, want := n.WholeGPUs(2), planner.GPUSet(0b1010); got != want {
		t.Errorf("two idle GPUs: %v, want %v", got.Indexes(), want.Indexes())
	}
	for milli, want := range map[int]planner.GPUSet{100: 1 << 2, 250: 1 << 0, 301: 1 << 1} {
		if got := n.TightestGPU(milli); got != want {
			t.Errorf("%d milli-GPU: %v, want %v", milli, got.Indexes(), want.Indexes())
		}
	}
	n.GPU = [fleet.MaxGPUs]uint16{}
	if got := n.TightestGPU(1); got != 0 {
		t.Errorf("a full node: %v", got.Indexes())
	}
}

func TestMeaninglessDemandsAndKindsAreErrors(t *testing.T) {
	for _, d := range []fleet.Demand{
		{CPU: -1},
		{Mem: -1},
		{GPUs: -1},
		{GPUs: fleet.MaxGPUs + 1, Milli: 1000},
		{Milli: 10},
		{GPUs: 1},
		{GPUs: 1, Milli: 1001},
		{GPUs: 2, Milli: 500},
	} {
		if d.Validate() == nil {
			t.Errorf("%+v: no error", d)
		}
	}
	for _, d := range []fleet.Demand{{}, {CPU: 1, GPUs: 1, Milli: 1}, {GPUs: 8, Milli: 1000}} {
		if err := d.Validate(); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	for _, spoil := range []func(*fleet.Kind){
		func(k *fleet.Kind) { k.CPU = -1 },
		func(k *fleet.Kind) { k.GPUs = fleet.MaxGPUs + 1 },
		func(k *fleet.Kind) { k.Power.GPUIdle = -1 },
		func(k *fleet.Kind) { k.Power.Cores = -1 },
	} {
		k := g2()
		if err := k.Validate(); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
		spoil(k)
		if k.Validate() == nil {
			t.Errorf("%+v: no error", k)
		}
	}
}
