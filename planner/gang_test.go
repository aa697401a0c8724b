package planner_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
	"github.com/epplan/epplan/queue"
)

// spreadCase is a job of a CSV file and on how many nodes it runs by GPU model.
type spreadCase struct {
	name, csv string
	want      map[string]int
}

func TestAJobRunsOnAsManyNodesAsItSaysOrAsFewAsHoldIt(t *testing.T) {
	// Nodes of model slow have 8 GPUs, those of model fast 4.
	const header = "id,runtime_s,runtime_gpu_model,gpus,nodes\n"
	for _, c := range []spreadCase{
		{"as it says", header + "a,1,*,8,4\n", map[string]int{"slow": 4, "fast": 4}},
		{"one node", header + "a,1,*,8,1\n", map[string]int{"slow": 0, "fast": 0}},
		{"on one node where one holds it", header + "a,1,*,8,\n", map[string]int{"slow": 0, "fast": 0}},
		{"more than any node has", header + "a,1,*,16,\n", map[string]int{"slow": 2, "fast": 4}},
		{"as few as it divides by", header + "a,1,*,18,\n", map[string]int{"slow": 3, "fast": 6}},
		{"no way to divide it", header + "a,1,*,13,\n", map[string]int{"slow": 13, "fast": 13}},
		{"of one model", header + "a,1,fast,fast:8,\n", map[string]int{"fast": 2}},
		{"one node and more than it has", header + "a,1,fast,fast:8,1\n", map[string]int{"fast": 0}},
		{
			"one GPU on each", "id,runtime_s,runtime_gpu_model,nodes\na,1,*,3\n",
			map[string]int{"slow": 3, "fast": 3},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			task, _, err := joined(t, c.csv, "slow", "fast")
			if err != nil {
				t.Fatal(err)
			}
			if len(task.Options) != len(c.want) {
				t.Errorf("options %+v, want %v", task.Options, c.want)
			}
			for _, o := range task.Options {
				if o.Nodes != c.want[o.Model] {
					t.Errorf("on %d nodes of %s, want %d", o.Nodes, o.Model, c.want[o.Model])
				}
			}
		})
	}
}

func TestAJobIsSpreadOnlyOverNodesThatThereAre(t *testing.T) {
	batch, err := queue.Read(strings.NewReader("id,runtime_s,gpus,cpus\na,1,8,16\n"), "jobs.csv", queue.Auto)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		counts [2]int // nodes of 4 GPUs, and of 2
		cores  float64
		want   int
	}{
		{[2]int{2, 4}, 0, 2},
		{[2]int{1, 4}, 0, 4},
		{[2]int{1, 3}, 0, 0},
		{[2]int{2, 4}, 4, 4},
		{[2]int{2, 4}, 3, 0},
	} {
		cluster := planner.Cluster{Classes: []planner.NodeClass{
			{Name: "four", Model: "fast", Count: c.counts[0], GPUs: 4, CPUs: c.cores},
			{Name: "two", Model: "fast", Count: c.counts[1], GPUs: 2, CPUs: c.cores},
		}}
		tasks, _, err := planner.Join(batch, &cluster, twoModels{}, planner.Margins{})
		if err != nil {
			t.Fatal(err)
		}
		if got := tasks[0].Options[0].Nodes; got != c.want {
			t.Errorf("%+v: on %d nodes, want %d", c, got, c.want)
		}
	}
}

func soonestPlan(t *testing.T, p *planner.Problem) *planner.Plan {
	t.Helper()
	plan, err := planner.Solve(context.Background(), p,
		&planner.Policy{
			Name: "test", Tune: tune.None, Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{},
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestAJobOnSeveralNodesPaysForAllOfThem(t *testing.T) {
	p := twoByFour()
	plan := soonestPlan(t, p)
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	a := &plan.Assignments[0]
	if len(a.More) != 1 || a.GPUCount() != 8 || a.Energy(&p.Tasks[0]) != 8000 || a.Power(&p.Tasks[0]) != 800 {
		t.Errorf("on %+v and %+v with %v J at %v W, want 4 GPUs of 2 nodes, 8,000 J and 800 W",
			a.GPUs.Indexes(), a.More, a.Energy(&p.Tasks[0]), a.Power(&p.Tasks[0]))
	}
	// Two full nodes, and one with three idle GPUs, all for 10 s.
	if l := &plan.Ledger; l.Run != 9000 || l.Idle != 300 || l.Host != 600 || l.Nodes[0].Run != 4000 ||
		l.Nodes[1].Run != 4000 {
		t.Errorf("ledger %+v", l)
	}
	if got := plan.GPUSeconds(p); got != 90 {
		t.Errorf("%v GPU-seconds, want 90", got)
	}
	if lower := bound.Lower(p); math.Abs(float64(lower.Run)-9450) > 1e-6 {
		t.Errorf("bound %+v, want 9,450 J of runs and hosts", lower)
	}
}

func TestAJobWaitsUntilItsNodesAreFreeTogether(t *testing.T) {
	p := twoByFour()
	p.Cluster.Classes[0].Count = 2
	p.Tasks[0], p.Tasks[1] = p.Tasks[1], p.Tasks[0]
	plan := soonestPlan(t, p)
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	if a := &plan.Assignments[1]; a.Start != 10 || len(a.More) != 1 {
		t.Errorf("starts at %v s on %d nodes, want 10 s, when both are free", a.Start, 1+len(a.More))
	}
}

func TestAJobThatTooFewNodesHoldIsNamed(t *testing.T) {
	p := twoByFour()
	p.Cluster.Classes[0].Count = 1
	plan := soonestPlan(t, p)
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Unplaced) != 1 ||
		plan.Unplaced[0].Why !=
			"no 2 nodes of a kind have the GPUs, CPUs and memory that it asks for together" {
		t.Errorf("unplaced %+v", plan.Unplaced)
	}
}

func TestAJobThatRunsOnSeveralNodesHoldsThemAtThePresent(t *testing.T) {
	p := twoByFour()
	p.Mode, p.Cluster.Classes[0].Count = planner.Online, 2
	p.Snapshot = &planner.Snapshot{Now: 5, Running: []planner.RunningTask{{Task: 0, Start: 0, End: 10}}}
	plan, err := planner.Solve(context.Background(), p,
		&planner.Policy{
			Name: "test", Tune: tune.None, Place: place.AtOnce, Pick: pick.FCFS, Park: park.DRS{},
		},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := plan.Assignments; len(a[0].More) != 1 || a[1].Start != 10 {
		t.Errorf("%+v", a)
	}
}
