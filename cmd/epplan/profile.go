package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/live"
)

func profileCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "profile",
		Usage:     "how workloads use a GPU over time when they have it to themselves",
		ArgsUsage: "[WORKLOAD]",
		Description: "Without a workload it lists those that ran last, at most 200. epplan job shows a workload's key.\n" +
			"A profile is learnt from the last 8 runs that had their GPUs to themselves. Intervals are 90 % prediction\n" +
			"intervals. A workload without a profile is never taken to fit beside another.\n" +
			"For root, Slurm's user and operators.\n" +
			"Example: epplan profile",
		Flags: []cli.Flag{
			anySocketFlag(publicFirst), terminal.JSONFlag(), terminal.CSVFlag(),
		},
		Action: t.Runs(terminal.WithArgs(0, 1, "a workload at most", runProfile)),
	}
}

func runProfile(t *terminal.Terminal, c *cli.Context) error {
	workload := c.Args().First()
	if workload != "" && c.Bool("csv") {
		return terminal.Usagef("--csv is for the list, want --json with a workload")
	}
	list, err := ask(c, publicFirst,
		func(epd *epdapi.Client, ctx context.Context) (*epdapi.ProfileList, error) {
			return epd.Profiles(ctx, workload)
		})
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return t.PrintJSON(list)
	case len(list.Profiles) == 0 && workload != "":
		return fmt.Errorf("no run of workload %s has a profile", terminal.Printable(workload))
	case len(list.Profiles) == 0 && !c.Bool("csv"):
		t.Message("note", "no run has a profile yet")
		return nil
	case workload == "":
		return t.PrintTable(c, profileTable(list.Profiles))
	}
	var b strings.Builder
	for i := range list.Profiles {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeProfile(&b, &list.Profiles[i])
	}
	return t.PrintText(b.String())
}

func profileTable(list []epdapi.WorkloadProfile) *report.Table {
	return report.TableOf(list, func(row *report.Row, p *epdapi.WorkloadProfile) {
		known := func(x float64) report.Value {
			if p.Runs == 0 {
				return report.Value{}
			}
			return report.Number(x)
		}
		row.Add(report.Column{Key: "workload", Head: "workload", Left: true, Max: 28},
			report.Text(p.Workload))
		row.Add(report.Column{Key: "job_name", Head: "last job", Left: true, Max: 20},
			report.NonEmpty(p.LastJob.Name))
		row.Add(report.Column{Key: "user", Head: "user", Left: true, Max: 16},
			report.NonEmpty(p.LastJob.User))
		row.Add(report.Column{Key: "gpu_model", Head: "GPU model", Left: true, Max: 16},
			report.Text(p.GPUModel))
		row.Add(report.Column{Key: "runs", Head: "runs"}, report.Count(p.Runs))
		row.Add(report.Column{Key: "time_s", Head: "time", Unit: report.Seconds}, known(p.TimeS.Mean))
		row.Add(report.Column{Key: "utilisation", Head: "used", Unit: report.Fraction},
			known(average(p.Mean)))
		row.Add(report.Column{Key: "peak_memory_gib", Head: "memory", Note: "GiB"},
			known(p.PeakMem.Mean/bytesPerGiB))
		row.Add(report.Column{Head: "use over its run", Left: true},
			report.Text(profileLine(p.Mean, listedPoints)))
		row.Add(report.Column{Key: "unknown", Head: "not known, for", Left: true, Max: 60},
			report.Text(p.Unknown))
	})
}

// listedPoints is how many characters of a list a series takes.
const listedPoints = 16

func writeProfile(b *strings.Builder, p *epdapi.WorkloadProfile) {
	fmt.Fprintf(b, "Workload %s on %s\n", terminal.Printable(p.Workload), terminal.OrDash(p.GPUModel))
	if p.LastJob.ID != 0 {
		report.WriteRow(b, "  last job", "%s", terminal.Printable(p.LastJob.WordsOf(p.Workload)))
	}
	report.WriteRow(b, "  rests on", "%s that had their GPUs alone; recorded: %d alone, %d beside others",
		report.Plural(p.Runs, "run"), p.Alone, p.Shared)
	if p.Unknown != "" {
		report.WriteRow(b, "  not known", "%s", terminal.Printable(p.Unknown))
	}
	if p.Runs == 0 {
		return
	}
	report.WriteRow(b, "  time", "%s at default clocks%s", report.FormatSeconds(p.TimeS.Mean),
		intervalText(&p.TimeS, report.FormatSeconds))
	inGiB := func(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/bytesPerGiB) }
	report.WriteRow(b, "  memory", "%s of %s%s", inGiB(p.PeakMem.Mean), inGiB(float64(p.MemTotal)),
		intervalText(&p.PeakMem, inGiB))
	report.WriteRow(b, "  used", "%s of the time", report.FormatPercent(average(p.Mean)))
	for _, part := range []struct {
		head   string
		values []float64
	}{{"  at most", p.High}, {"  mean", p.Mean}, {"  at least", p.Low}} {
		if line := profileLine(part.values, colocate.Slots); line != "" {
			report.WriteRow(b, part.head, "%s", line)
		}
	}
	report.WriteRow(b, "", "each for %s", report.FormatSeconds(p.TimeS.Mean/colocate.Slots))
	for _, phase := range p.Phases {
		report.WriteRow(b, "  phase", "%s to %s: %s", report.FormatPercent(phase.From),
			report.FormatPercent(phase.To), report.FormatPercent(phase.Utilisation))
	}
}

// intervalText returns an interval as text; empty where there is none.
func intervalText(v *colocate.Interval, format func(float64) string) string {
	low, known := v.Low.Get()
	if !known {
		return ""
	}
	return fmt.Sprintf(", the next run %s to %s", format(low), format(v.High.Or(low)))
}

func profileLine(values []float64, points int) string {
	var s epdapi.Series
	for part := range slices.Chunk(values, max(1, (len(values)+points-1)/points)) {
		s.Values = append(s.Values, live.Known(average(part)))
	}
	line, _ := sparkline(&s)
	return line
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

const bytesPerGiB = 1 << 30
