package planner_test

import (
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
