package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/view"
)

func reportCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "report",
		Usage: "what jobs used in a period, by whom, what it cost and what was saved",
		Description: "The energy of the nodes counts if it is known, otherwise the energy of the GPUs. A run counts in the\n" +
			"period in which it ended. Cost, carbon and water follow from [factors] in epd's configuration. The total\n" +
			"saving is measured against held-out runs, as in epplan savings; the savings of groups are the models'\n" +
			"estimates. For operators.\n" +
			"Example: epplan report --month last --by account\n" +
			"Example: epplan report --month 2026-10 --html october.html\n" +
			"Example: epplan report --since 7d -o csv",
		Flags: []cli.Flag{
			sinceFlag("runs"), untilFlag("runs"), monthFlag("runs"),
			&cli.StringFlag{
				Name: "by", Value: "user", Usage: "group by `GROUP`: user, account, partition, workload or gpu",
			},
			anySocketFlag(publicFirst), terminal.JSONFlag(), terminal.CSVFlag(), terminal.HTMLFlag(),
			&cli.StringFlag{
				Name: "output", Aliases: []string{"o"}, DefaultText: "table",
				Usage: "print as `FORMAT`: table, json, csv (the groups) or html",
			},
		},
		Action: t.Runs(terminal.TakesNone(runReport)),
	}
}

type usageReport struct {
	epdapi.Usage
	Footprint footprint `json:"footprint"`
}

func runReport(t *terminal.Terminal, c *cli.Context) error {
	if err := setOutput(c); err != nil {
		return err
	}
	u, err := askOfPeriod(c, func(
		epd *epdapi.Client, ctx context.Context, since, until time.Time,
	) (*epdapi.Usage, error) {
		return epd.Usage(ctx, since, until, c.String("by"))
	})
	if err != nil {
		return err
	}
	shown := view.Usage(u)
	return t.WithHTML(c, writesReport(t, shown), func() error {
		switch {
		case c.Bool("json"):
			return t.PrintJSON(usageReport{Usage: *u, Footprint: footprintOf(&u.Savings.Factors, u.Total.EnergyJ)})
		case c.Bool("csv"):
			return t.PrintTable(c, view.UsageGroups(u))
		}
		if err := t.PrintText(shown.Text()); err != nil {
			return err
		}
		for _, table := range shown.Tables {
			if err := t.PrintText("\n" + table.Caption + "\n"); err != nil {
				return err
			}
			if err := t.PrintTable(c, table.Table); err != nil {
				return err
			}
		}
		return nil
	})
}

// setOutput sets the flag for the format of --output.
func setOutput(c *cli.Context) error {
	format := c.String("output")
	if format == "" || format == "table" {
		return nil
	}
	for _, other := range []string{"json", "csv", "html"} {
		if c.IsSet(other) {
			return terminal.Usagef("--output and --%s are both given, want one", other)
		}
	}
	switch format {
	case "json", "csv":
		return c.Set(format, "true")
	case "html":
		return c.Set("html", "-")
	}
	return terminal.Usagef("--output %q, want table, json, csv or html", format)
}
