package planner_test

import (
	"context"
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/tune"
)

// A problem made by hand: a cluster, and tasks with how they respond to clocks.
func ExampleSolve() {
	clocks := dvfsmodel.WideRange()
	response := func(seconds float64) dvfsmodel.Response {
		return &dvfsmodel.Continuous{
			Params: dvfsmodel.Params{
				P0: 50, Gamma: 30, C: 110, D: 0.9 * seconds, Delta: 0.6, T0: 0.1 * seconds,
			},
			Range: &clocks,
		}
	}
	p := &planner.Problem{
		Mode: planner.Offline,
		Cluster: planner.Cluster{Classes: []planner.NodeClass{
			{Name: "pair", Model: "V100", Count: 2, GPUs: 2, IdleW: 37},
		}},
		Tasks: []planner.Task{
			planner.NewTask("train", planner.Option{Model: "V100", GPUs: 2, Response: response(600)}),
			planner.NewTask("infer", planner.Option{Model: "V100", GPUs: 1, Response: response(200)}),
			planner.NewTask("late", planner.Option{Model: "V100", GPUs: 1, Response: response(300)}),
		},
	}
	p.Tasks[1].Deadline, p.Tasks[1].Due = 190, 190
	p.Tasks[2].Deadline, p.Tasks[2].Due = 100, 100

	pol, err := policy.Parse("marginal", policy.DefaultParams())
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := check.Plan(p, plan); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Status)
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			fmt.Printf("%s: node %d, GPUs %v, %.0f to %.0f s: %s\n", p.Tasks[i].ID, a.Node, a.GPUs.Indexes(),
				a.Start, a.End, a.Reason)
		}
	}
	for _, u := range plan.Unplaced {
		fmt.Printf("%s: %s; it ends at %.0f s at the earliest\n", p.Tasks[u.Task].ID, u.Why, u.Earliest)
	}
	lower := bound.Lower(p)
	fmt.Printf("run %.0f J, idle %.0f J, %.1f %% above the bound\n", plan.Ledger.Run, plan.Ledger.Idle,
		100*lower.Gap(plan.Ledger.Total()))
	// Output:
	// partial
	// train: node 1, GPUs [0 1], 0 to 753 s: free optimum; on a GPU of its own: no used one fits
	// infer: node 0, GPUs [0], 0 to 190 s: deadline-bound: 190 s allowed, the optimum takes 250.855 s; on a GPU of its own: no used one fits
	// late: needs 268.405 s at the fastest clocks, 100 s remain to its deadline; it ends at 268 s at the earliest
	// run 191725 J, idle 7030 J, 3.7 % above the bound
}

// shortest is a Pick stage: of those that wait, the task that takes least time.
type shortest struct {
	view    *planner.View
	waiting []int
	refused []int // until the next event
}

func newShortest(v *planner.View, _ planner.Placer) planner.Picker { return &shortest{view: v} }

func (s *shortest) Arrive(tasks []int) {
	s.waiting = append(append(s.waiting, s.refused...), tasks...)
	s.refused = s.refused[:0]
	planner.SortByKey(s.waiting, func(task int) float64 {
		return s.view.Problem.Tasks[task].Options[0].Response.Default().Time
	})
}

func (s *shortest) Next() (task int, ok bool) {
	if len(s.waiting) == 0 {
		return 0, false
	}
	task, s.waiting = s.waiting[0], s.waiting[1:]
	return task, true
}

func (s *shortest) Refused(task int) { s.refused = append(s.refused, task) }
func (s *shortest) Wake() float64    { return math.Inf(1) }

// patient is a Park stage: an idle node waits for so many seconds.
type patient float64

func (p patient) OffAt(_ *planner.Cluster, lastEnd float64) float64 { return lastEnd + float64(p) }

// Stages of one's own go together with those that there are.
func ExamplePolicy() {
	task := func(id string, seconds, arrival float64) planner.Task {
		at := dvfsmodel.Params{P0: 100, T0: seconds}.At(dvfsmodel.DefaultScaling())
		t := planner.NewTask(id, planner.Option{Model: "V100", GPUs: 1, Response: &dvfsmodel.Fixed{At: at}})
		t.Arrival = arrival
		return t
	}
	p := &planner.Problem{
		Mode: planner.Online,
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "one", Model: "V100", Count: 1, GPUs: 1, IdleW: 37}},
		},
		Tasks: []planner.Task{task("long", 300, 0), task("short", 60, 0), task("next", 100, 1000)},
	}
	mine := &planner.Policy{
		Name:  "shortest",
		Pick:  newShortest,
		Place: place.AtOnce,
		Tune:  tune.None,
		Park:  patient(120),
	}
	plan, err := planner.Solve(context.Background(), p, mine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range plan.Assignments {
		fmt.Println(p.Tasks[i].ID, "starts at", plan.Assignments[i].Start)
	}
	fmt.Println("the node is on", plan.Nodes[0].On, check.Plan(p, plan))

	mine.Pick = pick.FCFS
	plan, err = planner.Solve(context.Background(), p, mine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("first come, first served: short starts at", plan.Assignments[1].Start)
	// Output:
	// long starts at 60
	// short starts at 0
	// next starts at 1000
	// the node is on [{0 480} {1000 1220}] <nil>
	// first come, first served: short starts at 300
}

// Run times that turn out otherwise than predicted are booked as they are, and
// the policy doesn't know.
func ExampleOptions() {
	problem := func(seconds float64) *planner.Problem {
		at := dvfsmodel.Params{P0: 100, T0: seconds}.At(dvfsmodel.DefaultScaling())
		option := planner.Option{Model: "V100", GPUs: 1, Response: &dvfsmodel.Fixed{At: at}}
		return &planner.Problem{
			Mode: planner.Online,
			Cluster: planner.Cluster{
				Classes: []planner.NodeClass{{Name: "one", Model: "V100", Count: 1, GPUs: 1}},
			},
			Tasks: []planner.Task{planner.NewTask("a", option), planner.NewTask("b", option)},
		}
	}
	predicted, truth := problem(100), problem(130)
	pol, err := policy.Parse("simple", policy.DefaultParams())
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := planner.Solve(context.Background(), predicted, pol, &planner.Options{Truth: truth})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Assignments[1].Start, check.Plan(truth, plan))
	// Output:
	// 130 <nil>
}
