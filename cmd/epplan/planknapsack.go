package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/trace"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// knapsackFormat is the format of a queue for two GPU types, whose jobs have
// predictions and turn out otherwise.
const knapsackFormat = "knapsack"

// knapsackPolicy is the policy of such a queue unless one is given: of ours the
// one with the least sum of energy and waiting, each against Simple.
const knapsackPolicy = "lookahead"

// knapsackFlags are the flags of plan that only such a queue has.
func knapsackFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "energy-model", DefaultText: trace.Independent.String(), Usage: "`MODEL` of a knapsack queue's energy: independent or coupled"},
		&cli.Float64Flag{Name: "kappa", DefaultText: "1e-6", Usage: "`WEIGHT` of a kWh in policy value of a knapsack queue"},
	}
}

// planKnapsack plans a queue for two GPU types: decisions by the predictions,
// starts and ends by how the jobs turn out.
func (t *terminal) planKnapsack(c *cli.Context) error {
	q, err := t.knapsackQueue(c)
	if err != nil {
		return err
	}
	text := c.String("policy")
	if text == "" {
		text = knapsackPolicy
	}
	result, err := q.solve(c.Context, text)
	if err != nil {
		return err
	}
	if text != "simple" {
		simple, err := q.solve(c.Context, "simple")
		if err != nil {
			return err
		}
		result.Simple = simple.Sum()
	}
	err = t.print(func(w io.Writer) error {
		switch {
		case c.Bool("json"):
			return report.WriteQueueJSON(w, result)
		case c.Bool("csv"):
			return report.WriteQueueCSV(w, result)
		}
		return report.WriteQueueTable(w, result, t.text(c.Int("rows")))
	})
	if err != nil {
		return err
	}
	if n := len(result.Plan.Unplaced); n > 0 {
		return &incompleteError{unplanned: n}
	}
	return nil
}

// knapsackQueue is a queue with its GPUs and the numbers of the policies.
type knapsackQueue struct {
	model            trace.EnergyModel
	jobs             []trace.KnapsackJob
	predicted, truth *planner.Problem
	params           policy.Params
}

func (t *terminal) knapsackQueue(c *cli.Context) (*knapsackQueue, error) {
	for _, flag := range []string{"config", "models", "profiles", "range", "start", "stretch", "gpus-per-node", "svg", "from-slurm"} {
		if c.IsSet(flag) {
			return nil, usagef("--%s means nothing with --format %s, want it left out", flag, knapsackFormat)
		}
	}
	if strings.HasPrefix(c.String("cluster"), "-:") && c.Args().First() == "-" {
		return nil, usagef("standard input is read twice, want one - only")
	}
	q := &knapsackQueue{params: policy.DefaultParams()}
	var err error
	if name := c.String("energy-model"); name != "" {
		if q.model, err = trace.ParseEnergyModel(name); err != nil {
			return nil, usagef("--energy-model: %v", err)
		}
	}
	pool, err := t.knapsackPool(c.String("cluster"))
	if err != nil {
		return nil, err
	}
	q.jobs, err = parse(t, c.Args().First(), func(r io.Reader, name string) ([]trace.KnapsackJob, error) {
		return trace.ReadKnapsack(r, name, q.model)
	})
	if err != nil {
		return nil, fmt.Errorf("read queue: %w", err)
	}
	if q.predicted, q.truth, err = trace.KnapsackProblem(q.jobs, pool); err != nil {
		return nil, err
	}
	if c.Bool("clairvoyant") {
		q.predicted = q.truth
	}
	return q, q.setParams(c)
}

// knapsackPool reads FILE:NAME.
func (t *terminal) knapsackPool(text string) (*trace.KnapsackPool, error) {
	at := strings.LastIndexByte(text, ':')
	if at <= 0 || at == len(text)-1 {
		return nil, usagef("--cluster is %q, want FILE:NAME with --format %s: a table of clusters and which one it is", text, knapsackFormat)
	}
	file, name := text[:at], text[at+1:]
	pools, err := parse(t, file, trace.ReadKnapsackPools)
	if err != nil {
		return nil, fmt.Errorf("read clusters: %w", err)
	}
	names := make([]string, len(pools))
	for i := range pools {
		if names[i] = pools[i].Name; names[i] == name {
			return &pools[i], nil
		}
	}
	return nil, fmt.Errorf("%s: no cluster %q, want one of %s", file, name, strings.Join(names, ", "))
}

// setParams sets the policies' numbers: what suits the energy model, the usual
// GPU-seconds of a job, and what the flags say.
func (q *knapsackQueue) setParams(c *cli.Context) error {
	numbers := &q.params.Queue
	if q.model == trace.Coupled {
		*numbers = policy.CoupledQueue()
	}
	for i := range q.jobs {
		job := &q.jobs[i]
		numbers.Posted.Scale += float64(job.GPUs[0]) * job.Forecast[0].Seconds / float64(len(q.jobs))
	}
	if c.IsSet("kappa") {
		numbers.Value.Kappa = c.Float64("kappa")
	}
	if !(numbers.Value.Kappa >= 0) {
		return usagef("--kappa %v, want 0 or more", numbers.Value.Kappa)
	}
	if c.IsSet("seed") {
		numbers.Look.Seed = c.Uint64("seed")
	}
	return nil
}

// solve plans the queue and checks the plan against how it turned out.
func (q *knapsackQueue) solve(ctx context.Context, text string) (*report.QueueResult, error) {
	pol, err := policy.Parse(text, q.params)
	if err != nil {
		return nil, &usageError{msg: err.Error(), hint: "epplan compare --help lists the policies"}
	}
	plan, err := planner.Solve(ctx, q.predicted, pol, &planner.Options{Truth: q.truth})
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if err := planner.Check(q.truth, plan); err != nil {
		return nil, fmt.Errorf("the plan of policy %s is wrong, please report this: %w", pol.Name, err)
	}
	r := &report.QueueResult{Plan: plan, Problem: q.truth, Policy: text, Model: q.model.String(), Energy: make([]float64, len(q.jobs))}
	for i := range q.jobs {
		r.Energy[i] = q.jobs[i].True[plan.Assignments[i].Option].KWh
	}
	return r, nil
}
