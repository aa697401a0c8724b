package improve_test

import (
	"context"
	"math"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// gangs are tasks of so many seconds and GPUs each that may end at any time of a
// day, on so many nodes of four GPUs.
func gangs(nodes int, tasks ...[2]float64) *planner.Problem {
	p := &planner.Problem{
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{
				Name: "node", Model: "A", GPUs: 4, Count: nodes, IdleW: 37, HostW: 25,
			}},
		},
	}
	for i, t := range tasks {
		p.Tasks = append(p.Tasks, planner.Task{
			ID: strconv.Itoa(i), Deadline: 86400, Due: 86400, Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{
				{Model: "A", GPUs: int(t[1]), Response: &dvfsmodel.Fixed{At: dvfsmodel.Point{
					Scaling: dvfsmodel.DefaultScaling(), Time: t[0], Power: 150,
					Energy: dvfsmodel.Watt(150).Over(t[0]),
				}}},
			},
		})
	}
	return p
}

// inTurn plans the tasks in the order of the batch, each as soon as it can start.
func inTurn(tb testing.TB, p *planner.Problem) *planner.Plan {
	tb.Helper()
	pol := &planner.Policy{
		Tune: tune.Optimum(1), Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{Rho: 2},
	}
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

// The short tasks of one GPU leave three idle while the long ones of three wait.
var unlucky = [][2]float64{{100, 3}, {600, 1}, {300, 2}, {300, 4}, {200, 3}, {900, 1}}

func TestTasksOfTheOnlyNodeChangeTurnsWhereThatSavesEnergy(t *testing.T) {
	p := gangs(1, unlucky...)
	plan := inTurn(t, p)
	better := improved(t, improve.Retune{Moves: 20_000}, p, plan)
	if before, now := plan.Ledger.Idle, better.Ledger.Idle; !(now < 0.6*before) {
		t.Errorf("%v J idle, before %v: want at most six tenths", now, before)
	}
}

func TestATaskThatCannotBePlannedKeepsNoOtherFromItsTurn(t *testing.T) {
	p := gangs(1, append([][2]float64{{10, 4}}, unlucky...)...)
	p.Tasks[0].Deadline, p.Tasks[0].Due = 5, 5
	plan := inTurn(t, p)
	if len(plan.Unplaced) != 1 {
		t.Fatalf("%d tasks are left out, want the first", len(plan.Unplaced))
	}
	better := improved(t, improve.Retune{Moves: 20_000}, p, plan)
	if before, now := plan.Ledger.Idle, better.Ledger.Idle; !(now < 0.6*before) || len(better.Unplaced) != 1 {
		t.Errorf("%v J idle, before %v, %d left out", now, before, len(better.Unplaced))
	}
}

func TestTurnsChangeOnNodesWhoseSleepTakesEnergyToo(t *testing.T) {
	p := gangs(3, unlucky...)
	p.Cluster.Classes[0].SleepW = 5
	plan := inTurn(t, p)
	better := improved(t, improve.Retune{Moves: 20_000}, p, plan)
	if len(better.Nodes) != 3 {
		t.Errorf("%d nodes, want those that sleep as well", len(better.Nodes))
	}
	if before, now := plan.Ledger.Total(), better.Ledger.Total(); !(now < 0.9*before) {
		t.Errorf("%v J, before %v: want a tenth less", now, before)
	}
}

func TestWhoIsLateEndsNoLaterAndMayEndInTime(t *testing.T) {
	p := gangs(1, unlucky...)
	last := len(p.Tasks) - 1
	p.Tasks[last].Deadline, p.Tasks[last].Due = 950, 950
	plan := inTurn(t, p)
	if len(plan.Misses) != 1 {
		t.Fatalf("%d tasks are late, want the last", len(plan.Misses))
	}
	better := improved(t, improve.Retune{Moves: 20_000}, p, plan) // which checks the list of the late
	if before, now := plan.Assignments[last].End, better.Assignments[last].End; now > before {
		t.Errorf("the late task ends at %v, before at %v", now, before)
	}
	if !(better.Ledger.Total() < plan.Ledger.Total()) {
		t.Errorf("%v J, before %v", better.Ledger.Total(), plan.Ledger.Total())
	}
}
