package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

func TestCheckRefusesAJobThatIsNotOnItsNodesTogether(t *testing.T) {
	for name, spoil := range map[string]func(p *planner.Problem, plan *planner.Plan, a *planner.Assignment){
		"gang: a node short": func(_ *planner.Problem, _ *planner.Plan, a *planner.Assignment) {
			a.More = nil
		},
		"gang: a node too many": func(_ *planner.Problem, _ *planner.Plan, a *planner.Assignment) {
			a.More = append(a.More, planner.Part{Node: 2, GPUs: 15})
		},
		"gang: a node twice": func(_ *planner.Problem, _ *planner.Plan, a *planner.Assignment) {
			a.More[0].Node = a.Node
		},
		"gang: another class": func(_ *planner.Problem, plan *planner.Plan, a *planner.Assignment) {
			plan.Nodes[a.More[0].Node].Class = 1
		},
		"place: a GPU short": func(_ *planner.Problem, _ *planner.Plan, a *planner.Assignment) {
			a.More[0].GPUs = 7
		},
		"place: a GPU too many": func(_ *planner.Problem, _ *planner.Plan, a *planner.Assignment) {
			a.More[0].GPUs = 31
		},
		"shape: no such node": func(_ *planner.Problem, _ *planner.Plan, a *planner.Assignment) {
			a.More[0].Node = 9
		},
		"overlap: GPUs in use": func(_ *planner.Problem, plan *planner.Plan, a *planner.Assignment) {
			a.More[0].Node = plan.Assignments[1].Node
		},
		"power: a node that is off": func(_ *planner.Problem, plan *planner.Plan, a *planner.Assignment) {
			plan.Nodes[a.More[0].Node].On[0].To = 9
		},
		"cpus: of each node": func(p *planner.Problem, _ *planner.Plan, _ *planner.Assignment) {
			p.Tasks[0].CPUs = 25
		},
		"memory: of each node": func(p *planner.Problem, _ *planner.Plan, _ *planner.Assignment) {
			p.Tasks[0].MemGiB = 81
		},
		"ledger: energy elsewhere": func(_ *planner.Problem, plan *planner.Plan, _ *planner.Assignment) {
			plan.Ledger.Nodes[1].Run++
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plannertest.TwoByFour()
			plan := plannertest.SolveWith(t, p, &planner.Policy{
				Name: "test", Tune: tune.None, Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{},
			})
			spoil(p, plan, &plan.Assignments[0])
			err, ok := errors.AsType[*check.Error](check.Plan(p, plan))
			kind, _, _ := strings.Cut(name, ":")
			found := false
			for i := 0; ok && i < len(err.Violations); i++ {
				found = found || string(err.Violations[i].Kind) == kind
			}
			if !found {
				t.Errorf("found %v", err)
			}
		})
	}
}
