package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/queuereport"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

func planQueueCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "plan a queue for two GPU types whose jobs turn out otherwise than predicted",
		ArgsUsage: "QUEUE",
		Description: "QUEUE is in the format of the PREDICT paper; --cluster is FILE:NAME, a table of clusters and which one\n" +
			"it is. Without --policy the one with the least energy plus waiting, each against policy simple, is chosen on\n" +
			"outcomes drawn around the predictions.\n" +
			"Example: epplab plan examples/two-types/queue.csv --cluster examples/two-types/clusters.csv:small",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name:  "cluster",
				Usage: "`FILE:NAME` of a table of clusters, and which one it is",
			},
			&cli.StringFlag{
				Name: "policy", Aliases: []string{"p"}, DefaultText: "the best one",
				Usage: "`POLICY`: NAME[,KEY=VALUE]…; epplan compare --help lists them",
			},
			setup.ModelsFlag("TOML `FILE` with models of the job types, by which clocks are chosen", ""),
			setup.ProfilesFlag(),
			energyModelFlag(),
			&cli.Float64Flag{Name: "kappa", DefaultText: "1e-6", Usage: "`WEIGHT` of a kWh in policy value"},
			terminal.BoolFlag("clairvoyant", "decide by how jobs turn out"),
			setup.SeedFlag(),
			terminal.RowsFlag("jobs"),
			terminal.JSONFlag(),
			terminal.CSVFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "one file with a queue", planKnapsack)),
	}
}

func energyModelFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "energy-model", DefaultText: trace.Independent.String(),
		Usage: "`MODEL` of a job's energy: independent or coupled",
	}
}

// planKnapsack plans a queue for two GPU types: decisions by the predictions,
// starts and ends by how the jobs turn out.
func planKnapsack(t *terminal.Terminal, c *cli.Context) error {
	q, err := readKnapsackQueue(t, c)
	if err != nil {
		return err
	}
	text, among := c.String("policy"), 0
	if text == "" {
		if text, among, err = choosePolicy(t, c, q); err != nil {
			return err
		}
	}
	result, err := q.solve(c.Context, text)
	if err != nil {
		return err
	}
	result.Among = among
	if simple := q.referencePolicy(); text != simple {
		compared, err := q.solve(c.Context, simple)
		if err != nil {
			return err
		}
		result.Simple = compared.Sum()
	}
	err = t.Print(func(w io.Writer) error {
		switch {
		case c.Bool("json"):
			return queuereport.WriteJSON(w, result)
		case c.Bool("csv"):
			return queuereport.WriteCSV(w, result)
		}
		return queuereport.WriteTable(w, result, t.TextOptions(c.Int("rows")))
	})
	if err != nil {
		return err
	}
	return terminal.NotInTime(len(result.Plan.Unplaced), 0, 0)
}

// knapsackQueue is a queue with its GPUs and the numbers of the policies.
type knapsackQueue struct {
	model             trace.EnergyModel
	jobs              []trace.KnapsackJob
	pool              *trace.KnapsackPool
	predicted, actual *planner.Problem
	params            policy.Params
	response          clockResponse // nil: clocks aren't chosen
}

// clockResponse is how a job type responds to the clocks of a GPU model.
type clockResponse = func(kind, gpuModel string) (dvfsmodel.Response, error)

func readKnapsackQueue(t *terminal.Terminal, c *cli.Context) (*knapsackQueue, error) {
	if strings.HasPrefix(c.String("cluster"), "-:") && c.Args().First() == "-" {
		return nil, terminal.Usagef("standard input is read twice, want one - only")
	}
	model, err := energyModel(c)
	if err != nil {
		return nil, err
	}
	pool, err := readKnapsackPool(t, c.String("cluster"))
	if err != nil {
		return nil, err
	}
	jobs, err := readKnapsackJobs(t, c.Args().First(), model)
	if err != nil {
		return nil, err
	}
	q, err := newKnapsackQueue(model, jobs, pool)
	if err != nil {
		return nil, err
	}
	if err := enableClocks(t, c, q); err != nil {
		return nil, err
	}
	if c.Bool("clairvoyant") {
		q.predicted = q.actual
	}
	return q, q.setParams(c)
}

func readKnapsackJobs(
	t *terminal.Terminal,
	name string,
	model trace.EnergyModel,
) ([]trace.KnapsackJob, error) {
	jobs, err := terminal.ParseFile(t, name, func(r io.Reader, name string) ([]trace.KnapsackJob, error) {
		return trace.ReadKnapsack(r, name, model)
	})
	if err != nil {
		return nil, fmt.Errorf("read queue: %w", err)
	}
	return jobs, nil
}

// enableClocks lets clocks be chosen where --models says how the job types respond to
// them.
func enableClocks(t *terminal.Terminal, c *cli.Context, q *knapsackQueue) error {
	models, err := setup.ReadModels(t, c)
	if err == nil && models == nil && c.IsSet("profiles") {
		return terminal.Usagef("--profiles says which clocks GPU models have, want --models too")
	}
	if err != nil || models == nil {
		return err
	}
	profiles, err := setup.ReadProfiles(t, c.String("profiles"))
	if err != nil {
		return err
	}
	q.response = setup.NewCatalog(profiles, models, nil).Workload
	if err := trace.EnableClocks(q.jobs, q.predicted, q.actual, q.response); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(c.StringSlice("models"), ", "), err)
	}
	return nil
}

// energyModel returns the one that --energy-model names, or independent.
func energyModel(c *cli.Context) (trace.EnergyModel, error) {
	name := c.String("energy-model")
	if name == "" {
		return trace.Independent, nil
	}
	model, err := trace.ParseEnergyModel(name)
	if err != nil {
		return 0, terminal.Usagef("--energy-model: %v", err)
	}
	return model, nil
}

// newKnapsackQueue returns a queue with the numbers that suit its energy model and
// the usual GPU-seconds of its jobs.
func newKnapsackQueue(
	model trace.EnergyModel, jobs []trace.KnapsackJob, pool *trace.KnapsackPool,
) (q *knapsackQueue, err error) {
	q = &knapsackQueue{model: model, jobs: jobs, pool: pool, params: policy.DefaultParams()}
	if model == trace.Coupled {
		q.params.Queue = taskset.CoupledQueueParams()
	}
	for i := range jobs {
		q.params.Queue.Posted.Scale += float64(jobs[i].GPUs[0]) * jobs[i].Forecast[0].Seconds /
			float64(len(jobs))
	}
	q.predicted, q.actual, err = trace.KnapsackProblem(jobs, pool)
	return q, err
}

func readKnapsackPool(t *terminal.Terminal, text string) (*trace.KnapsackPool, error) {
	at := strings.LastIndexByte(text, ':')
	if at <= 0 || at == len(text)-1 {
		return nil, terminal.Usagef(
			"--cluster is %q, want FILE:NAME: a table of clusters and which one it is",
			text,
		)
	}
	file, name := text[:at], text[at+1:]
	pools, err := terminal.ParseFile(t, file, trace.ReadKnapsackPools)
	if err != nil {
		return nil, fmt.Errorf("read clusters: %w", err)
	}
	names := terminal.TextsOf(pools, func(p trace.KnapsackPool) string { return p.Name })
	if i := slices.Index(names, name); i >= 0 {
		return &pools[i], nil
	}
	return nil, fmt.Errorf("%s: no cluster %q, want one of %s", file, name, strings.Join(names, ", "))
}

func (q *knapsackQueue) setParams(c *cli.Context) error {
	const most = 1e12 // as a policy's kappa
	numbers := &q.params.Queue
	if c.IsSet("kappa") {
		numbers.Value.Kappa = c.Float64("kappa")
		if name := c.String("policy"); strings.Contains(name, "kappa=") {
			return terminal.Usagef("--kappa %g and --policy %s both say kappa, want it once",
				numbers.Value.Kappa, name)
		}
	}
	if !(numbers.Value.Kappa >= 0 && numbers.Value.Kappa <= most) {
		return terminal.Usagef("--kappa %g, want 0 to %g", numbers.Value.Kappa, most)
	}
	if c.IsSet("seed") {
		numbers.Look.Seed = c.Uint64("seed")
	}
	return nil
}

func (q *knapsackQueue) hasClocks() bool { return q.response != nil }

// referencePolicy returns the policy that others are compared with: at default clocks.
func (q *knapsackQueue) referencePolicy() string {
	if q.hasClocks() {
		return "simple,clocks=default"
	}
	return "simple"
}

// solve plans the queue and checks the plan against how it turned out.
func (q *knapsackQueue) solve(ctx context.Context, text string) (*queuereport.Result, error) {
	pol, err := setup.ParsePolicy(text, q.params)
	if err != nil {
		return nil, err
	}
	plan, err := planner.Solve(ctx, q.predicted, pol, &planner.Options{Truth: q.actual})
	if _, ok := errors.AsType[*planner.ClassError](err); ok && q.pool.Pos.Line > 0 {
		return nil, fmt.Errorf("%s: cluster %s: %w", q.pool.Pos, q.pool.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if err := policy.CheckPlan(q.actual, plan, pol); err != nil {
		return nil, err
	}
	r := &queuereport.Result{
		Plan: plan, Problem: q.actual, Policy: text, Model: q.model.String(),
		Energy: make([]float64, len(q.jobs)),
	}
	for i := range q.jobs {
		r.Energy[i] = q.jobKWh(i, &plan.Assignments[i])
	}
	return r, nil
}

func (q *knapsackQueue) jobKWh(job int, a *planner.Assignment) float64 {
	if !q.hasClocks() {
		return q.jobs[job].Actual[a.Option].KWh
	}
	return (a.Point.Energy * dvfsmodel.Joule(q.jobs[job].GPUs[a.Option])).KWh()
}

// drawQueue draws a queue for two GPU types like the PREDICT paper's.
func drawQueue(rng *rand.Rand, model trace.EnergyModel) (*knapsackQueue, error) {
	jobs, pool := taskset.Queue(rng, model)
	return newKnapsackQueue(model, jobs, &pool)
}

// playAll plays every queue by every policy, as many at a time as there are
// processors: all queues by the first policy, then all by the next one.
func playAll(
	ctx context.Context, queues []*knapsackQueue, policies []string, done func(),
) ([]*queuereport.Sum, error) {
	sums := make([]*queuereport.Sum, len(policies)*len(queues))
	return sums, terminal.InParallel(ctx, 0, len(sums), func(ctx context.Context, i int) error {
		defer done()
		result, err := queues[i%len(queues)].solve(ctx, policies[i/len(queues)])
		if err != nil {
			return err
		}
		sums[i] = result.Sum()
		return nil
	})
}
