package main

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
)

func savingsCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "savings",
		Usage: "what was saved, measured against held-out runs",
		Description: "Runs at chosen clocks are compared with runs of the same workload on the same GPU " +
			"model that a lot left at\n" +
			"default clocks. The interval holds the true saving of the compared workloads in 95 of 100 cases; those without a\n" +
			"held-out run are in none of it. What the models believe is stated beside it. Price, carbon and water follow\n" +
			"from [factors] in epd's configuration. Where the lot has jobs run at constant clocks (constant_arm in [live]),\n" +
			"what these saved is measured in the same way, and what it adds to choose clocks for each job.\n" +
			"--mine is for everybody: what your own jobs used and saved, by workload. --by GROUP measures the saving\n" +
			"of each group of jobs in the same way, if at least 5 held-out jobs of the group can be compared.\n" +
			"Example: epplan savings --month 2026-10\n" +
			"Example: epplan savings --mine --since 30d\n" +
			"Example: epplan savings --month last --by account\n" +
			"Example: epplan savings --since 30d\n" +
			"Example: epplan savings --html savings.html",
		Flags: []cli.Flag{
			sinceFlag("runs"), untilFlag("runs"), monthFlag("runs"),
			&cli.BoolFlag{Name: "mine", Usage: "what your own jobs used and saved"},
			byFlag(""), anySocketFlag(publicFirst), terminal.JSONFlag(), terminal.CSVFlag(), terminal.HTMLFlag(),
		},
		Action: t.Runs(terminal.WithoutArgs(runSavings)),
	}
}

type savingsReport struct {
	epdapi.Savings
	GPUCost  footprint `json:"gpu_footprint"`
	NodeCost footprint `json:"node_footprint"`
}

// footprint is what a saving comes to. What no factor was stated for is null.
type footprint struct {
	KWh      float64  `json:"kwh"`      // of the computers
	SiteKWh  float64  `json:"site_kwh"` // with the PUE
	Cost     *float64 `json:"cost"`
	Currency string   `json:"currency"`
	Carbon   *float64 `json:"carbon_g"`
	Water    *float64 `json:"water_l"`
}

func footprintOf(f *epdapi.Factors, joules float64) footprint {
	stated := f.Config().StatedFootprint(dvfsmodel.Joule(joules))
	return footprint{
		KWh: dvfsmodel.Joule(joules).KWh(), SiteKWh: f.FootprintOf(joules).KWh, Currency: f.Currency,
		Cost: stated.Cost, Carbon: stated.Carbon, Water: stated.Water,
	}
}

func runSavings(t *terminal.Terminal, c *cli.Context) error {
	switch by := c.String("by"); {
	case by != "" || c.Bool("mine"):
		return printUsage(t, c, cmp.Or(by, "workload"), by != "")
	case c.Bool("csv"):
		return terminal.Usagef("--csv has a row for each group, want --by GROUP, too")
	}
	s, err := askOfPeriod(c, (*epdapi.Client).Savings)
	if err != nil {
		return err
	}
	shown := view.Savings(s)
	return t.WithHTML(c, reportWriter(t, shown), func() error {
		if c.Bool("json") {
			return t.PrintJSON(savingsReport{
				Savings: *s, GPUCost: footprintOf(&s.Factors, s.GPU.SavedJ),
				NodeCost: footprintOf(&s.Factors, s.Node.SavedJ),
			})
		}
		return t.PrintText(shown.Text())
	})
}

// reportWriter returns a function that writes a view as a report.
func reportWriter(t *terminal.Terminal, v *view.View) func(io.Writer) error {
	return func(w io.Writer) error { return page.WriteReport(w, v.Report(t.Provenance())) }
}

// askOfPeriod asks epd about the period of the flags, once the flags are known to be right.
func askOfPeriod[T any](
	c *cli.Context, question func(epd *epdapi.Client, ctx context.Context, since, until time.Time) (T, error),
) (answer T, err error) {
	if err := terminal.CheckHTML(c); err != nil {
		return answer, err
	}
	since, until, err := periodOf(c, time.Now())
	if err != nil {
		return answer, err
	}
	return ask(c, publicFirst, func(epd *epdapi.Client, ctx context.Context) (T, error) {
		return question(epd, ctx, since, until)
	})
}

func sinceFlag(what string) cli.Flag {
	return &cli.StringFlag{
		Name: "since", DefaultText: "all that is known",
		Usage: "`TIME` from which " + what + " count: 30d, 12h, or a date such as 2026-01-31",
	}
}

func untilFlag(what string) cli.Flag {
	return &cli.StringFlag{
		Name: "until", DefaultText: "now",
		Usage: "`TIME` before which " + what + " count, in the same forms",
	}
}

func monthFlag(what string) cli.Flag {
	return &cli.StringFlag{
		Name:  "month",
		Usage: "the " + what + " of a `MONTH`, such as 2026-10 or last, instead of --since and --until",
	}
}

// periodOf returns the period that flags ask for, its end excluded; zero times: from ever, and up to now.
func periodOf(c *cli.Context, now time.Time) (since, until time.Time, err error) {
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	for _, p := range []struct {
		flag, layout, example, others string
		last                          time.Time
		years, months                 int
	}{
		{"year", "2006", "2026", "--month, --since and --until", month.AddDate(-1, 1-int(now.Month()), 0), 1, 0},
		{"month", "2006-01", "2026-10", "--since and --until", month.AddDate(0, -1, 0), 0, 1},
	} {
		text := c.String(p.flag)
		if text == "" {
			continue
		}
		if c.IsSet("since") || c.IsSet("until") || p.years > 0 && c.IsSet("month") {
			return since, until, terminal.Usagef("--%s says the whole period: without %s", p.flag, p.others)
		}
		if since = p.last; text != "last" {
			if since, err = time.ParseInLocation(p.layout, text, now.Location()); err != nil {
				return since, until, terminal.Usagef("--%s %q, want a %s such as %s, or last", p.flag, text, p.flag,
					p.example)
			}
		}
		if since.After(now) {
			return since, until, terminal.Usagef("--%s %s is still to come", p.flag, text)
		}
		return since, since.AddDate(p.years, p.months, 0), nil
	}
	if since, err = parseTime("since", c.String("since"), now); err != nil {
		return since, until, err
	}
	if until, err = parseTime("until", c.String("until"), now); err != nil {
		return since, until, err
	}
	if !until.IsZero() && !until.After(since) {
		return since, until, terminal.Usagef("--until %s isn't after --since %s", c.String("until"), c.String("since"))
	}
	return since, until, nil
}

// parseTime reads a time as flags have it; "" is the zero time.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		const most = 36_500
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= most {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, terminal.Usagef("--%s %q, want a time such as 30d, 12h or 2026-01-31", flag, text)
}
