package place_test

import (
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/score"
	"github.com/epplan/epplan/planner/tune"
)

// placed is a task for the scored stage: of model m unless it says otherwise.
type placed struct {
	at, seconds float64
	gpus        int
	share       float64 // 0: 1
	cpus        float64
	models      []string
}

func (c placed) task() planner.Task {
	t := planner.Task{
		ID: "t", Arrival: c.at, Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: c.share,
		CPUs: c.cpus,
	}
	if t.Share == 0 {
		t.Share = 1
	}
	if c.models == nil {
		c.models = []string{"m"}
	}
	for _, m := range c.models {
		run := &dvfsmodel.Fixed{At: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: c.seconds}}
		t.Options = append(t.Options, planner.Option{Model: m, GPUs: c.gpus, Response: run})
	}
	return t
}

// class returns a node class with GPUs of 10 and 100 W.
func class(model string, count, gpus int) planner.NodeClass {
	return planner.NodeClass{
		Name: model, Model: model, Count: count, GPUs: gpus, CPUs: 8, MemGiB: 16,
		Steps: planner.StepPower{GPUIdle: 10, GPUBusy: 100},
	}
}

// scoredPlan runs tasks on classes by added power and checks the plan.
func scoredPlan(
	t *testing.T, parker planner.Parker, classes []planner.NodeClass, tasks ...placed,
) *planner.Plan {
	t.Helper()
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{Classes: classes}}
	for _, c := range tasks {
		p.Tasks = append(p.Tasks, c.task())
	}
	plan, err := planner.Solve(t.Context(), p, &planner.Policy{
		Tune: tune.None, Pick: pick.FCFS, Park: parker,
		Place: place.Scoring{Chooser: func(_ fleet.Workload, s *fleet.State) score.Chooser {
			return score.NewIndex(score.Rule{Parts: []score.WeightedScorer{{Scorer: score.PWR{}, Weight: 1}}},
				s)
		}}.New,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// wantStarts compares when tasks start; NaN for those that never do.
func wantStarts(t *testing.T, plan *planner.Plan, want ...float64) {
	t.Helper()
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if started := a.Node >= 0; started == math.IsNaN(want[i]) || (started && a.Start != want[i]) {
			t.Errorf("task %d on node %d starts at %v, want %v", i, a.Node, a.Start, want[i])
		}
	}
}

func TestATaskWithoutRoomStartsTheInstantThatOneEnds(t *testing.T) {
	one := []planner.NodeClass{class("m", 1, 2)}
	plan := scoredPlan(t, park.Never{}, one,
		placed{at: 0, seconds: 50, gpus: 2}, placed{at: 10, seconds: 7, gpus: 1},
		placed{at: 11, seconds: 9, gpus: 2}, placed{at: 12, seconds: 5, gpus: 1})
	// At 50 both GPUs get one task each; that of two GPUs waits for both.
	wantStarts(t, plan, 0, 50, 57, 50)
}

func TestCPUsRunOutAsWell(t *testing.T) {
	one := []planner.NodeClass{class("m", 1, 4)}
	plan := scoredPlan(t, park.Never{}, one, placed{at: 0, seconds: 20, gpus: 1, cpus: 6},
		placed{at: 1, seconds: 3, gpus: 1, cpus: 3}, placed{at: 2, seconds: 3, gpus: 1, cpus: 2})
	wantStarts(t, plan, 0, 20, 2)
}

func TestASleepingNodeWakesWithItsDelay(t *testing.T) {
	one := []planner.NodeClass{class("m", 1, 2)}
	one[0].TurnOnDelay = 4
	plan := scoredPlan(t, park.DRS{Rho: 5}, one,
		placed{at: 0, seconds: 10, gpus: 1}, // wakes it: 4 to 14
		placed{at: 2, seconds: 3, gpus: 1},  // shares the waking: 4 to 7
		placed{at: 16, seconds: 2, gpus: 1}, // still on
		placed{at: 40, seconds: 1, gpus: 1}) // woken again
	wantStarts(t, plan, 4, 4, 16, 44)
	if on := plan.Nodes[0].On; len(plan.Nodes) != 1 || len(on) != 2 ||
		on[0] != (planner.Interval{From: 0, To: 23}) || on[1] != (planner.Interval{From: 40, To: 50}) {
		t.Errorf("nodes %+v", plan.Nodes)
	}
}

func TestAnUnlimitedClassHasANodeForEveryTaskAtOnce(t *testing.T) {
	tasks := slices.Repeat([]placed{{at: 1, seconds: 5, gpus: 2}}, 50)
	tasks = append(tasks, placed{at: 2, seconds: 1, gpus: 1}, placed{at: 100, seconds: 1, gpus: 2})
	plan := scoredPlan(t, park.DRS{Rho: 3}, []planner.NodeClass{class("m", 0, 2)}, tasks...)
	for i := range tasks {
		if a := plan.Assignments[i]; a.Start != tasks[i].at {
			t.Errorf("task %d starts at %v, want when it arrives, %v", i, a.Start, tasks[i].at)
		}
	}
	if len(plan.Nodes) < 51 {
		t.Errorf("%d nodes", len(plan.Nodes))
	}
}

func TestTasksWithoutGPUsTakeOnlyCPUs(t *testing.T) {
	plan := scoredPlan(t, park.Never{}, []planner.NodeClass{class("m", 1, 1)},
		placed{at: 0, seconds: 10, gpus: 1, cpus: 2}, placed{at: 0, seconds: 10, cpus: 6},
		placed{at: 1, seconds: 10, cpus: 1})
	wantStarts(t, plan, 0, 0, 10)
	if set := plan.Assignments[1].GPUs; set != 0 {
		t.Errorf("GPUs %v for a task without any", set.Indexes())
	}
}

func TestTasksShareGPUsAsFarAsTheyGo(t *testing.T) {
	plan := scoredPlan(t, park.Never{}, []planner.NodeClass{class("m", 1, 2)},
		placed{at: 0, seconds: 10, gpus: 1, share: 0.6}, placed{at: 1, seconds: 10, gpus: 1, share: 0.4},
		placed{at: 2, seconds: 10, gpus: 1, share: 0.5}, placed{at: 3, seconds: 10, gpus: 1, share: 0.6})
	wantStarts(t, plan, 0, 1, 2, 10)
	a := plan.Assignments
	if a[0].GPUs != a[1].GPUs || a[2].GPUs == a[0].GPUs {
		t.Errorf("GPUs %v, %v, %v: want the first two on one", a[0].GPUs.Indexes(), a[1].GPUs.Indexes(),
			a[2].GPUs.Indexes())
	}
}

func TestATaskGoesToTheModelItAcceptsOfTheLeastPower(t *testing.T) {
	frugal := class("frugal", 1, 1)
	frugal.Steps.GPUBusy = 50
	classes := []planner.NodeClass{class("m", 1, 1), frugal}
	both := []string{"m", "frugal"}
	plan := scoredPlan(t, park.Never{}, classes,
		placed{at: 0, seconds: 10, gpus: 1, models: both}, placed{at: 1, seconds: 10, gpus: 1, models: both},
		placed{at: 2, seconds: 10, gpus: 1})
	wantStarts(t, plan, 0, 1, 11)
	for task, class := range []int{1, 0, 0} {
		if got := plan.Nodes[plan.Assignments[task].Node].Class; got != class {
			t.Errorf("task %d on class %d, want %d", task, got, class)
		}
	}
	// A weight turns the choice around.
	classes[1].Steps.Weight = 10
	plan = scoredPlan(t, park.Never{}, classes, placed{at: 0, seconds: 10, gpus: 1, models: both})
	if got := plan.Nodes[plan.Assignments[0].Node].Class; got != 0 {
		t.Errorf("weighted: on class %d, want 0", got)
	}
}

func TestIdlePowerCountsWhereStepsAreNotKnown(t *testing.T) {
	hot, cool := class("hot", 0, 2), class("cool", 0, 2)
	hot.Steps, hot.IdleW = planner.StepPower{}, 50
	cool.Steps, cool.IdleW = planner.StepPower{}, 10
	anywhere := placed{seconds: 10, gpus: 1, models: []string{"hot", "cool"}}
	plan := scoredPlan(t, park.DRS{Rho: 5}, []planner.NodeClass{hot, cool}, anywhere, anywhere)
	if len(plan.Nodes) != 1 || plan.Nodes[0].Class != 1 {
		t.Errorf("nodes %+v, want one that is cool", plan.Nodes)
	}
}
