package planner_test

import (
	"context"
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// solve plans a problem by a policy string. The plan is checked.
func solve(tb testing.TB, p *planner.Problem, text string) *planner.Plan {
	tb.Helper()
	pol, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	return solveWith(tb, p, pol)
}

// solveWith plans a problem. The plan is checked.
func solveWith(tb testing.TB, p *planner.Problem, pol *planner.Policy) *planner.Plan {
	tb.Helper()
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := planner.Check(p, plan); err != nil {
		tb.Fatal(err)
	}
	return plan
}

// fixed is a response without a model: so many seconds at 100 W.
func fixed(seconds float64) dvfsmodel.Response {
	return &dvfsmodel.Fixed{At: dvfsmodel.Params{P0: 100, T0: seconds}.At(dvfsmodel.DefaultScaling())}
}

// scalable is a workload of the paper's kind that takes so many seconds at
// default clocks.
func scalable(seconds float64) dvfsmodel.Params {
	return dvfsmodel.Params{P0: 50, Gamma: 30, C: 110, D: 0.9 * seconds, Delta: 0.6, T0: 0.1 * seconds}
}

var wide = dvfsmodel.WideRange()

// job is a task on one whole GPU of model A, there from 0 on.
func job(id string, response dvfsmodel.Response) planner.Task {
	return planner.Task{
		ID: id, Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: 1,
		Options: []planner.Option{{Model: "A", GPUs: 1, Response: response}},
	}
}

// at sets a task's arrival and deadline.
func at(t planner.Task, arrival, deadline float64) planner.Task {
	t.Arrival, t.Deadline, t.Due = arrival, deadline, deadline
	return t
}

// paperLike is an offline problem of the paper's kind: eight jobs of 10 s to
// 80 s, nodes of two GPUs.
func paperLike() *planner.Problem {
	p := &planner.Problem{Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "A", GPUs: 2, IdleW: 37, TurnOn: 90},
	}}}
	for i := range 8 {
		seconds := float64(10 * (i + 1))
		p.Tasks = append(p.Tasks,
			at(job(string(rune('a'+i)), &dvfsmodel.Continuous{Params: scalable(seconds), Range: &wide}), 0,
				150+seconds))
	}
	return p
}

// clockTable is a profile of 3 core and 2 memory clocks.
func clockTable(tb testing.TB) *dvfsmodel.Table {
	tb.Helper()
	pairs := make([]dvfsmodel.Setting, 0, 6)
	for _, mem := range []dvfsmodel.MHz{2500, 5000} {
		for _, core := range []dvfsmodel.MHz{1000, 1400, 1500} {
			pairs = append(pairs, dvfsmodel.Setting{Core: core, Mem: mem})
		}
	}
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1400, Mem: 5000}, pairs, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// mixed is an online problem with all that a problem can have: two classes of
// limited size, clock tables, many GPUs, shares, cores, memory, delays, a job
// that comes late and one that fits nowhere.
func mixed(tb testing.TB) *planner.Problem {
	tb.Helper()
	table := clockTable(tb)
	base := table.Nearest(1400, 5000)
	p := &planner.Problem{
		Mode: planner.Online, Start: planner.StartSlot, Cluster: planner.Cluster{
			Slot: 1, Classes: []planner.NodeClass{
				{
					Name: "big", Model: "A", Count: 2, GPUs: 4, CPUs: 16, MemGiB: 64, IdleW: 37, HostW: 20,
					SleepW: 5, TurnOn: 90, TurnOnDelay: 2,
				},
				{Name: "small", Model: "B", Count: 2, GPUs: 2, IdleW: 10, SleepW: 1, TurnOn: 50},
			},
		},
	}
	add := func(t planner.Task, cpus, mem float64) {
		t.CPUs, t.MemGiB = cpus, mem
		p.Tasks = append(p.Tasks, t)
	}
	onB := func(t planner.Task) planner.Task {
		t.Options[0].Model = "B"
		return t
	}
	share := func(t planner.Task, share float64) planner.Task {
		t.Share = share
		return t
	}
	three := job("three", &dvfsmodel.Continuous{Params: scalable(40), Range: &wide})
	three.Options[0].GPUs = 3
	add(three, 6, 20)
	add(share(job("half", fixed(30)), 0.5), 2, 5)
	add(share(job("third", &dvfsmodel.Continuous{Params: scalable(25), Range: &wide}), 0.3), 2, 5)
	add(share(job("tenth", fixed(30)), 0.1), 2, 5)
	add(at(job("later", &dvfsmodel.Continuous{Params: scalable(40), Range: &wide}), 5, 100), 2, 5)
	add(at(onB(job("table", &dvfsmodel.Discrete{Params: scalable(50), Table: table, At: base})), 1, 200),
		0, 0)
	add(at(onB(job("frontier", dvfsmodel.NewFrontier(scalable(30), table, base))), 1, 200), 0, 0)
	for _, id := range []string{"rush1", "rush2", "rush3"} {
		add(at(onB(job(id, fixed(100))), 2, 110), 0, 0)
	}
	huge := job("huge", fixed(10))
	huge.Options[0].GPUs = 5
	add(huge, 0, 0)
	add(at(job("again", fixed(10)), 500, 600), 1, 1)
	return p
}

// index is the number of a task.
func index(tb testing.TB, p *planner.Problem, id string) int {
	tb.Helper()
	for i := range p.Tasks {
		if p.Tasks[i].ID == id {
			return i
		}
	}
	tb.Fatalf("no job %q", id)
	return -1
}
