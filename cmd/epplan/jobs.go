package main

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
)

func jobsCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "jobs",
		Usage: "jobs with GPUs: clocks, time and energy",
		Description: "The last that started come first. Users see their own; root, Slurm's user and " +
			"operators see everybody's.\n" +
			"Core and memory are the clocks that its runs had, or are to have where no agent told of any yet.\n" +
			"A job's arm is treated (clocks chosen), held-out (default clocks at random, for comparison),\n" +
			"constant (the constant clocks of its GPU model, by the same lot) or excluded.\n" +
			"Example: epplan jobs --state COMPLETED --limit 20",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "user", Usage: "`NAME` of the user"},
			&cli.StringFlag{Name: "account", Usage: "`NAME` of the account"},
			&cli.StringFlag{Name: "partition", Usage: "`NAME` of the partition"},
			&cli.StringFlag{Name: "state", Usage: "`STATE` in Slurm's words, such as RUNNING or TIMEOUT"},
			&cli.StringFlag{Name: "workload", Usage: "`KEY` of a workload, as epplan job shows it"},
			terminal.Between(&cli.IntFlag{
				Name: "limit", Usage: "`COUNT` of jobs, at most 1000", Value: report.DefaultRows,
			}, 1, 1000),
			&cli.Uint64Flag{
				Name: "before", Usage: "`PLACE` to go on from, as the end of a list says",
				DefaultText: "the newest",
			},
			anySocketFlag(publicFirst), terminal.JSONFlag(), terminal.CSVFlag(),
		},
		Action: t.Runs(terminal.WithoutArgs(runJobs)),
	}
}

func runJobs(t *terminal.Terminal, c *cli.Context) error {
	query := url.Values{"limit": {strconv.Itoa(c.Int("limit"))}}
	for _, key := range []string{"user", "account", "partition", "state", "workload"} {
		if text := c.String(key); text != "" {
			query.Set(key, text)
		}
	}
	if before := c.Uint64("before"); before > 0 {
		query.Set("before", strconv.FormatUint(before, 10))
	}
	page, err := ask(c, publicFirst, func(epd *epdapi.Client, ctx context.Context) (*epdapi.JobPage, error) {
		return epd.Jobs(ctx, query)
	})
	if err != nil {
		return err
	}
	if page.Next > 0 && !c.Bool("json") {
		t.Message("note", "there may be more: --before "+strconv.FormatInt(page.Next, 10))
	}
	if c.Bool("json") {
		return t.PrintJSON(page)
	}
	if len(page.Jobs) == 0 && !c.Bool("csv") {
		t.Message("note", "no such job is known")
		return nil
	}
	if !c.Bool("csv") {
		warnRestarted(t, page.Jobs)
	}
	return t.PrintTable(c, jobTable(page.Jobs))
}

// warnRestarted says of which jobs time and energy are shown that count nowhere.
func warnRestarted(t *terminal.Terminal, jobs []epdapi.JobRow) {
	var ids []string
	for i := range jobs {
		if !jobs[i].Restarted.IsZero() {
			ids = append(ids, strconv.FormatInt(jobs[i].ID, 10))
		}
	}
	if len(ids) > 0 {
		t.Message("note", "epd was restarted while these ran, they were suspended, or their Epilogs late: "+
			"their time and energy count in no model and no saving: "+strings.Join(ids, ", "))
	}
}

func jobTable(jobs []epdapi.JobRow) *report.Table {
	number := func(x float64, known bool) report.Value {
		if !known {
			return report.Value{}
		}
		return report.Number(x)
	}
	capped := slices.ContainsFunc(jobs, func(j epdapi.JobRow) bool { return j.IsCapped() })
	return report.TableOf(jobs, func(row *report.Row, j *epdapi.JobRow) {
		timeS, energyJ := j.TimeAndEnergy()
		submitted := ""
		if !j.Submitted.IsZero() {
			submitted = j.Submitted.Local().Format(time.DateTime)
		}
		row.Add(report.Column{Key: "job_id", Head: "job"}, report.Text(strconv.FormatInt(j.ID, 10)))
		row.Add(report.Column{Key: "array_id", Head: "task"}, report.NonEmpty(j.ArrayID))
		row.Add(report.Column{Key: "user", Head: "user", Left: true, Max: 16}, report.NonEmpty(j.User))
		row.Add(report.Column{Key: "partition", Head: "partition", Left: true, Max: 16},
			report.NonEmpty(j.Partition))
		row.Add(report.Column{Key: "name", Head: "name", Left: true, Max: 20}, report.NonEmpty(j.Name))
		row.Add(report.Column{Key: "state", Head: "state", Left: true, Max: 16}, report.NonEmpty(j.State))
		row.Add(report.Column{Key: "workload", Head: "workload", Left: true, Max: 12},
			report.NonEmpty(j.Workload))
		row.Add(report.Column{Key: "gpus", Head: "GPUs"}, report.Count(j.GPUs))
		row.Add(report.Column{Key: "mode", Head: "mode", Left: true}, report.NonEmpty(j.Mode))
		row.Add(report.Column{Key: "arm", Head: "arm", Left: true}, report.NonEmpty(string(j.Arm)))
		row.Add(report.Column{Key: "core_mhz", Head: "core", Note: "MHz"},
			ranAtValue(j, func(s dvfsmodel.Setting) dvfsmodel.MHz { return s.Core }))
		row.Add(report.Column{Key: "mem_mhz", Head: "memory", Note: "MHz"},
			ranAtValue(j, func(s dvfsmodel.Setting) dvfsmodel.MHz { return s.Mem }))
		if capped {
			row.Add(report.Column{Key: "cap_w", Head: "cap", Note: "W"},
				ranAtValue(j, func(s dvfsmodel.Setting) dvfsmodel.Watt { return s.Cap }))
		}
		row.Add(report.Column{Key: "time_s"}, number(j.TimeS.Get()))
		row.Add(report.Column{Key: "energy_j"}, number(j.EnergyJ.Get()))
		row.Add(report.Column{Head: "time", Unit: report.Seconds}, number(timeS.Get()))
		row.Add(report.Column{Head: "energy", Unit: report.Joules}, number(energyJ.Get()))
		row.Add(report.Column{Key: "submitted", Head: "submitted", Left: true}, report.NonEmpty(submitted))
		row.Add(report.Column{Key: "restarted_time_s"}, number(j.Restarted.TimeS.Get()))
		row.Add(report.Column{Key: "restarted_energy_j"}, number(j.Restarted.GPUEnergyJ.Get()))
	})
}

// ranAtValue returns a clock or a power limit that a job's runs had; missing: the default one. Where
// they had several it is all of them, with a stroke between.
func ranAtValue[T ~float64](j *epdapi.JobRow, of func(dvfsmodel.Setting) T) report.Value {
	var all []T
	for _, s := range j.Settings() {
		if x := of(s); !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	switch {
	case len(all) == 1 && all[0] == 0:
		return report.Value{}
	case len(all) == 1:
		return report.Number(all[0])
	}
	return report.Text(strings.Join(terminal.TextsOf(all, func(x T) string {
		if x == 0 {
			return "default"
		}
		return terminal.TrimZeros(float64(x))
	}), "/"))
}
