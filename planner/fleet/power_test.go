package fleet_test

import (
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/fleet"
)

// g2 returns the most frequent node of the paper's cluster: 96 vCPU, 8 GPUs taken
// for A10 (PWR+FGD paper, section V-B and table II).
func g2() *fleet.Kind {
	return &fleet.Kind{Model: "G2", CPU: 96_000, Mem: 393_216, GPUs: 8, Power: fleet.Power{
		GPUIdle: 30, GPUBusy: 150, CPUIdle: 15, CPUBusy: 120, Cores: 16, Threads: 2, Sleep: 9,
	}}
}

func TestPackagesDrawBusyPowerFromTheirFirstCoreOn(t *testing.T) {
	p := g2().Power
	literal := p
	literal.Literal = true
	odd := p
	odd.Cores, odd.Threads = 3, 0
	for _, c := range []struct {
		name           string
		power          fleet.Power
		capacity, left int64
		want           dvfsmodel.Watt
	}{
		{"three idle packages", p, 96_000, 96_000, 3 * 15},
		{"one vCPU takes a core, a core a package", p, 96_000, 95_000, 120 + 2*15},
		{"32 vCPU are one package", p, 96_000, 64_000, 120 + 2*15},
		{"a part of a vCPU more is the next", p, 96_000, 63_999, 2*120 + 15},
		{"all busy", p, 96_000, 0, 3 * 120},
		{"104 vCPU are 52 cores in four packages", p, 104_000, 104_000, 4 * 15},
		{"literally, the part left of the third package is lost", literal, 96_000, 95_000, 120 + 2*15},
		{"literally, 8 of 104 vCPU have no package when idle", literal, 104_000, 104_000, 3 * 15},
		{"literally, what is used makes whole packages", literal, 96_000, 63_999, 2*120 + 15},
		{"other packages: 8 cores in threes, 2 busy", odd, 8_000, 6_000, 120 + 2*15},
		{"no packages", fleet.Power{CPUIdle: 15, CPUBusy: 120}, 96_000, 0, 0},
	} {
		if got := c.power.CPU(c.capacity, c.left); got != c.want {
			t.Errorf("%s: %v W, want %v W", c.name, got, c.want)
		}
	}
}

func TestAnyShareMakesAGPUBusy(t *testing.T) {
	n := fleet.NewNode(g2())
	check := func(cpu, gpu dvfsmodel.Watt) {
		t.Helper()
		if gotCPU, gotGPU := n.Power(); gotCPU != cpu || gotGPU != gpu {
			t.Errorf("%v W and %v W, want %v W and %v W", gotCPU, gotGPU, cpu, gpu)
		}
	}
	check(45, 8*30)
	n.Place(&fleet.Demand{CPU: 3152, GPUs: 1, Milli: 10}, 1<<5)
	check(120+2*15, 150+7*30)
	n.Place(&fleet.Demand{CPU: 3152, GPUs: 1, Milli: 990}, 1<<5)
	check(120+2*15, 150+7*30)
	n.Place(&fleet.Demand{CPU: 26_000, GPUs: 2, Milli: fleet.WholeGPU}, 0b11)
	check(2*120+15, 3*150+5*30)
	n = fleet.NewNode(g2())
	n.Asleep = true
	check(9, 0)
}
