package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/powerbudget"
	"github.com/epplan/epplan/slurm"
)

func budgetCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "budget",
		Usage: "what the cluster may take and takes, W; lower it for a time",
		Description: "Budgets are those of [budget] in epd's configuration, hosts and idle GPUs included.\n" +
			"Example: epplan budget list\n" +
			"Example: epplan budget set 200kW --from 17:00 --until 20:00 --ramp 5m",
		Subcommands: []*cli.Command{
			{
				Name:        "list",
				Usage:       "show budgets, what nodes are allowed and take, and events",
				Description: "Example: epplan budget list --json",
				Flags:       []cli.Flag{anySocketFlag(publicFirst), terminal.JSONFlag()},
				Action:      t.Runs(terminal.WithoutArgs(runBudgetList)),
			},
			{
				Name:      "set",
				Usage:     "lower a budget for a time",
				ArgsUsage: "WATTS",
				Description: "WATTS such as 200kW. Limits are lowered before the beginning, so that the budget holds from then on; one\n" +
					"that begins at once holds within seconds. Of several events and the standing budget the lowest counts.\n" +
					"For root and Slurm's user.\n" +
					"Example: epplan budget set 200kW --from 17:00 --until 20:00 --ramp 5m\n" +
					"Example: epplan budget set 40kW --until +2h --scope 'gpu[01-16]'",
				Flags: []cli.Flag{
					&cli.StringFlag{
						Name: "from", Usage: "`TIME` from which on: RFC 3339, +2h or 18:00", DefaultText: "now",
					},
					&cli.StringFlag{
						Name: "until", Usage: "`TIME` until when: RFC 3339, +2h or 18:00, after the beginning",
					},
					&cli.DurationFlag{
						Name:  "ramp",
						Usage: "`TIME` before the beginning and after the end in which the budget falls and rises",
					},
					&cli.StringFlag{
						Name: "scope", Usage: "`SCOPE`: cluster, a partition or a hostlist of [budget]", Value: "cluster",
					},
					anySocketFlag(controllerFirst), terminal.JSONFlag(), terminal.DryRunFlag(),
				},
				Action: t.Runs(terminal.WithArgs(1, 1, "a power such as 200kW", runBudgetSet)),
			},
			{
				Name:        "cancel",
				Usage:       "take an event back",
				ArgsUsage:   "ID",
				Description: "For root and Slurm's user.\nExample: epplan budget cancel 4f7k2m9q",
				Flags:       []cli.Flag{anySocketFlag(controllerFirst), terminal.JSONFlag(), terminal.DryRunFlag()},
				Action: t.Runs(
					terminal.WithArgs(1, 1, "the ID of an event, by epplan budget list", runBudgetCancel),
				),
			},
		},
	}
}

func runBudgetList(t *terminal.Terminal, c *cli.Context) error {
	list, err := ask(c, publicFirst, func(epd *epdapi.Client, ctx context.Context) (*epdapi.BudgetList, error) {
		return epdapi.BudgetsOf(ctx, epd)
	})
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return t.PrintJSON(list)
	}
	v := view.Budgets(list)
	if err := t.PrintText(v.Text()); err != nil {
		return err
	}
	for _, table := range v.Tables {
		if err := t.PrintTable(c, table.Table); err != nil {
			return err
		}
	}
	return nil
}

func runBudgetSet(t *terminal.Terminal, c *cli.Context) error {
	event, err := budgetEvent(c, time.Now())
	if err != nil {
		return err
	}
	if stop, err := terminal.Announce(c, "set a budget: "+eventWords(event)); stop {
		return err
	}
	set, err := ask(c, controllerFirst,
		func(epd *epdapi.Client, ctx context.Context) (*epdapi.BudgetEvent, error) {
			var set epdapi.BudgetEvent
			return &set, epd.Post(ctx, epdapi.PathBudget, event, &set)
		})
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return t.PrintJSON(set)
	}
	return t.PrintText(fmt.Sprintf("event %s: %s\n", set.ID, terminal.Printable(eventWords(set))))
}

// budgetEvent reads what the command line says of an event.
func budgetEvent(c *cli.Context, now time.Time) (*epdapi.BudgetEvent, error) {
	watts, err := budget.ParseWatts(c.Args().First())
	if err != nil {
		return nil, terminal.Usagef("%v", err)
	}
	if c.String("until") == "" {
		return nil, terminal.Usagef("--until TIME is missing: an event ends")
	}
	from, err := slurm.TimeAt(cmp.Or(c.String("from"), "+1ns"), now)
	if err != nil {
		return nil, terminal.Usagef("--from: %v", err)
	}
	until, err := slurm.TimeAt(c.String("until"), from)
	if err != nil {
		return nil, terminal.Usagef("--until: %v", err)
	}
	if !until.After(from) {
		return nil, terminal.Usagef("--until %s, want a time after %s", c.String("until"), view.DateTime(from))
	}
	return &epdapi.BudgetEvent{
		Scope: c.String("scope"), Watts: watts, From: from, Until: until, RampS: c.Duration("ramp").Seconds(),
	}, nil
}

// eventWords says what an event is.
func eventWords(e *epdapi.BudgetEvent) string {
	text := fmt.Sprintf("%.6g W for %s from %s until %s", float64(e.Watts), e.Scope, view.DateTime(e.From),
		view.DateTime(e.Until))
	if e.RampS > 0 {
		text += fmt.Sprintf(", with ramps of %g s", e.RampS)
	}
	return text
}

func runBudgetCancel(t *terminal.Terminal, c *cli.Context) error {
	id := c.Args().First()
	if stop, err := terminal.Announce(c, "cancel event "+id); stop {
		return err
	}
	gone, err := ask(c, controllerFirst,
		func(epd *epdapi.Client, ctx context.Context) (*epdapi.BudgetEvent, error) {
			var gone epdapi.BudgetEvent
			return &gone, epd.Post(ctx, epdapi.PathBudgetCancel, epdapi.BudgetCancel{ID: id}, &gone)
		})
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return t.PrintJSON(gone)
	}
	return t.PrintText(fmt.Sprintf("cancelled event %s: %s\n", gone.ID, terminal.Printable(eventWords(gone))))
}

func flexCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "flex",
		Usage:     "how much power a batch or the queue can do without, from when, for how long, at what price",
		ArgsUsage: "BATCH",
		Description: "Plans the batch, and for each window of time again within the least power at which every job that is in\n" +
			"time in the plan still is. Jobs start later, at other clocks and on other GPUs of the nodes in the plan;\n" +
			"running jobs go on. Nothing is changed.\n" +
			"Example: epplan flex batch.csv --cluster cluster.toml --models models.toml\n" +
			"Example: epplan flex batch.csv --cluster cluster.toml --models models.toml --from 1h --for 1h --csv\n" +
			"Example: epplan flex --from-slurm --from 2h --for 3h",
		Flags: slices.Concat(setup.PlanningFlags(), []cli.Flag{
			terminal.BoolFlag("from-slurm", "plan Slurm's pending jobs, as epd knows them"),
			anySocketFlag(publicFirst),
			&cli.StringFlag{
				Name: "from", Value: "0,1h", Usage: "`TIMES` at which windows begin: from now, or 17:00 by --at",
			},
			&cli.StringFlag{Name: "for", Value: "15m,1h,4h", Usage: "`TIMES` for which windows last"},
			setup.AtFlag("times of day and prices by the hour"),
			terminal.JSONFlag(), terminal.CSVFlag(),
		}),
		Action: t.Runs(runFlex),
	}
}

func runFlex(t *terminal.Terminal, c *cli.Context) error {
	s, err := setupPlan(t, c)
	if err != nil || s == nil {
		return err
	}
	pol, err := s.Policy(c.String("policy"))
	if err != nil {
		return err
	}
	if planner.NeverSleeps(pol.Park, &s.Problem.Cluster) {
		return terminal.Usagef("nodes that needn't be on are off in a window, want no park=never")
	}
	windows, err := flexWindows(c, s)
	if err != nil {
		return err
	}
	prices, err := s.Money(t, c)
	if err != nil {
		return err
	}
	if err := s.CheckClock(c); err != nil {
		return err
	}
	monitor, done := setup.PlanningMonitor(t)
	defer done()
	ctx, end := monitor.Begin(c.Context)
	defer end()
	plan, err := policy.SolveChecked(ctx, s.Problem, pol, &planner.Options{Seed: s.Seed})
	if err != nil {
		return setup.WithFileLocation(s.Config, err)
	}
	var all []*powerbudget.Flex
	for _, window := range windows {
		if window.From >= plan.Ledger.End {
			continue
		}
		f, err := powerbudget.NewFlex(ctx, s.Problem, plan, window)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	done()
	if len(plan.Unplaced)+len(plan.PastDue(s.Problem)) > 0 {
		t.Message("note", fmt.Sprintf("%s past due in the plan already, and may end later still; %s",
			report.Plural(len(plan.PastDue(s.Problem)), "job ends", "jobs end"),
			report.Plural(len(plan.Unplaced), "job is left out", "jobs are left out")))
	}
	if len(all) == 0 {
		return fmt.Errorf("the plan ends at %s, before any of the windows begins",
			report.FormatSeconds(plan.Ledger.End))
	}
	return t.PrintTable(c, planreport.FlexTable(s.Problem, plan, all, prices, s.Config.Factors.Currency))
}

// flexWindows returns the windows that --from and --for name.
func flexWindows(c *cli.Context, s *setup.Setup) (windows []planner.Interval, err error) {
	from, err := s.Moments(c, "from")
	if err != nil {
		return nil, err
	}
	lasting, err := setup.Times(c, "for", time.Second)
	if err != nil {
		return nil, err
	}
	for _, at := range from {
		for _, seconds := range lasting {
			windows = append(windows, planner.Interval{From: at, To: at + seconds})
		}
	}
	return windows, nil
}
