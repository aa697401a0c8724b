// Package plannertest has problems to plan, for tests of the planner's rooms.
package plannertest

import (
	"context"
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/sharing"
)

// Solve plans a problem by a policy string. The plan is checked.
func Solve(tb testing.TB, p *planner.Problem, text string) *planner.Plan {
	tb.Helper()
	pol, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	return SolveWith(tb, p, pol)
}

// SolveWith plans a problem. The plan is checked.
func SolveWith(tb testing.TB, p *planner.Problem, pol *planner.Policy) *planner.Plan {
	tb.Helper()
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		tb.Fatal(err)
	}
	return plan
}

// Fixed returns a response without a model: so many seconds at 100 W.
func Fixed(seconds float64) dvfsmodel.Response {
	return &dvfsmodel.Fixed{At: dvfsmodel.Params{P0: 100, T0: seconds}.At(dvfsmodel.DefaultScaling())}
}

// Scalable returns a workload of the paper's kind that takes so many seconds at
// default clocks.
func Scalable(seconds float64) dvfsmodel.Params {
	return dvfsmodel.Params{P0: 50, Gamma: 30, C: 110, D: 0.9 * seconds, Delta: 0.6, T0: 0.1 * seconds}
}

// Continuous is such a workload on a GPU with the paper's wide range of clocks.
func Continuous(seconds float64) dvfsmodel.Response {
	wide := dvfsmodel.WideRange()
	return &dvfsmodel.Continuous{Params: Scalable(seconds), Range: &wide}
}

// Job returns a task on one whole GPU of model A, there from 0 on.
func Job(id string, response dvfsmodel.Response) planner.Task {
	return planner.Task{
		ID: id, Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: 1,
		Options: []planner.Option{{Model: "A", GPUs: 1, Response: response}},
	}
}

// At sets a task's arrival and deadline.
func At(t planner.Task, arrival, deadline float64) planner.Task {
	t.Arrival, t.Deadline, t.Due = arrival, deadline, deadline
	return t
}

// PaperLike returns an offline problem of the paper's kind: eight jobs of 10 s to
// 80 s, nodes of two GPUs.
func PaperLike() *planner.Problem {
	p := &planner.Problem{Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "A", GPUs: 2, IdleW: 37, TurnOn: 90},
	}}}
	for i := range 8 {
		seconds := float64(10 * (i + 1))
		p.Tasks = append(p.Tasks,
			At(Job(string(rune('a'+i)), Continuous(seconds)), 0, 150+seconds))
	}
	return p
}

// clockTable returns a profile of 3 core and 2 memory clocks.
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

// Mixed returns an online problem with all that a problem can have: two classes of
// limited size, clock tables, many GPUs, shares, cores, memory, delays, a job
// that comes late and one that fits nowhere.
func Mixed(tb testing.TB) *planner.Problem {
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
	three := Job("three", Continuous(40))
	three.Options[0].GPUs = 3
	add(three, 6, 20)
	add(share(Job("half", Fixed(30)), 0.5), 2, 5)
	add(share(Job("third", Continuous(25)), 0.3), 2, 5)
	add(share(Job("tenth", Fixed(30)), 0.1), 2, 5)
	add(At(Job("later", Continuous(40)), 5, 100), 2, 5)
	add(At(onB(Job("table", &dvfsmodel.Discrete{Params: Scalable(50), Table: table, At: base})), 1, 200),
		0, 0)
	add(At(onB(Job("frontier", dvfsmodel.NewFrontier(Scalable(30), table, base))), 1, 200), 0, 0)
	for _, id := range []string{"rush1", "rush2", "rush3"} {
		add(At(onB(Job(id, Fixed(100))), 2, 110), 0, 0)
	}
	huge := Job("huge", Fixed(10))
	huge.Options[0].GPUs = 5
	add(huge, 0, 0)
	add(At(Job("again", Fixed(10)), 500, 600), 1, 1)
	return p
}

// SharedCluster is nodes whose GPUs may be shared, of the CATS paper's physics.
func SharedCluster(count int, gb ...float64) planner.Cluster {
	return planner.Cluster{
		Sharing: &planner.Sharing{Physics: sharing.PaperPhysics()},
		Classes: []planner.NodeClass{{
			Name: "v100", Model: "A", Count: count, GPUs: len(gb), HostW: 20, TurnOn: 90, SharedGB: gb,
		}},
	}
}

// atMax returns a response at the highest frequency of those physics.
func atMax(seconds float64) dvfsmodel.Response {
	physics := sharing.PaperPhysics()
	return &dvfsmodel.Fixed{At: dvfsmodel.Params{
		P0: dvfsmodel.Watt(physics.PowerAt(physics.Max())), T0: seconds,
	}.At(dvfsmodel.DefaultScaling())}
}

// Profiled returns a job with a profile that takes so many seconds by itself.
func Profiled(id string, arrival, seconds, gb, kappa float64, util ...float64) planner.Task {
	t := At(Job(id, atMax(seconds)), arrival, math.Inf(1))
	t.Profile = &planner.UsageProfile{UtilPct: util, SlotS: 60, MemGB: gb, Kappa: kappa}
	return t
}

// Curved returns a pair of jobs of which one comes while the other runs, on a GPU of
// 32 GB under a curve.
func Curved(curve *sharing.Curve, kappa float64, util ...float64) *planner.Problem {
	p := &planner.Problem{Mode: planner.Online, Cluster: SharedCluster(1, 32)}
	p.Cluster.Sharing.Contention = curve
	p.Tasks = []planner.Task{
		Profiled("a", 0, 100, 4, kappa, util...), Profiled("b", 10, 30, 4, kappa, util...),
	}
	return p
}

// TwoByFour returns a problem of a job on two nodes with four GPUs each, of three nodes, and one that is
// beside it.
func TwoByFour() *planner.Problem {
	response := &dvfsmodel.Fixed{At: dvfsmodel.Params{P0: 100, T0: 10}.At(dvfsmodel.DefaultScaling())}
	gang := planner.NewTask("gang", planner.Option{Model: "A", GPUs: 8, Nodes: 2, Response: response})
	gang.CPUs, gang.MemGiB = 16, 64
	return &planner.Problem{
		Cluster: planner.Cluster{Classes: []planner.NodeClass{
			{Name: "a", Model: "A", Count: 3, GPUs: 4, CPUs: 12, MemGiB: 40, IdleW: 10, HostW: 5},
			{Name: "b", Model: "B", Count: 3, GPUs: 4},
		}},
		Tasks: []planner.Task{
			gang, planner.NewTask("one", planner.Option{Model: "A", GPUs: 1, Response: response}),
		},
	}
}

// CappedModel returns a workload on a GPU whose clocks and limit are those of base by default.
func CappedModel(tb testing.TB, base dvfsmodel.Setting) *dvfsmodel.Fitted {
	tb.Helper()
	model, err := dvfsmodel.NewFitted(dvfsmodel.CappedForm(), base, []dvfsmodel.Coefficient{
		{Name: "time.scale_s", Value: 40},
		{Name: "time.core_share", Value: 0.7},
		{Name: "time.core_knee", Value: 1.1},
		{Name: "time.memory_exponent", Value: 0.5},
		{Name: "power.static_w", Value: 70},
		{Name: "power.dynamic_w", Value: 140},
		{Name: "power.voltage_slope", Value: 1.3},
		{Name: "power.voltage_knee", Value: 0.7},
		{Name: "power.memory_exponent", Value: 0.2},
		{Name: "power.cap_ratio", Value: 1},
		{Name: "power.cap_edge", Value: 20},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return model
}

// Capped returns a response that knows power caps: of 150, 200 and 250 W, on a GPU of those core clocks that
// is under 300 W by default.
func Capped(tb testing.TB) dvfsmodel.Response {
	tb.Helper()
	base := dvfsmodel.Setting{Core: 1400, Mem: 5000, Cap: 300}
	table, err := dvfsmodel.NewTable(base, []dvfsmodel.Setting{
		{Core: 1000, Mem: 5000}, {Core: 1200, Mem: 5000}, {Core: 1400, Mem: 5000},
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return dvfsmodel.NewCappedFrontier(CappedModel(tb, base), table, table.Nearest(1400, 5000),
		[]dvfsmodel.Watt{150, 200, 250})
}
