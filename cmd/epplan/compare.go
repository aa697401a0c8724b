package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

func compareCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "plan batches by several policies and show a row for each",
		ArgsUsage: "BATCH...",
		Description: "Policies are NAME[:THETA][,KEY=VALUE]… with the keys theta, rho, clocks (default, optimum),\n" +
			"pick, place and park. Registered are:\n" + policyList() +
			"Policies that let jobs share GPUs take clocks adapted, lowest and cheapest too, place " +
			sharingPlacements() + ",\n" +
			"and park periodic and break-even.\n" +
			"Every batch is planned by every policy with every θ, ρ and l given, as many in parallel as there are processors;\n" +
			"policies without θ or ρ, or with one of their own, have one row for all its values.\n" +
			"Example: epplan compare batch.csv --cluster cluster.toml --models models.toml --policy baseline --policy edl\n" +
			"Example: epplan compare tasks.csv --cluster paper --policy edl --policy edf-bf --theta 1,0.9 " +
			"--gpus-per-node 1,4,16",
		Flags: append(setup.ProblemFlags(),
			&cli.StringSliceFlag{
				Name: "policy", Aliases: []string{"p"}, DefaultText: "all",
				Usage: "a `POLICY`; repeat it for more",
			},
			&cli.StringFlag{Name: "theta", DefaultText: "1", Usage: "θ `VALUES`, separated by commas"},
			&cli.StringFlag{Name: "rho", DefaultText: "2", Usage: "ρ `VALUES`, separated by commas"},
			&cli.StringFlag{Name: "gpus-per-node", Usage: "l `VALUES` of --cluster paper, " +
				"separated by commas", Value: "1"},
			setup.TimeLimitFlag("`TIME` that each policy may take, such as 10s, in place of a number "+
				"of evaluations"),
			setup.AtFlag("prices by the hour"),
			terminal.JSONFlag(), terminal.CSVFlag(), terminal.HTMLFlag(),
		),
		Action: t.Runs(terminal.WithArgs(1, maxBatches, "one batch file or several", runCompare)),
	}
}

func sharingPlacements() string {
	names := slices.DeleteFunc(policy.PlaceNames(), func(name string) bool {
		return !strings.HasPrefix(name, "share-")
	})
	return strings.Join(names, ", ")
}

func policyList() string {
	var b strings.Builder
	for _, name := range policy.Names() {
		fmt.Fprintf(&b, "  %-17s%s\n", name, policy.Describe(name))
	}
	b.WriteString(
		"Placements are policies too: tasks by earliest due time at their optimal clocks, each at once on\n" +
			"the best node with room (see epplab replay --help): " +
			strings.Join(policy.PlacementNames(), ", ") + ".\n",
	)
	return b.String()
}

const maxBatches = 1000

// variant is one row of a comparison before it is computed.
type variant struct {
	setup      *setup.Setup
	policy     *planner.Policy
	params     []planreport.Param
	references policy.References
}

func runCompare(t *terminal.Terminal, c *cli.Context) error {
	if err := terminal.CheckHTML(c); err != nil {
		return err
	}
	var variants []variant
	for _, name := range c.Args().Slice() {
		s, err := setup.Read(t, c, name)
		if err != nil {
			return err
		}
		if c.NArg() > 1 {
			s.Label = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		}
		some, err := variantsOf(t, c, s)
		if err != nil {
			return err
		}
		variants = append(variants, some...)
	}
	runs, err := compareAll(t, c, variants)
	if err != nil {
		return err
	}
	warnUnfinished(t, c, runs)
	warnOfPrices(t, variants, runs)
	return t.WithHTML(c, func(w io.Writer) error {
		return planreport.WriteComparePage(w, newComparePage(t, c, variants, runs))
	}, func() error {
		if c.Bool("json") || c.Bool("csv") {
			return t.PrintTable(c, planreport.Comparison(runs))
		}
		return t.Print(
			func(w io.Writer) error { return planreport.WriteComparison(w, runs, t.TextOptions(-1)) },
		)
	})
}

// variantsOf combines clusters, policies and their numbers.
func variantsOf(t *terminal.Terminal, c *cli.Context, s *setup.Setup) ([]variant, error) {
	sizes, err := terminal.ParseNumbers("gpus-per-node", c.String("gpus-per-node"))
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(sizes, func(l float64) bool { return l != math.Trunc(l) }); i >= 0 {
		return nil, terminal.Usagef("--gpus-per-node %v, want whole numbers", sizes[i])
	}
	var all []variant
	for i, l := range sizes {
		sized := *s
		quiet := t.Silent() // the batch's warnings come once
		if i == 0 {
			quiet = t
		}
		if err := sized.Join(quiet, c, int(l)); err != nil {
			return nil, err
		}
		if err := errors.Join(sized.PriceEnergy(quiet, c), sized.CheckClock(c)); err != nil {
			return nil, err
		}
		some, err := policyVariants(c, &sized, l)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func policyVariants(c *cli.Context, s *setup.Setup, l float64) ([]variant, error) {
	names := c.StringSlice("policy")
	if len(names) == 0 {
		names = append(policy.Names(), policy.EasyDefault, config.Best)
	}
	thetas, err := terminal.ParseNumbers("theta", c.String("theta"))
	if err != nil {
		return nil, err
	}
	rhos, err := terminal.ParseNumbers("rho", c.String("rho"))
	if err != nil {
		return nil, err
	}
	var all []variant
	for _, name := range names {
		own, theirs := acceptedValues(name, "theta", thetas), acceptedValues(name, "rho", rhos)
		for _, theta := range orDefault(own, s.Params.Theta) {
			for _, rho := range orDefault(theirs, s.Params.Rho) {
				v, err := newVariant(s, name, policy.Params{Theta: theta, Rho: rho})
				if err != nil {
					return nil, err
				}
				v.addParam("batch", report.Text(s.Label), s.Label != "")
				v.addParam("gpus_per_node", report.Number(l), s.Paper)
				v.addParam("theta", report.Number(theta), len(own) > 0)
				v.addParam("rho", report.Number(rho), len(theirs) > 0)
				all = append(all, v)
			}
		}
	}
	for _, flag := range []struct {
		key    string
		values []float64
	}{{"theta", thetas}, {"rho", rhos}} {
		if len(flag.values) > 0 && !slices.ContainsFunc(names,
			func(name string) bool { return len(acceptedValues(name, flag.key, flag.values)) > 0 }) {
			return nil, terminal.Usagef(
				"--%s does nothing for any of the policies, want it left out, or one that "+
					"takes it, such as edl",
				flag.key,
			)
		}
	}
	return all, nil
}

// acceptedValues returns the values of a number for a policy: none where it doesn't take
// the number or says it itself.
func acceptedValues(name, key string, values []float64) []float64 {
	if !policy.AcceptsNumber(name, key) || policy.HasOption(name, key) {
		return nil
	}
	return values
}

// addParam gives the row a column if it tells rows apart.
func (v *variant) addParam(key string, value report.Value, tells bool) {
	if tells {
		v.params = append(v.params, planreport.Param{Key: key, Value: value})
	}
}

func newVariant(s *setup.Setup, name string, params policy.Params) (variant, error) {
	if err := setup.CheckParams(params); err != nil {
		return variant{}, err
	}
	own := *s
	own.Params = params
	pol, err := own.Policy(name)
	return variant{setup: &own, policy: pol}, err
}

func orDefault(values []float64, fallback float64) []float64 {
	if len(values) == 0 {
		return []float64{fallback}
	}
	return values
}

// maxEvaluations is the work that each row may take ([planner.Monitor]) unless a time
// limit says how long: every policy but lookahead is done with less for some thousand
// jobs, and it takes some seconds.
const maxEvaluations = 50_000_000

// plannedRow is what planning a variant comes to.
type plannedRow struct {
	Summary    planreport.Summary
	Planning   time.Duration
	Unfinished bool
}

// compareAll plans every variant, as many at a time as there are processors, each for as
// long as it may take. Rows come in the order of the variants. An interruption leaves
// those unfinished that aren't done.
func compareAll(t *terminal.Terminal, c *cli.Context, variants []variant) ([]planreport.Run, error) {
	limit := c.Duration("time-limit")
	line := &rowsProgress{
		line: report.NewProgress(t.Stderr, t.Progress, t.Now, "compare", len(variants)), rows: len(variants),
	}
	defer line.line.Finish()
	work := terminal.PartedWork[plannedRow]{
		Names: terminal.TextsOf(variants, func(v variant) string { return v.name() }),
		Prepare: func(ctx context.Context, rows []int) error {
			return addReferences(ctx, t, variants, rows)
		},
		Do: func(ctx context.Context, i int) (plannedRow, error) {
			v := &variants[i]
			line.begin(v.policy.Name)
			monitor := &planner.Monitor{MaxWork: maxEvaluations}
			if t.Progress {
				monitor.OnProgress = func(p planner.Progress) { line.update(v.policy.Name, p) }
			}
			if limit > 0 {
				monitor.MaxWork = 0
				var end context.CancelFunc
				ctx, end = context.WithTimeout(ctx, limit)
				defer end()
			}
			run, err := v.run(ctx, monitor)
			line.end(v.policy.Name, &run)
			return plannedRow{run.Summary, run.Planning, run.Unfinished}, err
		},
	}
	rows, err := work.Run(c.Context, t)
	if err != nil {
		return nil, err
	}
	runs := make([]planreport.Run, len(rows))
	for i, row := range rows {
		runs[i] = planreport.Run{
			Params:     variants[i].params,
			Summary:    row.Summary,
			Planning:   row.Planning,
			Unfinished: row.Unfinished,
		}
	}
	if c.Err() != nil && !slices.ContainsFunc(runs, func(r planreport.Run) bool { return r.Planned() }) {
		return nil, c.Err()
	}
	return runs, nil
}

// name tells a row from others, in words.
func (v *variant) name() string {
	words := append(make([]string, 0, 1+len(v.params)), "policy "+v.policy.Name)
	for _, p := range v.params {
		words = append(words, p.Key+" "+p.Value.Display(report.Scale{}, report.Plain))
	}
	return strings.Join(words, ", ")
}

func warnUnfinished(t *terminal.Terminal, c *cli.Context, runs []planreport.Run) {
	var names []string
	for i := range runs {
		if name := runs[i].Summary.Policy; runs[i].Unfinished && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	why := fmt.Sprintf("each row may take %s evaluations; --time-limit 10m gives it ten minutes instead",
		report.FormatCount(maxEvaluations))
	switch {
	case c.Err() != nil:
		why = "interrupted"
	case c.IsSet("time-limit"):
		why = fmt.Sprintf("--time-limit gives each row %v", c.Duration("time-limit"))
	}
	t.Notef("unfinished: %s (%s)", strings.Join(names, ", "), why)
}

// warnOfPrices warns, once for each batch, of times for which nobody says what energy costs.
func warnOfPrices(t *terminal.Terminal, variants []variant, runs []planreport.Run) {
	end, shared := 0.0, false
	for i := range runs {
		end, shared = max(end, runs[i].Summary.End), shared || runs[i].Summary.Shared > 0
		if s := variants[i].setup; i+1 == len(runs) || variants[i+1].setup.Rates != s.Rates {
			s.WarnOfPrices(t, end, shared)
			end, shared = 0, false
		}
	}
}

// addReferences plans what some of the variants are held against, once for those of the same
// problem and numbers.
func addReferences(ctx context.Context, t *terminal.Terminal, variants []variant, rows []int) error {
	monitor, done := setup.PlanningMonitor(t)
	defer done()
	ctx, end := monitor.Begin(ctx)
	defer end()
	type key struct {
		problem *planner.Problem
		params  policy.Params
	}
	known := make(map[key]policy.References)
	for _, i := range rows {
		v := &variants[i]
		k := key{v.setup.Problem, v.setup.Params}
		k.params.Theta = 0 // clocks are the default ones
		k.params.AlwaysOn = planner.NeverSleeps(v.policy.Park, &v.setup.Problem.Cluster)
		against, ok := known[k]
		if !ok {
			var err error
			if against, err = v.setup.References(ctx, v.policy); err != nil {
				return setup.WithFileLocation(v.setup.Config, err)
			}
			known[k] = against
		}
		v.references = against
	}
	return nil
}

func (v *variant) run(ctx context.Context, monitor *planner.Monitor) (planreport.Run, error) {
	ctx, end := monitor.Begin(ctx)
	defer end()
	started := time.Now()
	plan, err := policy.Solve(ctx, v.setup.Problem, v.policy, &planner.Options{Seed: v.setup.Seed})
	took := time.Since(started)
	if errors.Is(err, planner.ErrUnfinished) {
		return planreport.Run{
			Params: v.params, Summary: planreport.Summary{Policy: v.policy.Name}, Planning: took,
			Unfinished: true,
		}, nil
	}
	if err != nil {
		return planreport.Run{}, setup.WithFileLocation(v.setup.Config,
			fmt.Errorf("policy %s: %w", v.policy.Name, err))
	}
	if err := policy.CheckPlan(v.setup.Problem, plan, v.policy); err != nil {
		return planreport.Run{}, err
	}
	return planreport.Run{
		Params: v.params, Summary: planreport.Summarise(v.setup.ResultOf(plan, v.references)), Planning: took,
		Unfinished: plan.Cut,
	}, nil
}

func newComparePage(
	t *terminal.Terminal, c *cli.Context, variants []variant, runs []planreport.Run,
) *planreport.ComparePage {
	batches := c.Args().Slice()
	name := strconv.Itoa(len(batches)) + " batches"
	if len(batches) == 1 {
		name = setup.BatchName(batches[0])
	}
	var warnings []string
	for i := range variants {
		if i == 0 || variants[i].setup.Batch != variants[i-1].setup.Batch {
			warnings = append(warnings, queue.WarningLines(variants[i].setup.Warnings, t.EveryWarning)...)
		}
	}
	return &planreport.ComparePage{
		Runs: runs, Name: name, Warnings: warnings,
		Origin: t.Provenance(variants[0].setup.Inputs(c, batches...)...),
	}
}

// rowsProgress is a line on a terminal that says how far the rows of a comparison are.
type rowsProgress struct {
	mu    sync.Mutex
	line  *report.Progress
	rows  int
	done  int
	doing []string // rows under way
	best  planner.Progress
	whose string // the best plan
}

func (r *rowsProgress) begin(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doing = append(r.doing, name)
	r.show()
}

func (r *rowsProgress) end(name string, run *planreport.Run) {
	r.update(name, planner.Progress{
		Planned: run.Planned(), PastDue: run.Summary.PastDue, Energy: run.Summary.Energy,
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	at := slices.Index(r.doing, name)
	r.doing = slices.Delete(r.doing, at, at+1)
	r.show()
}

func (r *rowsProgress) update(name string, p planner.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if better := !r.best.Planned || p.PastDue < r.best.PastDue ||
		p.PastDue == r.best.PastDue && p.Energy < r.best.Energy; p.Planned && better {
		r.best, r.whose = p, name
	}
	r.show()
}

func (r *rowsProgress) show() {
	r.line.Show(strings.Join(r.doing, ", "), r.done, r.rows, setup.BestSoFarText("best "+r.whose, &r.best))
}
