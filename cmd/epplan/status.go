package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/slurm"
)

func statusCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "what epd is doing: GPUs, locked clocks, runs, decisions",
		Description: "The agent's socket is asked first: on a node with GPUs, its GPUs and runs are shown. " +
			"The controller's mode,\n" +
			"configuration and counts are shown where they are known. Exit status 4: epd can't be reached.\n" +
			"Example: epplan status --json",
		Flags:  []cli.Flag{anySocketFlag(agentFirst), terminal.JSONFlag()},
		Action: t.Runs(terminal.WithoutArgs(runStatus)),
	}
}

func runStatus(t *terminal.Terminal, c *cli.Context) error {
	s, err := ask(c, agentFirst, (*epdapi.Client).Status)
	if err != nil {
		return err
	}
	return terminal.PrintAnswer(t, c, s, statusText)
}

func statusText(s *epdapi.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epd %s, role %s, on %s since %s\n", terminal.Printable(s.Version),
		terminal.Printable(s.Role), terminal.Printable(s.Node), view.DateTime(s.Started))
	for i := range s.GPUs {
		writeGPU(&b, &s.GPUs[i])
	}
	if n := s.Numbering; n != nil && n.Trouble != "" {
		fmt.Fprintf(&b, "no clock is touched here: %s\n", slurm.Printable(n.Trouble, 400))
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		fmt.Fprintf(&b, "job %d  %s  since %s", r.Job, report.Plural(len(r.GPUs), "GPU"),
			view.DateTime(r.Started))
		if r.HandsOff != "" {
			b.WriteString("  default clocks: " + terminal.Printable(r.HandsOff))
		}
		if r.SLA > 0 {
			fmt.Fprintf(&b, "  clock adapted: at most %.2f times as long so far, %.2f allowed",
				r.Slowdown, r.SLA)
		}
		b.WriteByte('\n')
	}
	switch {
	case s.Controller != nil:
		writeController(&b, s.Controller)
	case s.Totals != nil:
		fmt.Fprintf(&b, "since the start: %d decisions, %d outcomes; %d models in use\n", s.Totals.Decisions,
			s.Totals.Outcomes, s.Totals.Models)
	}
	if s.Unrecorded > 0 {
		fmt.Fprintf(&b, "%s to be recorded\n", report.Plural(s.Unrecorded, "outcome waits", "outcomes wait"))
	}
	for _, trouble := range s.Troubles {
		fmt.Fprintf(&b, "%s  %s\n", view.DateTime(trouble.At), slurm.Printable(trouble.Message, 400))
	}
	return b.String()
}

func writeGPU(b *strings.Builder, g *epdapi.GPU) {
	fmt.Fprintf(b, "GPU %d  %s  %s  core %s, memory %s, %s%s", g.Minor, terminal.Printable(g.Model),
		terminal.Printable(g.UUID),
		clockText(g.Core, g.LockedCore), clockText(g.Mem, g.LockedMem), g.PowerText(),
		g.LimitWords()+g.ProfileWords())
	b.WriteString(terminal.Printable(g.ProblemWords()) + "\n")
}

func writeController(b *strings.Builder, s *epdapi.ControllerStatus) {
	fmt.Fprintf(b, "cluster %s: mode %s", terminal.Printable(s.Cluster), terminal.Printable(string(s.Mode)))
	for _, name := range slices.Sorted(maps.Keys(s.Modes)) {
		fmt.Fprintf(b, ", %s in %s", terminal.Printable(string(s.Modes[name])), terminal.Printable(name))
	}
	parts, drawn := report.FormatPercent(s.HoldOut)+" of the jobs held out",
		report.FormatCount(int(s.HeldOut))+" held out"
	if s.ConstantArm > 0 || s.Constant > 0 {
		parts += ", " + report.FormatPercent(s.ConstantArm) + " at constant clocks"
		drawn += ", " + report.FormatCount(int(s.Constant)) + " drawn for constant clocks"
	}
	fmt.Fprintf(b, "; %s; configuration %s\n", parts, terminal.Printable(s.ConfigVersion))
	fmt.Fprintf(b, "since %s: %s, %s with clocks set, %s; %s; %s in use\n", view.DateTime(s.Started),
		report.Plural(int(s.Decisions), "decision"), report.FormatCount(int(s.Applied)), drawn,
		report.Plural(int(s.Outcomes), "outcome"), report.Plural(s.Models, "model"))
	fmt.Fprintf(b, "%sknown now: %s, %s, %s\n", s.NotLockedWords(), report.Plural(s.Jobs, "job"),
		report.Plural(s.Tokens, "submission"),
		report.Plural(s.Decided, "open run"))
	writeForecasts(b, s.Forecasts)
	if s.Retired > 0 {
		fmt.Fprintf(b, "%s out of use: they missed runs\n",
			report.Plural(int(s.Retired), "model taken", "models taken"))
	}
	if s.Unwritten > 0 {
		fmt.Fprintf(b, "%s to be written\n", report.Plural(int(s.Unwritten), "record waits", "records wait"))
	}
	b.WriteString(s.ForeignText())
	for _, warning := range s.ConfigWarnings {
		b.WriteString("configuration: " + slurm.Printable(warning, 400) + "\n")
	}
	for i := range s.Suspected {
		at := &s.Suspected[i]
		fmt.Fprintf(
			b,
			"left alone: %s, as its GPUs (%s) are busy and never above %v MHz without a lock of epd's; say by "+
				"site_clocks in [live] whether the site holds them there\n",
			terminal.Printable(at.Node),
			terminal.Printable(at.GPUModel),
			float64(at.Core),
		)
	}
	for _, line := range s.HookWords() {
		b.WriteString("trouble: " + line + "\n")
	}
	b.WriteString(view.ProblemsText(s))
}

func writeForecasts(b *strings.Builder, s *epdapi.ForecastStatus) {
	if s == nil || !s.Enabled {
		return
	}
	fmt.Fprintf(b, "predictions: learnt from %s", report.Plural(s.Jobs, "ended job"))
	if s.Imported > 0 {
		fmt.Fprintf(b, " (%s imported)", report.FormatCount(s.Imported))
	}
	for i := range s.Scores {
		if one := &s.Scores[i]; one.Rung == "" {
			fmt.Fprintf(b, "; %s of %s within the interval, %s off in the median",
				report.FormatPercent(one.Coverage),
				report.Plural(one.Jobs, terminal.Printable(one.Target), targetPlural(one.Target)),
				report.FormatPercent(one.MedianError))
		}
	}
	b.WriteByte('\n')
}

// targetPlural is several of what is predicted.
func targetPlural(target string) string {
	if target == "energy" {
		return "energies"
	}
	return terminal.Printable(target) + "s"
}

// clockText returns a clock that runs, and what it is locked at.
func clockText(now, locked dvfsmodel.MHz) string {
	text := strconv.FormatFloat(float64(now), 'f', -1, 64)
	if locked > 0 {
		text += " locked at " + strconv.FormatFloat(float64(locked), 'f', -1, 64)
	}
	return text + " MHz"
}
