package score_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

func TestEachTermOfThePotentialByHand(t *testing.T) {
	full := used()
	empty := fleet.NewNode(full.Kind)
	asleep := empty
	asleep.Asleep = true
	share := func(milli int) fleet.Demand { return fleet.Demand{CPU: 4000, GPUs: 1, Milli: milli} }
	m := fleet.Workload{{Demand: fleet.Demand{CPU: 1000, GPUs: 1, Milli: 500}, P: 1}}
	for _, c := range []struct {
		name   string
		prices score.PotentialPrices
		d      fleet.Demand
		n      *fleet.Node
		want   float64 // minus the watts
		gpus   planner.GPUSet
	}{
		{"power: an idle GPU", score.PotentialPrices{}, share(700), full, -120, 1 << 4},
		{
			"power: waking a node of 285 W idle and 7 W asleep",
			score.PotentialPrices{},
			fleet.Demand{CPU: 1},
			&asleep, -(285 - 7 + 105), 0,
		},
		{
			"next: the half that fits on GPU 1 would need an idle one",
			score.PotentialPrices{Next: 1},
			share(300), full, 0, 1 << 2,
		},
		{
			"next: a busy GPU is left",
			score.PotentialPrices{Next: 1},
			share(500), &empty,
			-(120 + 105) + (120 + 105), 1 << 0,
		},
		{
			"block: no vCPU is left, and a package is busy",
			score.PotentialPrices{Next: 0.1, Block: 450},
			fleet.Demand{CPU: 56_000},
			full, -105 - 45, 0,
		},
		{
			"spare: 56 vCPU for 5.4 GPUs become 55",
			score.PotentialPrices{Spare: 3, SpareCPUs: 10},
			fleet.Demand{CPU: 1000},
			full, 3, 0,
		},
		{"fragment: 300 more", score.PotentialPrices{Fragment: 200}, share(700), full, -(120 + 60), 1 << 4},
		{
			"hole: 400 becomes 100; 600, a hole of 100, would become 300",
			score.PotentialPrices{Hole: 100},
			share(300), full, 30, 1 << 2,
		},
		{
			"starve: 1.4 GPUs become none",
			score.PotentialPrices{Starve: 100, StarveCPUs: 14},
			fleet.Demand{CPU: 4000, GPUs: 2, Milli: 1000},
			full, -240 + 140, 0,
		},
		{
			"strand",
			score.PotentialPrices{Strand: 100, StrandCPUs: 13},
			share(700), full,
			-(120 + 100*((4.7-4)-(5.4-56./13))), 1 << 4,
		},
	} {
		c.prices.StarveCPUs, c.prices.StrandCPUs = max(1, c.prices.StarveCPUs), max(1, c.prices.StrandCPUs)
		got, gpus := score.NewPotential(m, c.prices).Score(&c.d, c.n)
		if math.Abs(got-c.want) > 1e-6 || gpus != c.gpus {
			t.Errorf("%s: %v on %v, want %v on %v", c.name, got, gpus.Indexes(), c.want, c.gpus.Indexes())
		}
	}
}

// level fills or empties a cluster of 100 GPUs up to a number of them.
type level struct {
	s    *fleet.State
	gpus int
}

func (l *level) to(t *testing.T, gpus int) {
	t.Helper()
	d := fleet.Demand{GPUs: 1, Milli: fleet.WholeGPU}
	for ; l.gpus < gpus; l.gpus++ {
		if err := l.s.Place(l.gpus/10, &d, 1<<(l.gpus%10)); err != nil {
			t.Fatal(err)
		}
	}
	for ; l.gpus > gpus; l.gpus-- {
		last := l.gpus - 1
		l.s.Release(last/10, &d, 1<<(last%10))
	}
}

func TestPricesRiseByStepsAndDoNotFlutterWhenTheLoadDoes(t *testing.T) {
	kinds := make([]*fleet.Kind, 10)
	for i := range kinds {
		kinds[i] = kindOf("G2", 96_000, 400_000, 10)
	}
	cluster := level{s: fleet.NewState(kinds)}
	p := score.NewPotential(nil, score.DefaultPotentialPrices())
	last := 1.0
	for _, c := range []struct {
		gpus int
		want float64
	}{
		{0, 1},
		{70, 1},
		{74, 1},
		{75, 2.25},
		{74, 2.25},
		{75, 2.25},
		{73, 1},
		{80, 3.5},
		{85, 4.75},
		{90, 6},
		{89, 6},
		{88, 4.75},
		{100, 6},
		{10, 1},
	} {
		cluster.to(t, c.gpus)
		changed := p.Update(cluster.s)
		if got := p.Factor(); math.Abs(got-c.want) > 1e-9 || changed != (got != last) {
			t.Errorf("%d %% allocated: factor %v (changed %v), want %v", c.gpus, got, changed, c.want)
		}
		last = p.Factor()
	}
}

func TestThePotentialGrowsFasterWhereRoomIsScarce(t *testing.T) {
	m := fleet.Workload{{Demand: fleet.Demand{CPU: 1000, GPUs: 1, Milli: 500}, P: 1}}
	prices := score.PotentialPrices{Fragment: 200, StarveCPUs: 1, StrandCPUs: 1, Rise: 2, From: 0.5, To: 0.5}
	p := score.NewPotential(m, prices)
	d := fleet.Demand{CPU: 4000, GPUs: 1, Milli: 700}
	before, _ := p.Score(&d, used())
	full := fleet.NewState([]*fleet.Kind{kindOf("G2", 96_000, 400_000, 1)})
	if err := full.Place(0, &fleet.Demand{GPUs: 1, Milli: fleet.WholeGPU}, 1); err != nil {
		t.Fatal(err)
	}
	if !p.Update(full) {
		t.Fatal("nothing changed in a full cluster")
	}
	if after, _ := p.Score(&d, used()); before != -(120+60) || after != -(120+3*60) {
		t.Errorf("%v, then %v, want -180 and -300", before, after)
	}
}
