package planner_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

func TestTheUnitOfTheObjectiveSaysItsWeights(t *testing.T) {
	for want, o := range map[string]dvfsmodel.Objective{
		"J":                      {},
		"0.5·J + 50·GPU·s":       {EnergyWeight: 0.5, TimeWeight: 50},
		"GPU·s":                  {TimeWeight: 1},
		"J·GPU·s":                {EnergyWeight: 1, DelayPower: 1},
		"(J + 2·GPU·s)·(GPU·s)²": {EnergyWeight: 1, TimeWeight: 2, DelayPower: 2},
		"3·GPU·s·(GPU·s)²":       {TimeWeight: 3, DelayPower: 2},
	} {
		p := planner.Problem{Objective: o}
		if got := p.CostUnit(); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

func TestTheUnitOfTheObjectiveSaysThePriceOfWaitingOrTheCurrency(t *testing.T) {
	for want, p := range map[string]planner.Problem{
		"J + 20·GPU·s waited": {WaitWeight: 20},
		"J + 50·GPU·s + 20·GPU·s waited": {
			Objective: dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: 50}, WaitWeight: 20,
		},
		"EUR": {
			Objective: dvfsmodel.Objective{EnergyWeight: 1e-7, TimeWeight: 1e-3}, Currency: "EUR",
		},
	} {
		if got := p.CostUnit(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWaitingCostsByGPUFromTheArrivalOn: 4 GPUs for 7 s, and half a one for 10 s.
func TestWaitingCostsByGPUFromTheArrivalOn(t *testing.T) {
	p := &planner.Problem{
		WaitWeight: 20, Tasks: []planner.Task{
			planner.NewTask("wide"), planner.NewTask("shared"), planner.NewTask("none"),
		},
	}
	p.Tasks[0].Arrival, p.Tasks[1].Share = 3, 0.5
	plan := &planner.Plan{Assignments: []planner.Assignment{
		{
			GPUs: planner.FirstGPUs(2), More: []planner.Part{{Node: 1, GPUs: planner.FirstGPUs(2)}},
			Start: 10, End: 12,
		},
		{GPUs: planner.FirstGPUs(1), Start: 10, End: 20},
		{Node: -1, Start: 99},
	}}
	if waited := plan.WaitedGPUSeconds(p); waited != 33 {
		t.Errorf("%v GPU·s, want 33", waited)
	}
	plan.Ledger.Run = 1000
	if cost := p.Cost(plan); cost != 1660 {
		t.Errorf("it costs %v, want 1660", cost)
	}
}

func TestAPriceOfWaitingThatMakesNoSenseIsRefused(t *testing.T) {
	valid := planner.Problem{
		Cluster: planner.Cluster{Classes: []planner.NodeClass{{Name: "n", Model: "A", GPUs: 1}}},
		Tasks:   []planner.Task{planner.NewTask("a")}, WaitWeight: 1,
	}
	if err := valid.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, weight := range []float64{-1, math.NaN(), math.Inf(1)} {
		p := valid
		if p.WaitWeight = weight; p.Validate() == nil {
			t.Errorf("%v is taken", weight)
		}
	}
	p := valid
	if p.Objective = (dvfsmodel.Objective{EnergyWeight: 1, DelayPower: 1}); p.Validate() == nil {
		t.Error("taken beside E·t")
	}
}
