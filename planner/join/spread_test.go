package join_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
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
		tasks, _, err := join.Tasks(batch, &cluster, twoModels{}, join.Margins{})
		if err != nil {
			t.Fatal(err)
		}
		if got := tasks[0].Options[0].Nodes; got != c.want {
			t.Errorf("%+v: on %d nodes, want %d", c, got, c.want)
		}
	}
}
