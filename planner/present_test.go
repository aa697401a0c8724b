package planner_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

// queueProblem draws a queue of jobs that may run on either of two classes of GPUs, and arrive so
// close together that they wait.
func queueProblem(tb rapid.TB, seed uint64, jobs int) *planner.Problem {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "A", Model: "A", Count: 1, GPUs: 10 + r.IntN(11)},
		{Name: "B", Model: "B", Count: 1, GPUs: 20 + r.IntN(21)},
	}}}
	arrival := 0.0
	for i := range jobs {
		arrival += math.Floor(3000 * r.ExpFloat64())
		gpus := 1 << r.IntN(4)
		options := make([]planner.Option, 0, len(p.Cluster.Classes))
		for _, class := range p.Cluster.Classes {
			at := dvfsmodel.Point{
				Scaling: dvfsmodel.DefaultScaling(), Time: math.Floor(1e5 * (0.5 + r.Float64())),
				Power: dvfsmodel.Watt(20 + 100*r.Float64()),
			}
			at.Energy = at.Power.Over(at.Time)
			options = append(options, planner.Option{
				Model: class.Model, GPUs: gpus, Response: &dvfsmodel.Fixed{At: at},
			})
		}
		task := planner.NewTask(strconv.Itoa(i), options...)
		task.Arrival = arrival
		p.Tasks = append(p.Tasks, task)
	}
	return p
}

func policyOf(tb rapid.TB, text string) *planner.Policy {
	tb.Helper()
	p, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// rest returns the problem that is left of a plan when a task arrives, and which
// tasks those are.
func rest(
	p *planner.Problem, plan *planner.Plan, at float64,
) (left *planner.Problem, present *planner.Snapshot, tasks []int) {
	left, present = &planner.Problem{Cluster: p.Cluster, Mode: p.Mode}, &planner.Snapshot{Now: at}
	for task := range p.Tasks {
		a := &plan.Assignments[task]
		if a.End <= at {
			continue
		}
		if a.Start < at {
			present.Running = append(present.Running, planner.RunningTask{
				Task: len(tasks), Class: plan.Nodes[a.Node].Class, Start: a.Start, End: a.End,
			})
		}
		left.Tasks, tasks = append(left.Tasks, p.Tasks[task]), append(tasks, task)
	}
	return left, present, tasks
}

func TestAPlanFromThePresentGoesOnAsTheWholePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := queueProblem(t, rapid.Uint64Range(1, 1000).Draw(t, "seed"), 60)
		text := rapid.SampledFrom([]string{
			"simple", "simple-backfill", "easy", "greedy", "value,kappa=1e-5",
		}).Draw(t, "policy")
		whole, err := planner.Solve(t.Context(), p, policyOf(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		at := p.Tasks[rapid.IntRange(0, len(p.Tasks)-1).Draw(t, "present")].Arrival
		left, present, tasks := rest(p, whole, at)
		var order []int
		left.Snapshot = present
		plan, err := planner.Solve(t.Context(), left, policyOf(t, text),
			&planner.Options{Started: func(task int) { order = append(order, task) }})
		if err != nil {
			t.Fatal(err)
		}
		for i, task := range tasks {
			if got, want := plan.Assignments[i].Start, whole.Assignments[task].Start; got != want {
				t.Fatalf("%s from %v s: job %s starts at %v, want %v", text, at, left.Tasks[i].ID, got, want)
			}
		}
		if len(order) != len(tasks)-len(present.Running) {
			t.Fatalf("%d starts were told of %d waiting jobs", len(order), len(tasks)-len(present.Running))
		}
		if !slices.IsSortedFunc(order, func(a, b int) int {
			return cmp.Compare(plan.Assignments[a].Start,
				plan.Assignments[b].Start)
		}) {
			t.Fatal("starts were not told in their order")
		}
		if err := check.Plan(left, plan); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatRunsWithoutRoomIsLeftOut(t *testing.T) {
	p := queueProblem(t, 3, 30)
	p.Cluster.Classes[0].GPUs, p.Cluster.Classes[1].GPUs = 8, 8
	present := &planner.Snapshot{Now: p.Tasks[29].Arrival}
	for task := range 20 {
		present.Running = append(present.Running, planner.RunningTask{
			Task: task, Class: 0, Start: p.Tasks[task].Arrival, End: present.Now + 10,
		})
	}
	p.Snapshot = present
	plan, err := planner.Solve(t.Context(), p, policyOf(t, "simple-backfill"), nil)
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for task := range 20 {
		if a := &plan.Assignments[task]; a.Node >= 0 {
			used += a.GPUs.Len()
		}
	}
	if len(plan.Unplaced) == 0 || used > 8 || used == 0 {
		t.Errorf("%d GPUs of 8 are in use, %d jobs were left out", used, len(plan.Unplaced))
	}
	for task := 20; task < 30; task++ {
		if plan.Assignments[task].Node < 0 || plan.Assignments[task].Start < present.Now {
			t.Errorf("job %d: %+v", task, plan.Assignments[task])
		}
	}
}

func TestAPresentThatMakesNoSenseIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(p *planner.Problem, n *planner.Snapshot, o *planner.Options)
	}{
		{
			"clairvoyant", "is online or offline",
			func(p *planner.Problem, _ *planner.Snapshot, _ *planner.Options) {
				p.Mode = planner.Clairvoyant
			},
		},
		{
			"offline", "of an offline plan is at",
			func(p *planner.Problem, n *planner.Snapshot, _ *planner.Options) {
				p.Mode = planner.Offline
				for i := range p.Tasks {
					p.Tasks[i].Arrival = 0
				}
				n.Running[0].Start = 0
			},
		},
		{"no time", "finite", func(_ *planner.Problem, n *planner.Snapshot, _ *planner.Options) {
			n.Now = math.Inf(1)
		}},
		{"no task", "task 99 runs", func(_ *planner.Problem, n *planner.Snapshot, _ *planner.Options) {
			n.Running[0].Task = 99
		}},
		{"twice", "each once", func(_ *planner.Problem, n *planner.Snapshot, _ *planner.Options) {
			n.Running = append(n.Running, n.Running[0])
		}},
		{"no class", "doesn't suit", func(_ *planner.Problem, n *planner.Snapshot, _ *planner.Options) {
			n.Running[0].Class = 2
		}},
		{"ended", "beyond", func(_ *planner.Problem, n *planner.Snapshot, _ *planner.Options) {
			n.Running[0].End = n.Now
		}},
		{"early", "from its arrival", func(_ *planner.Problem, n *planner.Snapshot, _ *planner.Options) {
			n.Running[0].Start = -1
		}},
		{"truth", "no other truth", func(p *planner.Problem, _ *planner.Snapshot, o *planner.Options) {
			o.Truth = p
		}},
	} {
		p := queueProblem(t, 1, 10)
		n := &planner.Snapshot{Now: p.Tasks[9].Arrival}
		n.Running = []planner.RunningTask{{Task: 0, Class: 1, Start: p.Tasks[0].Arrival, End: n.Now + 1}}
		o := &planner.Options{}
		p.Snapshot = n
		if _, err := planner.Solve(t.Context(), p, policyOf(t, "simple"), o); err != nil {
			t.Fatal(err)
		}
		c.change(p, n, o)
		if _, err := planner.Solve(t.Context(), p, policyOf(t, "simple"), o); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A plan of what waits leaves alone what runs, on nodes that are ready though others have
// to be switched on first.
func TestWhatRunsHoldsItsGPUsInEveryPlanFromThePresent(t *testing.T) {
	held := &dvfsmodel.Fixed{At: dvfsmodel.Params{T0: 100}.At(dvfsmodel.DefaultScaling())}
	short := &dvfsmodel.Fixed{At: dvfsmodel.Params{P0: 100, T0: 10}.At(dvfsmodel.DefaultScaling())}
	for _, text := range append(policy.Names(), policy.PlacementNames()...) {
		if text == "mix" {
			text = "mix:bestfit=1,fgd=2"
		}
		p := &planner.Problem{
			Cluster: planner.Cluster{
				OfflineTurnOn: true, Classes: []planner.NodeClass{{
					Name: "a", Model: "A", Count: 2, GPUs: 4, IdleW: 20, TurnOn: 50, TurnOnDelay: 30,
				}},
			},
			Tasks: []planner.Task{
				planner.NewTask("runs", planner.Option{Model: "A", GPUs: 3, Response: held}),
				planner.NewTask("one", planner.Option{Model: "A", GPUs: 1, Response: short}),
				planner.NewTask("gang", planner.Option{Model: "A", GPUs: 8, Nodes: 2, Response: short}),
			},
			Snapshot: &planner.Snapshot{Running: []planner.RunningTask{{Task: 0, End: 100}}},
		}
		if err := policy.ImplyDue(t.Context(), p, 1.5); err != nil {
			t.Fatal(err)
		}
		plan, err := policy.SolveChecked(t.Context(), p, policyOf(t, text), nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		a := plan.Assignments
		if len(plan.Unplaced) > 0 || a[0].Start != 0 || a[0].End != 100 || a[2].Start < 100 {
			t.Errorf("%s: %+v, unplaced %+v", text, a, plan.Unplaced)
		}
		if text == "simple-backfill" && a[1].Start != 0 {
			t.Errorf("beside what runs a job starts at %v s, want at once: the node is on", a[1].Start)
		}
		spoiled := *plan
		spoiled.Assignments = slices.Clone(a)
		spoiled.Assignments[0].Start, spoiled.Assignments[0].End = 30, 130
		if err := check.Plan(p, &spoiled); err == nil || !strings.Contains(err.Error(), "present: job") {
			t.Errorf("%s: what runs starts later: %v", text, err)
		}
	}
}

// TestWhatRunsIsPackedOnNodesSoThatAllOfItFits though which nodes it runs on isn't known: one
// by one, the first tasks would leave the last ones no two nodes.
func TestWhatRunsIsPackedOnNodesSoThatAllOfItFits(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Snapshot: &planner.Snapshot{Now: 100}}
	p.Cluster.Classes = []planner.NodeClass{{Name: "n", Model: "m", Count: 2, GPUs: 4, TurnOnDelay: 5}}
	run := &dvfsmodel.Fixed{At: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: 500}}
	for i, o := range []planner.Option{{GPUs: 1}, {GPUs: 1}, {GPUs: 2, Nodes: 2}, {GPUs: 4, Nodes: 2}} {
		o.Model, o.Response = "m", run
		p.Tasks = append(p.Tasks, planner.NewTask(string(rune('a'+i)), o))
		p.Snapshot.Running = append(p.Snapshot.Running, planner.RunningTask{
			Task: i, Start: float64(10 * i), End: float64(400 + 10*i),
		})
	}
	for _, text := range []string{"replan", "easy", "marginal"} {
		plan, err := planner.Solve(t.Context(), p, policyOf(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range plan.Unplaced {
			t.Errorf("%s: job %q is left out: %s", text, p.Tasks[u.Task].ID, u.Why)
		}
		for i, r := range p.Snapshot.Running {
			if a := &plan.Assignments[i]; a.Start != r.Start || a.End != r.End {
				t.Errorf("%s: job %q runs from %v to %v s, want from %v to %v s", text, p.Tasks[i].ID,
					a.Start, a.End, r.Start, r.End)
			}
		}
	}
}
