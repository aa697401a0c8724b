package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

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
			setup.HoursFlags(),
			[]cli.Flag{
				&cli.StringFlag{
					Name: setup.BudgetFlag, DefaultText: "none",
					Usage: "`WATTS` that GPUs and hosts may take together at any moment, such as 300kW; a CSV file with " +
						"watts and time_s, or time as in [budget] series; config: [budget] of --config",
				},
				terminal.JSONFlag(), terminal.CSVFlag(),
				&cli.StringFlag{Name: "svg", Usage: "draw the plan to `FILE`"},
				terminal.HTMLFlag(),
				terminal.RowsFlag("jobs"),
				setup.TimeLimitFlag("`TIME` after which the search for a better plan stops with the best so " +
					"far, such as 2s"),
			}),
		Action: t.Runs(runPlan),
	}
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
	s.SearchTime = c.Duration("time-limit")
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
	return setup.Problem(t, c, c.Args().First())
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
	pol, err := s.Policy(c.String("policy"))
	if err != nil {
		return nil, err
	}
	noteUnused(t, c, s, pol)
	wished, limit, err := hoursAndBudget(t, c, s, pol)
	if err != nil {
		return nil, err
	}
	monitor, done := setup.PlanningMonitor(t)
	defer done()
	ctx, end := monitor.Begin(c.Context)
	defer end()
	search := ctx
	if s.SearchTime > 0 {
		var done context.CancelFunc
		search, done = context.WithTimeoutCause(ctx, s.SearchTime, planner.ErrCut)
		defer done()
	}
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
	var budget *budgetKeeper
	if limit != nil {
		last := plan.Ledger.End + c.Duration("slack").Seconds()
		budget = &budgetKeeper{t, limit.Until(last), &against, s.SearchTime, done}
	}
	free, plan, byTheHour, err := later.choose(c, s, budget, plan)
	if err != nil {
		return nil, err
	}
	done()
	frontier, err := s.Frontier(planner.WithoutMonitor(search), plan)
	if err != nil {
		return nil, err
	}
	noteCut(t, c, plan, &against)
	plan.Warnings = append(plan.Warnings, s.Warnings...)
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

// hoursAndBudget returns what --slack and --budget ask for, each nil where it isn't given.
func hoursAndBudget(t *terminal.Terminal, c *cli.Context, s *setup.Setup, pol *planner.Policy) (
	wished *setup.Hours, limit *setup.PowerBudget, err error,
) {
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

// noteCut notes searches that were stopped before they were done.
func noteCut(t *terminal.Terminal, c *cli.Context, plan *planner.Plan, against *policy.References) {
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

// laterPlan is a plan of jobs that begin later where energy costs less then.
type laterPlan struct {
	wished *setup.Hours
	begins []float64        // of each job, from when on it may start
	held   *planner.Problem // in which jobs arrive then; nil: no job begins later
	plan   *planner.Plan    // as of jobs that arrive when they do
	later  int              // jobs that begin later
}

// planLater plans jobs that begin later when energy costs less then, if anybody wishes it. Jobs are due as
// much later from then on.
func planLater(ctx context.Context, c *cli.Context, s *setup.Setup, wished *setup.Hours) (*laterPlan, error) {
	if wished == nil {
		return nil, nil
	}
	p, wait := s.Problem, func(int) float64 { return wished.Slack }
	l := &laterPlan{wished: wished, begins: hours.Begins(p, wished.Prices, wait)}
	shifted := hours.Shifted(p, l.begins, wait)
	s.Problem = hours.DueLater(p, wait)
	if shifted == nil {
		return l, nil
	}
	one := *s
	one.Problem = shifted
	pol, err := one.Policy(c.String("policy"))
	if err != nil {
		return nil, err
	}
	if l.plan, err = policy.SolveChecked(ctx, shifted, pol, &planner.Options{Seed: s.Seed}); err != nil {
		return nil, err
	}
	l.plan.Recount(s.Problem)
	held := *shifted // a budget has no job start before its hour
	held.Mode, l.held = p.Mode, &held
	for i := range l.begins {
		if l.begins[i] > p.Tasks[i].Arrival {
			l.later++
		}
	}
	return l, policy.CheckPlan(s.Problem, l.plan, pol)
}

// choose returns the plan without and with the budget: the one with jobs that begin later; of jobs that are all
// known the one in which all may begin at once, where the other costs no less within the budget, or ends jobs
// late that needn't be.
func (l *laterPlan) choose(c *cli.Context, s *setup.Setup, budget *budgetKeeper, atOnce *planner.Plan) (
	free, kept *planner.Plan, out *planreport.Hours, err error,
) {
	if kept, err = budget.keep(c, s.Problem, atOnce); err != nil || l == nil {
		return atOnce, kept, nil, err
	}
	prices := l.wished.Prices
	out = &planreport.Hours{Slack: l.wished.Slack, Unit: l.wished.Unit}
	if out.AtOnce, err = prices.Cost(s.Problem, kept); err != nil {
		return nil, nil, nil, err
	}
	free, out.Cost = atOnce, out.AtOnce
	if l.held != nil {
		later, cost, err := l.within(c, s.Problem, budget)
		if err != nil {
			return nil, nil, nil, err
		}
		was, is := s.Problem.RankOf(kept), s.Problem.RankOf(later)
		if was.Cost, is.Cost = out.AtOnce, cost; s.Problem.Mode == planner.Online || is.Compare(was) < 0 {
			free, kept, out.Cost, out.Later = l.plan, later, cost, l.later
		}
	}
	out.Bound = bound.OfPrices(s.Problem, kept, prices.Function)
	return free, kept, out, nil
}

// within returns the plan with jobs that begin later within the budget, and what it costs by the hour.
func (l *laterPlan) within(
	c *cli.Context, p *planner.Problem, budget *budgetKeeper,
) (plan *planner.Plan, cost float64, err error) {
	if plan, err = budget.keep(c, l.held, l.plan); err != nil {
		return nil, 0, err
	}
	if plan != l.plan {
		plan.Recount(p)
		if err := check.Plan(p, plan); err != nil {
			return nil, 0, err
		}
	}
	cost, err = l.wished.Prices.Cost(p, plan)
	return plan, cost, err
}

// budgetKeeper brings plans within --budget.
type budgetKeeper struct {
	terminal *terminal.Terminal
	limit    powerbudget.Budget
	against  *policy.References // further plans to begin from
	search   time.Duration      // at most, for each; 0: until it is done
	done     func()             // ends what is shown of the search before
}

// keep returns a plan within the budget, checked, beginning from one that may exceed it or from those that it
// is held against; without a budget the plan itself.
func (k *budgetKeeper) keep(c *cli.Context, p *planner.Problem, plan *planner.Plan) (*planner.Plan, error) {
	if k == nil {
		return plan, nil
	}
	var times, watts []float64
	for _, step := range k.limit {
		times, watts = append(times, step.From), append(watts, float64(step.Watts))
	}
	if check.Budget(p, plan, times, watts) == nil {
		return plan, nil
	}
	k.done()
	monitor, done := setup.PlanningMonitor(k.terminal)
	defer done()
	ctx, end := monitor.Begin(c.Context)
	defer end()
	if k.search > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, k.search, planner.ErrCut)
		defer done()
	}
	kept, err := powerbudget.Keep(ctx, p, plan, k.limit, k.against.Easy, k.against.FCFS, k.against.Constant)
	if err != nil {
		return nil, err
	}
	return kept, errors.Join(check.Plan(p, kept), check.Budget(p, kept, times, watts))
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
			policy.With(policy.PacedPolicy, "pace", pace))
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
