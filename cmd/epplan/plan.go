package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/powerbudget"
)

func planCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "plan a batch of jobs: who runs where, when, at which clocks, and why",
		ArgsUsage: "BATCH",
		Description: "BATCH is a CSV or JSON file, - is standard input. A batch with arrivals after 0 is planned online:\n" +
			"nothing about a job is used before it arrives. Jobs that can't be planned are listed with the earliest\n" +
			"time they could finish on free GPUs; all other jobs are planned, and the exit status is 3.\n" +
			"--from-slurm plans the pending jobs on Slurm's nodes, or on those of --cluster. Workloads that epd knows\n" +
			"are planned with their models, others at default clocks for as long as their time limits. Running jobs\n" +
			"hold their GPUs until their expected end, and jobs stay in their partitions. The plan respects GPU counts\n" +
			"and ignores Slurm priorities. Slurm isn't told of it.\n" +
			"Jobs with a profile (util_pct, slot_s, gpu_mem_gb) may share GPUs on nodes with share = true, by policies\n" +
			"such as cats-safe; the table says who is beside whom.\n" +
			"Example: epplan plan profiles.csv --cluster shared.toml --policy cats-safe\n" +
			"Example: epplan plan --from-slurm --policy edl\n" +
			"With --budget jobs start later and at other clocks, so that GPUs, hosts and idle nodes never take more\n" +
			"together. The baselines know no budget.\n" +
			"Example: epplan plan batch.csv --cluster cluster.toml --models models.toml --budget 4kW\n" +
			"With --slack 4h jobs may begin up to 4 hours later, if energy then costs less by [factors] series.\n" +
			"Example: epplan plan batch.csv --cluster cluster.toml --models models.toml --html plan.html\n" +
			"Example: epplan plan batch.csv --cluster cluster.toml --models models.toml --svg plan.svg",
		Flags: slices.Concat(setup.PlanningFlags(),
			[]cli.Flag{
				terminal.BoolFlag("from-slurm", "plan Slurm's pending jobs, as epd knows them"),
				anySocketFlag(publicFirst),
			},
			shiftFlags(),
			[]cli.Flag{
				terminal.JSONFlag(), terminal.CSVFlag(),
				&cli.StringFlag{Name: "svg", Usage: "draw the plan to `FILE`"},
				terminal.HTMLFlag(),
				terminal.RowsFlag("jobs"),
			}),
		Action: t.Runs(runPlan),
	}
}

// shiftFlags are about hours, power and how long to search for a plan, as solvePlan knows them.
func shiftFlags() []cli.Flag {
	return append(setup.HoursFlags(),
		&cli.StringFlag{
			Name: setup.BudgetFlag, DefaultText: "none",
			Usage: "`WATTS` that GPUs and hosts may take together at any moment, such as 300kW; a CSV file with " +
				"watts and time_s, or time as in [budget] series; config: [budget] of --config",
		},
		setup.TimeLimitFlag("`TIME` after which the search for a better plan stops with the best so "+
			"far, such as 2s"))
}

// runPlan plans a batch and prints it. Jobs that can't be planned, or not in time, end
// it with an infeasibleError after the plan was printed.
func runPlan(t *terminal.Terminal, c *cli.Context) error {
	if err := terminal.CheckHTML(c, "svg"); err != nil {
		return err
	}
	if c.IsSet("rows") && (c.Bool("json") || c.Bool("csv")) {
		t.Notef("--rows is of the table: --json and --csv have all jobs")
	}
	s, err := setupPlan(t, c)
	if err != nil || s == nil { // nothing waits
		return err
	}
	result, err := solvePlan(t, c, s)
	if err != nil {
		return err
	}
	if err := printPlan(t, c, s, result); err != nil {
		return err
	}
	if !c.IsSet("policy") && result.Plan.Shared == nil && canShareGPUs(result.Problem) {
		t.Message("note", "jobs with a profile may share GPUs, this policy has each on its own: --policy "+
			"cats-safe lets them share")
	}
	return terminal.NotInTime(len(result.Plan.Unplaced), len(result.Plan.Misses), countSlowed(result.Plan))
}

// setupPlan returns what is to be planned, a batch or Slurm's queue; nil when nothing waits there.
func setupPlan(t *terminal.Terminal, c *cli.Context) (*setup.Setup, error) {
	if err := checkBatchArgs(c); err != nil {
		return nil, err
	}
	if c.Bool("from-slurm") {
		return setupFromSlurm(t, c)
	}
	return setup.ReadProblem(t, c, c.Args().First())
}

// checkBatchArgs reports batches that are missing or too many.
func checkBatchArgs(c *cli.Context) error {
	files, want := 1, "one batch file"
	if c.Bool("from-slurm") {
		files, want = 0, "none with --from-slurm"
	}
	if err := terminal.CheckArgs(c, files, files, want); err != nil {
		return err
	}
	for _, flag := range []string{setup.RuntimeModelFlag, setup.SpeedFlag} {
		if c.Bool("from-slurm") && c.IsSet(flag) {
			return terminal.Usagef(
				"--%s means nothing with --from-slurm: epd says of which GPU model run times are, "+
					"want it left out",
				flag,
			)
		}
	}
	return nil
}

func countSlowed(p *planner.Plan) int {
	if p.Shared == nil {
		return 0
	}
	return len(p.Shared.Slowed)
}

// canShareGPUs reports whether there are jobs with profiles and GPUs that they may
// share.
func canShareGPUs(p *planner.Problem) bool {
	profiled := slices.ContainsFunc(p.Tasks, func(t planner.Task) bool { return t.Profile != nil })
	for class := range p.Cluster.Classes {
		if profiled && p.CanShareGPUs(class) {
			return true
		}
	}
	return false
}

// solvePlan plans the batch, checks the plan, and computes what it is measured
// against. An interruption, or --time-limit, cuts the search for a better plan.
func solvePlan(t *terminal.Terminal, c *cli.Context, s *setup.Setup) (*planreport.Result, error) {
	runs := 1 // of the search within a budget: more effort is more plans of the usual one, so finds all it finds
	if c.IsSet(setup.BudgetFlag) {
		runs = max(1, int(s.Params.Effort))
		s.Params.Effort = min(s.Params.Effort, 1)
	}
	pol, err := s.Policy(c.String("policy"))
	if err != nil {
		return nil, err
	}
	noteUnused(t, c, s, pol)
	wished, limit, err := hoursAndBudget(t, c, s, pol)
	if err != nil {
		return nil, err
	}
	search, done, end := beginSearch(t, c)
	defer end()
	var against policy.References
	var beside errgroup.Group
	beside.Go(func() (err error) {
		against, err = s.References(planner.WithoutMonitor(search), pol)
		return err
	})
	plan, err := policy.SolveChecked(search, s.Problem, pol, &planner.Options{Seed: s.Seed})
	if err != nil {
		return nil, setup.WithFileLocation(s.Config, err)
	}
	if err := beside.Wait(); err != nil {
		return nil, err
	}
	later, err := planLater(search, c, s, wished)
	if err != nil {
		return nil, err
	}
	done()
	var budget *budgetKeeper
	if limit != nil {
		last := plan.Ledger.End + c.Duration("slack").Seconds()
		budget = &budgetKeeper{t, limit.Until(last), &against, runs, s.Seed}
	}
	free, plan, byTheHour, err := later.choose(c, s, budget, candidate{s.Problem, s.Problem, pol, plan, nil})
	if err != nil {
		return nil, err
	}
	if err := compareEqualWork(planner.WithoutMonitor(search), s, pol, plan, &against); err != nil {
		return nil, err
	}
	frontier, err := s.Frontier(planner.WithoutMonitor(search), plan)
	if err != nil {
		return nil, err
	}
	noteStoppedSearches(t, c, plan, &against)
	plan.Warnings = append(plan.Warnings, s.Warnings...)
	if wished == nil {
		s.WarnOfPrices(t, plan.End(), plan.Shared != nil)
	}
	result := s.ResultOf(plan, against)
	result.Frontier, result.EveryWarning = frontier, t.EveryWarning
	if limit != nil {
		result.Budget, result.Free = budget.limit, free
	}
	result.Hours = byTheHour
	if pol.Improve != nil && s.Problem.Mode != planner.Online {
		result.Seed = &s.Seed
	}
	return result, nil
}

// beginSearch returns a context for planning that an interruption or --time-limit cuts, and what ends its
// line on the terminal, and itself.
func beginSearch(t *terminal.Terminal, c *cli.Context) (search context.Context, done, end func()) {
	monitor, done := setup.PlanningMonitor(t)
	search, release := monitor.Begin(c.Context)
	cancel := func() {}
	if limit := c.Duration("time-limit"); limit > 0 {
		search, cancel = context.WithTimeoutCause(search, limit, planner.ErrCut)
	}
	return search, done, func() {
		cancel()
		release()
		done()
	}
}

// hoursAndBudget finds out what energy costs, and returns what --slack and --budget ask for, each nil where
// it isn't given.
func hoursAndBudget(t *terminal.Terminal, c *cli.Context, s *setup.Setup, pol *planner.Policy) (
	wished *setup.Hours, limit *setup.PowerBudget, err error,
) {
	if err = s.PriceEnergy(t, c); err != nil {
		return nil, nil, err
	}
	if wished, err = s.Hours(t, c); err == nil {
		limit, err = s.PowerBudget(t, c)
	}
	if err == nil {
		err = s.CheckClock(c)
	}
	if err == nil && limit != nil && planner.NeverSleeps(pol.Park, &s.Problem.Cluster) {
		err = terminal.Usagef("--budget has nodes off that needn't be on, want it without park=never")
	}
	return wished, limit, err
}

// noteStoppedSearches notes searches that were stopped before they were done.
func noteStoppedSearches(
	t *terminal.Terminal, c *cli.Context, plan *planner.Plan, against *policy.References,
) {
	stopped := "at --time-limit"
	if c.Err() != nil {
		stopped = "interrupted"
	}
	if plan.Cut {
		t.Message("note", stopped+": the search stopped, this is the best plan so far")
	}
	if against.Cut {
		t.Message("note", stopped+": constant clocks weren't looked for to the end, and are left out")
	}
}

// candidate is a plan that may have to be brought within a budget.
type candidate struct {
	problem *planner.Problem // that further plans are made of
	held    *planner.Problem // in which it is brought within a budget: jobs arrive when they may begin
	policy  *planner.Policy
	plan    *planner.Plan
	later   []int // tasks that begin later where energy costs less then
}

// explain says of the jobs that begin later in a plan why they do.
func (k *candidate) explain(plan *planner.Plan) {
	for _, i := range k.later {
		plan.Assignments[i].Reason.Place = planner.PlacePrice
	}
}

// laterPlan is a plan of jobs that begin later where energy costs less then.
type laterPlan struct {
	wished *setup.Hours
	candidate
}

// planLater plans jobs that begin later when energy costs less then, if anybody wishes it. Jobs are due as
// much later from then on.
func planLater(ctx context.Context, c *cli.Context, s *setup.Setup, wished *setup.Hours) (*laterPlan, error) {
	if wished == nil {
		return nil, nil
	}
	p, wait := s.Problem, func(int) float64 { return wished.Slack }
	l, begins := &laterPlan{wished: wished}, hours.BeginTimes(p, wished.Prices, wait)
	l.problem = hours.Shifted(p, begins, wait)
	s.Problem = hours.DueLater(p, wait)
	if l.problem == nil {
		return l, nil
	}
	one := *s
	one.Problem = l.problem
	var err error
	if l.policy, err = one.Policy(c.String("policy")); err != nil {
		return nil, err
	}
	if l.plan, err = policy.SolveChecked(ctx, l.problem, l.policy, &planner.Options{Seed: s.Seed}); err != nil {
		return nil, err
	}
	l.plan.Recount(s.Problem)
	held := *l.problem // a budget has no job start before its hour
	held.Mode, l.held = p.Mode, &held
	for i := range begins {
		if begins[i] > p.Tasks[i].Arrival {
			l.later = append(l.later, i)
		}
	}
	l.explain(l.plan)
	return l, policy.CheckPlan(s.Problem, l.plan, l.policy)
}

// choose returns the plan without and with the budget: the one with jobs that begin later. Of jobs that are
// all known it is the one in which all may begin at once, if the other costs no less within the budget, or
// ends jobs late that needn't be.
func (l *laterPlan) choose(c *cli.Context, s *setup.Setup, budget *budgetKeeper, atOnce candidate) (
	free, kept *planner.Plan, out *planreport.Hours, err error,
) {
	if free, kept, err = budget.keep(c, &atOnce); err != nil || l == nil {
		return free, kept, nil, err
	}
	prices := l.wished.Prices
	out = &planreport.Hours{Slack: l.wished.Slack, Unit: l.wished.Unit}
	if out.AtOnce, err = prices.Cost(s.Problem, kept); err != nil {
		return nil, nil, nil, err
	}
	out.Cost = out.AtOnce
	if l.plan != nil {
		was := s.Problem.RankOf(kept)
		laterFree, later, err := l.within(c, s.Problem, budget)
		if err != nil {
			return nil, nil, nil, err
		}
		cost, err := prices.Cost(s.Problem, later)
		if err != nil {
			return nil, nil, nil, err
		}
		is := s.Problem.RankOf(later)
		if was.Cost, is.Cost = out.AtOnce, cost; s.Problem.Mode == planner.Online || is.Compare(was) < 0 {
			free, kept, out.Cost, out.Later = laterFree, later, cost, len(l.later)
		}
	}
	out.Bound = bound.OfPrices(s.Problem, kept, prices.Function)
	return free, kept, out, nil
}

// within returns the plan with jobs that begin later without and within the budget.
func (l *laterPlan) within(
	c *cli.Context, p *planner.Problem, budget *budgetKeeper,
) (free, kept *planner.Plan, err error) {
	if free, kept, err = budget.keep(c, &l.candidate); err != nil || kept == l.plan {
		return free, kept, err
	}
	kept.Recount(p)
	return free, kept, check.Plan(p, kept)
}

// budgetKeeper brings plans within --budget.
type budgetKeeper struct {
	terminal *terminal.Terminal
	limit    powerbudget.Budget
	against  *policy.References // further plans to begin from
	runs     int                // plans that are brought within it
	seed     uint64             // of the first of them
}

// keep returns the best of some plans as they are, and the best within the budget, checked. The first of
// them is given, the others have other seeds. Each search begins from its plan and from those that it is
// held against. All may take as long as the search for the plan. Without a budget both are the given plan.
func (k *budgetKeeper) keep(c *cli.Context, of *candidate) (free, kept *planner.Plan, err error) {
	if k == nil {
		return of.plan, of.plan, nil
	}
	var times, watts []float64
	for _, step := range k.limit {
		times, watts = append(times, step.From), append(watts, float64(step.Watts))
	}
	ctx, _, end := beginSearch(k.terminal, c)
	defer end()
	better := func(a, b *planner.Plan) bool {
		return b == nil || of.held.RankOf(a).Compare(of.held.RankOf(b)) < 0
	}
	plan := of.plan
	for run := 0; run < k.runs && (run == 0 || ctx.Err() == nil); run++ {
		if run > 0 {
			options := planner.Options{Seed: k.seed + uint64(run)}
			if plan, err = policy.SolveChecked(ctx, of.problem, of.policy, &options); err != nil {
				return nil, nil, err
			}
			plan.Recount(of.held)
			of.explain(plan)
		}
		within := plan
		if check.Budget(of.held, plan, times, watts) != nil {
			within, err = powerbudget.Keep(ctx, of.held, plan, k.limit, k.against.Easy, k.against.FCFS,
				k.against.Constant)
			if err == nil {
				err = errors.Join(check.Plan(of.held, within), check.Budget(of.held, within, times, watts))
			}
			if err != nil {
				return nil, nil, err
			}
		}
		if better(within, kept) {
			kept = within
		}
		if better(plan, free) {
			free = plan
		}
	}
	return free, kept, nil
}

// noteUnused notes numbers that change nothing with a policy.
func noteUnused(t *terminal.Terminal, c *cli.Context, s *setup.Setup, pol *planner.Policy) {
	online, pace := s.Problem.Mode == planner.Online, s.Config.Safety.Pace
	if c.IsSet("rho") && pol.Improve != nil && !online {
		t.Notef("--rho changes nothing: the search knows all jobs, and nodes sleep wherever that takes less " +
			"energy; park=never keeps them on")
	}
	if online && pace != 1 && policy.PaceOf(pol.Name) == 0 {
		t.Notef("pace = %v of [safety] changes nothing: policy %s doesn't go by it, %s does", pace, pol.Name,
			policy.WithNumber(policy.PacedPolicy, "pace", pace))
	}
}

// printPlan writes files first: one that can't be written fails the command
// before there is any output.
func printPlan(t *terminal.Terminal, c *cli.Context, s *setup.Setup, r *planreport.Result) error {
	if name := c.String("svg"); name != "" {
		if err := t.Write(name,
			func(w io.Writer) error { return planreport.WriteSVG(w, r, nil) }); err != nil {
			return err
		}
	}
	return t.WithHTML(
		c,
		func(w io.Writer) error { return planreport.WritePlanPage(w, newPlanPage(t, c, s, r)) },
		func() error {
			return t.Print(func(w io.Writer) error {
				switch {
				case c.Bool("json"):
					return planreport.WritePlanJSON(w, r)
				case c.Bool("csv"):
					return planreport.WritePlanCSV(w, r)
				}
				return planreport.WritePlanTable(w, r, t.TextOptions(c.Int("rows")))
			})
		},
	)
}

func newPlanPage(
	t *terminal.Terminal, c *cli.Context, s *setup.Setup, r *planreport.Result,
) *planreport.PlanPage {
	p := &planreport.PlanPage{
		Result: r, Name: setup.BatchName(s.Batch.Name), Jobs: s.Batch.Jobs, Origin: t.Provenance(s.Inputs(c)...),
	}
	if len(p.Jobs) != len(r.Problem.Tasks) {
		p.Jobs = nil
	}
	if s.Models == nil {
		return p
	}
	for _, m := range s.Models.All() {
		p.Models = append(p.Models, planreport.FittedModel{
			Workload: m.Workload, GPUModel: m.GPUModel, Settings: m.Settings, TimeError: m.TimeMAPE,
			PowerError: m.PowerMAPE, Source: m.Source,
		})
	}
	return p
}
