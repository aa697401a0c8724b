package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/audit"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/slurm"
)

func reportCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "report",
		Usage: "what jobs used in a period, by whom, what it cost and what was saved",
		Description: "The energy of the nodes counts if it is known, otherwise the energy of the GPUs. A run counts in the\n" +
			"period in which it ended. Cost, carbon and water follow from [factors] in epd's configuration. The total\n" +
			"saving is measured against held-out runs, as in epplan savings; the savings of groups are the models'\n" +
			"estimates. Operators see everybody's jobs, others their own.\n" +
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
		return epd.Usage(ctx, since, until, c.String("by"), false)
	})
	if err != nil {
		return err
	}
	return printUsage(t, c, u)
}

func runOwnUsage(t *terminal.Terminal, c *cli.Context) error {
	u, err := askOfPeriod(c, func(
		epd *epdapi.Client, ctx context.Context, since, until time.Time,
	) (*epdapi.Usage, error) {
		return epd.Usage(ctx, since, until, "workload", true)
	})
	if err != nil {
		return err
	}
	return printUsage(t, c, u)
}

func printUsage(t *terminal.Terminal, c *cli.Context, u *epdapi.Usage) error {
	shown := view.Usage(u)
	return t.WithHTML(c, writesReport(t, shown), func() error {
		switch {
		case c.Bool("json"):
			return t.PrintJSON(usageReport{Usage: *u, Footprint: footprintOf(&u.Factors, u.Total.EnergyJ)})
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

func auditCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "audit",
		Usage:     "what a change did to the energy and run times of jobs, from accounting before and after it",
		ArgsUsage: "LOG | BEFORE AFTER",
		Description: "LOG is what sacct prints, or a job table, with energies of any tool; - is standard input. The change is\n" +
			"what was changed on the cluster, such as a clock, a limit or a setting of the scheduler: at --change,\n" +
			"or between two logs. Jobs after it are held against jobs of the same kinds before: one program of one\n" +
			"user, by its name without digits, on as many GPUs of a model in a partition. Only jobs count that\n" +
			"completed and whose energy is known.\n" +
			"Example: epplan audit change.txt --change 2026-10-01\n" +
			"Example: epplan audit change.txt --change 2026-10-01 --html audit.html",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "change", Usage: "`TIME` of the change, in a log of both: a date such as 2026-10-01, or 30d",
			},
			sinceFlag("jobs"), untilFlag("jobs"),
			&cli.StringFlag{
				Name: "timezone", Usage: "`ZONE` of the log's times, such as Europe/Berlin", DefaultText: "this machine's",
			},
			terminal.JSONFlag(), terminal.HTMLFlag(),
		},
		Action: t.Runs(runAudit),
	}
}

// leftOut counts the jobs of a log that an audit can't use.
type leftOut struct {
	NotCompleted int `json:"not_completed"`
	NoEnergy     int `json:"no_energy"`
	NoGPUs       int `json:"no_gpus"`
}

type auditReport struct {
	audit.Result
	LeftOut leftOut `json:"left_out"`
}

func runAudit(t *terminal.Terminal, c *cli.Context) error {
	if err := terminal.CheckHTML(c); err != nil {
		return err
	}
	const most = 2
	if err := terminal.CheckArgs(c, 1, most, "one log, or one before and one after the change"); err != nil {
		return err
	}
	if one := c.NArg() == 1; one != c.IsSet("change") {
		return terminal.Usagef("--change TIME is for one log of both times, want that, or two logs without it")
	}
	change, err := parseTime("change", c.String("change"), time.Now())
	if err != nil {
		return err
	}
	out := &auditReport{}
	before, err := out.read(t, c, c.Args().Get(0))
	if err != nil {
		return err
	}
	var after []audit.Run
	if c.NArg() == 1 {
		before, after = audit.Split(before, change)
	} else if after, err = out.read(t, c, c.Args().Get(1)); err != nil {
		return err
	}
	if len(before) == 0 || len(after) == 0 {
		return terminal.WithHint(fmt.Errorf("%d jobs that can be compared ended before the change, %d after it, "+
			"want some of both", len(before), len(after)), "epplan import sacct LOG says what is in a log")
	}
	out.Result = audit.Of(before, after)
	shown := view.Audit(&out.Result)
	return t.WithHTML(c, writesReport(t, shown), func() error {
		if c.Bool("json") {
			return t.PrintJSON(out)
		}
		if l := &out.LeftOut; l.NotCompleted+l.NoEnergy+l.NoGPUs > 0 {
			t.Notef("left out: %d jobs that didn't complete, %d without energy, %d without GPUs", l.NotCompleted,
				l.NoEnergy, l.NoGPUs)
		}
		return t.PrintText(shown.Text())
	})
}

// read returns the jobs of a log that can be compared.
func (a *auditReport) read(t *terminal.Terminal, c *cli.Context, name string) (runs []audit.Run, err error) {
	since, until, err := periodOf(c, time.Now())
	if err != nil {
		return nil, err
	}
	zone, err := setup.TimeZone(c.String("timezone"))
	if err != nil {
		return nil, err
	}
	var tally *joblog.Tally
	err = t.Read(name, func(r io.Reader, name string) (err error) {
		r = setup.NewProgressReader(c.Context, r, nil)
		tally, err = joblog.ReadAny(r, name, &joblog.Options{Zone: zone}, func(p *record.HistoryJob) error {
			if p.Ended.Before(since) || !until.IsZero() && !p.Ended.Before(until) {
				return nil
			}
			if run, ok := a.runOf(p); ok {
				runs = append(runs, run)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	setup.WarnOfLog(t, tally)
	return runs, tally.CheckBad(joblog.MaxBad)
}

// digits are those in which the names of one program's jobs differ.
var digits = regexp.MustCompile("[0-9]+")

// runOf returns a job as it is compared, or counts why it isn't.
func (a *auditReport) runOf(p *record.HistoryJob) (audit.Run, bool) {
	seconds, ran := p.RunTime().Get()
	joules, measured := p.EnergyJ.Get()
	gpus, known := p.GPUs.Get()
	switch {
	case p.State != string(slurm.Completed) || !ran || seconds <= 0:
		a.LeftOut.NotCompleted++
	case !measured || joules <= 0:
		a.LeftOut.NoEnergy++
	case !known || gpus <= 0:
		a.LeftOut.NoGPUs++
	default:
		name := digits.ReplaceAll(p.Name, []byte("#"))
		kind := fmt.Sprintf("%q %q %v %q %q", p.User, name, gpus, p.GPUModel, p.Partition)
		return audit.Run{Kind: kind, At: p.Ended, Joules: joules, Seconds: seconds, GPUs: gpus}, true
	}
	return audit.Run{}, false
}
