package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func jobCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "job",
		Usage:     "everything that is known of a job",
		ArgsUsage: "ID",
		Description: "What it asked for, what was decided and why, and what each of its runs took, beside what was predicted.\n" +
			"A run is one job on one node. A task of an array may be named as squeue and sacct\n" +
			"show it, 4_3, or by its own number, as sacct -o JobIDRaw shows it.\n" +
			"--line is for job scripts: one line on the clocks, within a second; without an answer it prints nothing, and\n" +
			"the exit status is 0.\n" +
			"Example: epplan job 4711",
		Flags: []cli.Flag{
			terminal.BoolFlag("line", "print one line, or nothing"), anySocketFlag(publicFirst), terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.WithArgs(1, 1, "a job's number", runJob)),
	}
}

// lineTimeout is how long the end of a job may wait for its line.
const lineTimeout = 900 * time.Millisecond

func runJob(t *terminal.Terminal, c *cli.Context) error {
	if c.Bool("line") {
		if c.Bool("json") {
			return terminal.Usagef("--line and --json are both given, want one")
		}
		return printJobLine(t, c)
	}
	job, err := jobView(c, c.Args().First())
	if err != nil {
		return err
	}
	return terminal.PrintAnswer(t, c, job, jobText)
}

// printJobLine prints the job's line, and nothing if epd has none: the job that asks must not notice.
func printJobLine(t *terminal.Terminal, c *cli.Context) error {
	ctx, cancel := context.WithTimeout(c.Context, lineTimeout)
	defer cancel()
	c.Context = ctx
	job, err := jobView(c, c.Args().First())
	if err != nil {
		if _, misused := errors.AsType[*terminal.UsageError](err); misused {
			return err
		}
		return nil
	}
	if line := view.JobLine(job); line != "" {
		_ = t.PrintText(line + "\n") // a full disk is the job's own trouble
	}
	return nil
}

func jobView(c *cli.Context, text string) (*epdapi.JobView, error) {
	ref, err := slurm.ParseJobRef(text)
	if err == nil && (ref.Step != "" || ref.Het || ref.Array && ref.Task < 0) {
		err = fmt.Errorf("%q is not a job: want a number, or a task of an array such as 4_3", text)
	}
	if err != nil {
		return nil, &terminal.UsageError{Msg: err.Error()}
	}
	job, err := ask(c, publicFirst, func(epd *epdapi.Client, ctx context.Context) (*epdapi.JobView, error) {
		return epd.Job(ctx, text)
	})
	if hasStatus(err, http.StatusNotFound) && ref.Array {
		return nil, terminal.WithHint(
			fmt.Errorf("job %s isn't known", text),
			fmt.Sprintf(
				"epd sees new tasks within some seconds: try again. Tasks without GPUs aren't known; one that ended before epd recorded tasks is known by its own number: "+
					"sacct -X -n -j %s -o JobIDRaw",
				text,
			),
		)
	}
	if hasStatus(err, http.StatusNotFound) {
		return nil, terminal.WithHint(
			fmt.Errorf("job %d isn't known", ref.Job),
			"epd sees a new job within some seconds: try again. Jobs without GPUs, and those that ended before epd "+
				"was there, aren't known; users see only their own",
		)
	}
	return job, err
}

func jobText(v *epdapi.JobView) string {
	var b strings.Builder
	b.WriteString(view.Job(v).Text())
	for i := range v.Decisions {
		d := &v.Decisions[i]
		fmt.Fprintf(&b, "\nDecided for %s at %s\n", terminal.OrDash(d.Node), view.DateTime(d.Created))
		b.WriteString(view.Decision(d).Text("  "))
	}
	if len(v.Decisions) == 0 {
		b.WriteString("\n" + terminal.Printable(v.UndecidedWords()) + "\n")
	}
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		writeRun(&b, o, v.DecisionOf(o))
	}
	return b.String()
}

// writeRun is what a run came to, beside what was predicted.
func writeRun(b *strings.Builder, o *epdapi.Outcome, d *epdapi.Decision) {
	fmt.Fprintf(b, "\nRan on %s with %s of %s, from %s to %s: %s\n", terminal.OrDash(o.Node),
		report.Plural(len(o.GPUs), "GPU"), terminal.OrDash(o.GPUModel),
		view.DateTime(o.Started), view.DateTime(o.Ended), terminal.OrDash(o.ExitState))
	if o.Unmatched {
		b.WriteString("  its start wasn't seen, so that nothing was measured\n")
		return
	}
	var seconds, energy live.Number
	if d != nil {
		seconds, energy = d.TimeS.Value, d.EnergyJ.Value
	}
	report.WriteRow(b, "  locked", "%s", slurm.Printable(o.LockedWords(), 800))
	if s, ok := o.TimeS.Get(); ok {
		report.WriteRow(b, "  time", "%s%s", report.FormatSeconds(s),
			againstPredicted(s, seconds, report.FormatSeconds))
	} else if s, ok := o.Restarted.TimeS.Get(); ok {
		report.WriteRow(b, "  time", "%s, %s: in no model and no saving", report.FormatSeconds(s),
			o.Restarted.Why())
	}
	if e, ok := o.GPUEnergyJ.Get(); ok {
		report.WriteRow(
			b,
			"  energy",
			"%s%s by %s",
			joulesText(o.GPUEnergyJ),
			againstPredicted(e, energy, report.FormatJoules[float64]),
			cmp.Or(o.GPUSource.Words(), "unknown means"),
		)
	} else if _, ok := o.Restarted.GPUEnergyJ.Get(); ok {
		report.WriteRow(b, "  energy", "%s by %s", joulesText(o.Restarted.GPUEnergyJ),
			o.EnergySource().Words())
	}
	if _, ok := o.NodeEnergyJ.Get(); ok {
		report.WriteRow(b, "  node", "%s by %s", joulesText(o.NodeEnergyJ),
			cmp.Or(o.NodeSource.Words(), "unknown means"))
	}
	if w, ok := o.MeanPowerW.Get(); ok {
		report.WriteRow(b, "  power", "%s, at most %s%s", report.FormatWatts(w),
			report.FormatWatts(o.PeakPowerW.Or(w)), o.LimitWords())
	}
	if !o.Implausible.IsZero() {
		report.WriteRow(b, "  set aside", "%s: it can't be, and counts nowhere",
			slurm.Printable(o.Implausible.Why, 400))
	}
	writeUse(b, o)
}

// minShownShare is the part of a run below which a clock that it was stepped to isn't
// shown.
const minShownShare = 0.01

func writeUse(b *strings.Builder, o *epdapi.Outcome) {
	for _, share := range longestClocks(o.Clocks) {
		report.WriteRow(b, "  ran at", "%s for %s", share.Words(), report.FormatSeconds(share.Seconds))
	}
	for _, s := range o.Stays {
		if share := s.Seconds / o.TimeS.Or(0); share >= minShownShare {
			report.WriteRow(b, "  adapted", "core %.0f MHz for %s, %s; at work there for %s at most",
				float64(s.Core),
				report.FormatSeconds(s.Seconds), report.FormatJoules(s.Energy), report.FormatSeconds(s.Work))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(o.ThrottledS)) {
		report.WriteRow(b, "  throttled", "%s for %s", terminal.Printable(reason),
			report.FormatSeconds(o.ThrottledS[reason]))
	}
	if m, ok := o.PeakMemoryBytes.Get(); ok {
		const gib = 1 << 30
		report.WriteRow(b, "  memory", "at most %.1f GiB of a GPU", m/gib)
	}
	if u, ok := o.Utilisation.Get(); ok {
		report.WriteRow(b, "  used", "%s of the time", report.FormatPercent(u))
	}
	if line, step := sparkline(&o.Series); utf8.RuneCountInString(line) > 1 {
		report.WriteRow(b, "", "%s", line)
		report.WriteRow(b, "", "%s", "each for "+report.FormatSeconds(step))
	}
}

func longestClocks(all []live.Residency) []live.Residency {
	const most = 3
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b live.Residency) int {
		return cmp.Compare(b.Seconds, a.Seconds)
	})
	return sorted[:min(len(sorted), most)]
}

// sparkline draws a series in at most 64 characters, and says for how long each
// stands. A gap is a space.
func sparkline(s *epdapi.Series) (line string, step float64) {
	const most = 64
	bars := []rune("▁▂▃▄▅▆▇█")
	n := len(s.Values)
	if n == 0 {
		return "", 0
	}
	each := (n + most - 1) / most
	var b strings.Builder
	for part := range slices.Chunk(s.Values, each) {
		sum, known := 0.0, 0
		for _, v := range part {
			if x, ok := v.Get(); ok {
				sum, known = sum+x, known+1
			}
		}
		if known == 0 {
			b.WriteByte(' ')
			continue
		}
		at := int(sum / float64(known) * float64(len(bars)))
		b.WriteRune(bars[min(max(at, 0), len(bars)-1)])
	}
	return b.String(), float64(each) * s.IntervalS
}

func againstPredicted(measured float64, predicted live.Number, format func(float64) string) string {
	p, ok := predicted.Get()
	if !ok || p <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s predicted, %+.1f %%)", format(p), 100*(measured/p-1))
}

func joulesText(n live.Number) string {
	e, ok := n.Get()
	if !ok {
		return "–"
	}
	return report.FormatJoules(e)
}
