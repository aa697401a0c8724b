package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/audit"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/report"
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
			"saving, and that of groups with enough held-out runs, is measured as in epplan savings; a saving that is\n" +
			"called modelled is the models' estimate. Operators see everybody's jobs, others their own.\n" +
			"Example: epplan report --month last --by account\n" +
			"Example: epplan report --month 2026-10 --html october.html\n" +
			"Example: epplan report --since 7d -o csv\n" +
			"Example: epplan report --log sacct.txt --month 2026-10 --by account\n" +
			"Example: epplan report --year last -o csv",
		Flags: []cli.Flag{
			sinceFlag("runs"), untilFlag("runs"), monthFlag("runs"),
			&cli.StringFlag{
				Name: "year", Usage: "IT energy by month of a `YEAR`, such as 2026 or last, measured and modelled apart",
			},
			byFlag("user"),
			&cli.StringFlag{
				Name: "log", Usage: "accounting `LOG` in place of epd's records, without savings: what sacct prints, or a job table; " +
					"-: standard input", DefaultText: "epd's records",
			},
			setup.ConfigFlag("TOML `FILE` with [factors], for --log"),
			anySocketFlag(publicFirst), terminal.JSONFlag(), terminal.CSVFlag(), terminal.HTMLFlag(),
		},
		Action: t.Runs(terminal.WithoutArgs(runReport)),
	}
}

type usageReport struct {
	epdapi.Usage
	Footprint footprint `json:"footprint"`
}

func runReport(t *terminal.Terminal, c *cli.Context) error {
	if c.IsSet("config") && !c.IsSet("log") {
		return terminal.Usagef("--config is for --log: epd has its own, want it left out")
	}
	if c.String("year") == "" {
		return printUsage(t, c, c.String("by"), false)
	}
	if c.IsSet("log") {
		return terminal.Usagef("--year is of epd's records: without --log")
	}
	if c.IsSet("by") {
		return terminal.Usagef("--year has a row for each month: without --by")
	}
	u, err := askUsage(c, "gpu")
	if err != nil {
		return err
	}
	if u.Own {
		return terminal.WithHint(errors.New("only operators are told of a year's IT energy"),
			"epplan savings --mine --since 365d says what your own jobs used")
	}
	shown := view.Year(u, t.Now())
	return t.WithHTML(c, reportWriter(t, shown), func() error {
		if c.Bool("json") || c.Bool("csv") {
			return t.PrintTable(c, view.YearMonths(u, t.Now()))
		}
		return printView(t, c, shown)
	})
}

// usageOf returns the usage by --log, or by epd's records.
func usageOf(t *terminal.Terminal, c *cli.Context, by string) (*epdapi.Usage, error) {
	if !c.IsSet("log") {
		return askUsage(c, by)
	}
	if err := terminal.CheckHTML(c); err != nil {
		return nil, err
	}
	return usageOfLog(t, c, by)
}

// askUsage asks epd for the usage of the flags' period by groups.
func askUsage(c *cli.Context, by string) (*epdapi.Usage, error) {
	return askOfPeriod(c, func(
		epd *epdapi.Client, ctx context.Context, since, until time.Time,
	) (*epdapi.Usage, error) {
		return epd.Usage(ctx, since, until, by, c.Bool("mine"))
	})
}

func byFlag(value string) cli.Flag {
	return &cli.StringFlag{
		Name: "by", Value: value, Usage: "group by `GROUP`: user, account, partition, workload or gpu",
	}
}

// printUsage prints the usage of a period by groups, or, of tables, only that of what they saved.
func printUsage(t *terminal.Terminal, c *cli.Context, by string, saved bool) error {
	u, err := usageOf(t, c, by)
	if err != nil {
		return err
	}
	shown, groups := view.Usage(u), view.UsageTotal(u)
	if saved {
		shown.Tables = []view.Table{view.GroupSavings(u)}
		groups = shown.Tables[0].Table
	}
	return t.WithHTML(c, reportWriter(t, shown), func() error {
		switch {
		case c.Bool("json"):
			return t.PrintJSON(usageReport{Usage: *u, Footprint: footprintOf(&u.Factors, u.Total.EnergyJ)})
		case c.Bool("csv"):
			return t.PrintTable(c, groups)
		}
		return printView(t, c, shown)
	})
}

// printView prints the facts and tables of a view.
func printView(t *terminal.Terminal, c *cli.Context, shown *view.View) error {
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
}

func auditCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "audit",
		Usage:     "what a change did to the energy and run times of jobs, from accounting before and after it",
		ArgsUsage: "LOG | BEFORE AFTER",
		Description: "LOG is what sacct prints, or a job table, with energies of any tool; - is standard input. The change is\n" +
			"what was changed on the cluster, such as a clock, a limit or a setting of the scheduler: at --change,\n" +
			"or between two logs. Jobs after it are held against jobs of the same kinds before: one program of one\n" +
			"user, by its name without digits and signs, on as many GPUs of a model in a partition. Only jobs count that\n" +
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
			setup.ConfigFlag("TOML `FILE` whose [factors] say what the saved energy is worth"),
			terminal.JSONFlag(), terminal.CSVFlag(), terminal.HTMLFlag(),
		},
		Action: t.Runs(runAudit),
	}
}

// excludedJobs counts the jobs of a log that an audit can't use.
type excludedJobs struct {
	NotCompleted int `json:"not_completed"`
	NoEnergy     int `json:"no_energy"`
	NoGPUs       int `json:"no_gpus"`
}

func (l *excludedJobs) text() string {
	return fmt.Sprintf("left out: %d jobs that didn't complete, %d without energy, %d without GPUs", l.NotCompleted,
		l.NoEnergy, l.NoGPUs)
}

type auditReport struct {
	audit.Result
	LeftOut excludedJobs `json:"left_out"`
	Saved   auditSaved   `json:"saved"`
}

// auditSaved is the energy that jobs of the same kinds saved after the change, with the ends of its interval,
// and what it is worth; null where too few kinds are known.
type auditSaved struct {
	EnergyJ *float64   `json:"energy_j"`
	LowJ    *float64   `json:"low_j"`
	HighJ   *float64   `json:"high_j"`
	Worth   *footprint `json:"footprint"`
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
			"want some of both; %s", len(before), len(after), out.LeftOut.text()),
			"energies come from sacct's ConsumedEnergyRaw or a column energy_j; epplan import sacct LOG says what is in a log")
	}
	out.Result = audit.Compare(before, after)
	if c.NArg() == most {
		warnOfOrder(t, &out.Result, terminal.Printable(c.Args().Get(0)), terminal.Printable(c.Args().Get(1)))
	}
	worth, err := auditFactors(t, c, &out.After)
	if err != nil {
		return err
	}
	if joules, low, high := out.Result.Saved(); out.Energy.IsKnown() {
		of := epdapi.NewFactors(worth)
		all := footprintOf(&of, joules)
		out.Saved = auditSaved{&joules, &low, &high, &all}
	}
	shown := view.Audit(&out.Result, worth)
	return t.WithHTML(c, reportWriter(t, shown), func() error {
		if c.Bool("json") {
			return t.PrintJSON(out)
		}
		if c.Bool("csv") {
			return t.PrintTable(c, out.table())
		}
		if out.LeftOut != (excludedJobs{}) {
			t.Notef("%s", out.LeftOut.text())
		}
		return t.PrintText(shown.Text())
	})
}

// warnOfOrder warns of logs that aren't of the time before a change and of that after it.
func warnOfOrder(t *terminal.Terminal, r *audit.Result, before, after string) {
	switch {
	case r.After.Until.Before(r.Before.From):
		t.Warningf("%s ends before %s begins: the logs are swapped, or the change was undone", after, before)
	case !r.After.From.After(r.Before.Until):
		t.Warningf("the times of %s and %s overlap: want a log before the change and one after it", before, after)
	}
}

// auditFactors returns the factors of the configuration; of a series their means after the change.
func auditFactors(t *terminal.Terminal, c *cli.Context, after *audit.Period) (*config.Factors, error) {
	s := &setup.Setup{}
	if err := s.Configure(t, c); err != nil {
		return nil, err
	}
	file := s.Config.FactorSeriesFile()
	if file == "" {
		return &s.Config.Factors, nil
	}
	series, err := factors.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if series.End().Before(after.Until) {
		t.Warningf("%s ends before the jobs do: the constant factors count from then on", terminal.Printable(file))
	}
	mean := series.MeanFactors(after.From, after.Until.Sub(after.From), &s.Config.Factors)
	return &mean, nil
}

// table returns the result as a row.
func (a *auditReport) table() *report.Table {
	return report.TableOf([]*auditReport{a}, func(row *report.Row, of **auditReport) {
		r := *of
		add := func(key string, v *float64) {
			value := report.Value{}
			if v != nil {
				value = report.Number(*v)
			}
			row.Add(report.Column{Key: key}, value)
		}
		effect := func(name string, e *audit.Effect) {
			change, low, high := &e.Change, &e.Low, &e.High
			if !e.IsKnown() {
				change, low, high = nil, nil, nil
			}
			add(name+"_change", change)
			add(name+"_low", low)
			add(name+"_high", high)
		}
		effect("energy", &r.Energy)
		effect("time", &r.Time)
		effect("placebo", &r.Placebo)
		add("saved_energy_j", r.Saved.EnergyJ)
		add("saved_low_j", r.Saved.LowJ)
		add("saved_high_j", r.Saved.HighJ)
		worth := cmp.Or(r.Saved.Worth, &footprint{})
		add("saved_cost", worth.Cost)
		add("saved_carbon_g", worth.Carbon)
		add("saved_water_l", worth.Water)
		row.Add(report.Column{Key: "kinds"}, report.Count(r.Energy.Kinds))
		row.Add(report.Column{Key: "jobs_before"}, report.Count(r.Before.Runs))
		row.Add(report.Column{Key: "jobs_after"}, report.Count(r.After.Runs))
		row.Add(report.Column{Key: "matched_energy_after_j"}, report.Number(r.After.MatchedJoules))
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
		kind := fmt.Sprintf("%q %q %v %q %q", p.User, record.NameKind(p.Name), gpus, p.GPUModel, p.Partition)
		return audit.Run{Kind: kind, At: p.Ended, Joules: joules, Seconds: seconds, GPUs: gpus}, true
	}
	return audit.Run{}, false
}

// logSums sums the jobs of an accounting log.
type logSums struct {
	by, layout string // of the parts of the period: a day or a month
	groups     map[string]epdapi.UsageSum
	parts      map[string]epdapi.UsageSum
	noGPUs     int
}

// usageOfLog returns the usage of the jobs of --log that ended in the flags' period.
func usageOfLog(t *terminal.Terminal, c *cli.Context, by string) (*epdapi.Usage, error) {
	if by == "workload" || !slices.Contains(record.Groupings, by) {
		return nil, terminal.Usagef("--by %q, want user, account, partition or gpu with --log", by)
	}
	since, until, err := periodOf(c, time.Now())
	if err != nil {
		return nil, err
	}
	s := &setup.Setup{}
	if err := s.Configure(t, c); err != nil {
		return nil, err
	}
	name, layout := c.String("log"), time.DateOnly
	end := until
	if end.IsZero() {
		end = time.Now()
	}
	if mostDays := 62 * 24 * time.Hour; since.IsZero() || end.Sub(since) > mostDays {
		layout = "2006-01"
	}
	sums := &logSums{
		by: by, layout: layout, groups: make(map[string]epdapi.UsageSum), parts: make(map[string]epdapi.UsageSum),
	}
	var tally *joblog.Tally
	err = t.Read(name, func(r io.Reader, name string) (err error) {
		tally, err = joblog.ReadAny(setup.NewProgressReader(c.Context, r, nil), name,
			&joblog.Options{Zone: time.Local, Profiles: s.Config.Profiles()}, func(p *record.HistoryJob) error {
				if !p.Ended.Before(since) && (until.IsZero() || p.Ended.Before(until)) {
					sums.add(p)
				}
				return nil
			})
		return err
	})
	if err != nil {
		return nil, err
	}
	setup.WarnOfLog(t, tally)
	if sums.noGPUs > 0 {
		t.Notef("left out: %s without GPUs", report.Plural(sums.noGPUs, "job"))
	}
	return sums.usage(&epdapi.Usage{
		Since: since, Until: until, By: by, Log: name, Factors: epdapi.NewFactors(&s.Config.Factors),
	}), tally.CheckBad(joblog.MaxBad)
}

func (l *logSums) add(p *record.HistoryJob) {
	seconds, ran := p.RunTime().Get()
	gpus, _ := p.GPUs.Get()
	switch {
	case !ran || seconds <= 0:
		return
	case gpus <= 0:
		l.noGPUs++
		return
	}
	one := epdapi.UsageSum{Jobs: 1, Runs: 1, GPUS: gpus * seconds}
	if joules, known := p.EnergyJ.Get(); known {
		one.EnergyJ, one.EnergyRuns, one.EnergyGPUS = joules, 1, one.GPUS
	}
	for sums, key := range map[*map[string]epdapi.UsageSum]string{
		&l.groups: map[string]string{
			"user": p.User, "account": p.Account, "partition": p.Partition, "gpu": p.GPUModel,
		}[l.by],
		&l.parts: p.Ended.Local().Format(l.layout),
	} {
		sum := (*sums)[key]
		sum.Add(&one)
		sum.Key = key
		(*sums)[key] = sum
	}
}

// usage adds the sums to a usage, as epd does.
func (l *logSums) usage(u *epdapi.Usage) *epdapi.Usage {
	for _, g := range l.groups {
		u.Groups = append(u.Groups, g)
		u.Total.Add(&g)
	}
	slices.SortFunc(u.Groups, func(a, b epdapi.UsageSum) int {
		return cmp.Or(cmp.Compare(b.EnergyJ, a.EnergyJ), cmp.Compare(a.Key, b.Key))
	})
	if n := len(u.Groups) - epdapi.MaxUsageGroups; n > 0 {
		u.OtherCount, u.Others = n, &epdapi.UsageSum{}
		for i := range u.Groups[epdapi.MaxUsageGroups:] {
			u.Others.Add(&u.Groups[epdapi.MaxUsageGroups+i])
		}
		u.Groups = u.Groups[:epdapi.MaxUsageGroups]
	}
	for _, sum := range l.parts {
		from, err := time.ParseInLocation(l.layout, sum.Key, time.Local)
		if err != nil {
			continue // it was formatted so
		}
		until := from.AddDate(0, 0, 1)
		if l.layout != time.DateOnly {
			until = from.AddDate(0, 1, 0)
		}
		sum.Key = ""
		u.Over = append(u.Over, epdapi.UsagePart{From: from, Until: until, UsageSum: sum})
	}
	slices.SortFunc(u.Over, func(a, b epdapi.UsagePart) int { return a.From.Compare(b.From) })
	return u
}
