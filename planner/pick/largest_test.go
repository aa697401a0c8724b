package pick_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/tune"
)

type job struct {
	at, seconds float64
	gpus        int
	cpus        float64
	model       string
}

// starts runs jobs on a node of four GPUs and 16 CPUs, and one of another
// model, and tells when each starts.
func starts(t *testing.T, bound float64, jobs ...job) []float64 {
	t.Helper()
	node := planner.NodeClass{
		Name: "a", Model: "a", Count: 1, GPUs: 4, CPUs: 16, Steps: planner.StepPower{GPUIdle: 1, GPUBusy: 2},
	}
	other := node
	other.Name, other.Model = "b", "b"
	p := &planner.Problem{
		Mode: planner.Online, Cluster: planner.Cluster{Classes: []planner.NodeClass{node, other}},
	}
	for _, j := range jobs {
		if j.model == "" {
			j.model = "a"
		}
		run := &dvfsmodel.Fixed{At: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: j.seconds}}
		p.Tasks = append(p.Tasks, planner.Task{
			ID: "t", Arrival: j.at, Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: 1,
			CPUs:    j.cpus,
			Options: []planner.Option{{Model: j.model, GPUs: j.gpus, Response: run}},
		})
	}
	placement, err := policy.ParsePlacement("bestfit")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Solve(t.Context(), p, &planner.Policy{
		Tune: tune.None, Pick: pick.Largest{Bound: bound}.New, Park: park.Never{}, Place: placement.Stage(),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	at := make([]float64, len(jobs))
	for i := range at {
		at[i] = plan.Assignments[i].Start
		if plan.Assignments[i].Node < 0 {
			at[i] = math.NaN()
		}
	}
	return at
}

func wantTimes(t *testing.T, got []float64, want ...float64) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("starts %v, want %v", got, want)
			return
		}
	}
}

func TestTheLargestOfTheWaitingTasksComesFirst(t *testing.T) {
	got := starts(t, math.Inf(1),
		job{at: 0, seconds: 10, gpus: 4}, job{at: 1, seconds: 10, gpus: 1}, job{at: 2, seconds: 10, gpus: 2},
		job{at: 3, seconds: 10, gpus: 1, cpus: 8}, job{at: 4, seconds: 10, gpus: 4},
		job{at: 5, seconds: 10, gpus: 1, cpus: 4})
	wantTimes(t, got, 0, 30, 20, 20, 10, 20)
}

func TestNoTaskWaitsForEverWhileSmallOnesPass(t *testing.T) {
	jobs := []job{{at: 0, seconds: 10, gpus: 1}, {at: 1, seconds: 10, gpus: 4}}
	for at := 5.0; at < 200; at += 5 { // one GPU is always taken by them
		jobs = append(jobs, job{at: at, seconds: 10, gpus: 1})
	}
	if got := starts(t, math.Inf(1), jobs...); got[1] < 200 {
		t.Errorf("starts at %v without a bound: the test shows nothing", got[1])
	}
	got := starts(t, 50, jobs...)
	if got[1] > 1+50+2*10 {
		t.Errorf("starts at %v, want it soon after the bound", got[1])
	}
	for i := range jobs[2:] {
		if math.IsNaN(got[i+2]) {
			t.Errorf("task %d never starts", i+2)
		}
	}
}

func TestAnOverdueTaskHoldsBackOnlyWhatCouldTakeItsNodes(t *testing.T) {
	got := starts(t, 5,
		job{at: 0, seconds: 100, gpus: 1}, job{at: 1, seconds: 1, gpus: 4},
		job{at: 20, seconds: 1, gpus: 1}, job{at: 20, seconds: 1, gpus: 1, model: "b"})
	wantTimes(t, got, 0, 100, 101, 20)
}
