package catalog_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

// A batch, the built-in GPU models and a cluster become a plan.
func ExampleNew() {
	const file = `[[cluster.nodes]]
gpu_model = "V100"
count = 1
gpus = 2
`
	c, err := config.Load(strings.NewReader(file), "cluster.toml", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	batch, err := queue.Read(strings.NewReader("id,runtime_s,power_w,gpus\na,600,200,2\nb,300,150,1\n"),
		"jobs.csv", queue.Auto)
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster := c.Cluster()
	tasks, warnings, err := join.Tasks(batch, &cluster, catalog.New(c.Profiles(), nil, nil),
		join.Margins{Limit: c.Safety.LimitMargin, Deadline: c.Safety.DeadlineMargin})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, warning := range warnings {
		fmt.Println(warning)
	}
	p := &planner.Problem{
		Cluster: cluster, Tasks: tasks, Mode: planner.ModeOf(tasks), Start: c.Start(planner.ModeOf(tasks)),
	}
	goal := c.Goal()
	goal.ApplyTo(p)
	pol, err := policy.Parse("edl", c.Policy.Params())
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range plan.Assignments {
		fmt.Println(tasks[i].ID, plan.Assignments[i].Start, plan.Assignments[i].End)
	}
	// Output:
	// a 0 600
	// b 600 900
}
