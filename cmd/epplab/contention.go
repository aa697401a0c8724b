package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/contention"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

func fitContentionCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "contention",
		Usage:     "fit what sharing a GPU costs in time to measured slowdowns",
		ArgsUsage: "FILE.csv",
		Description: "FILE has a line for each time that tasks shared a GPU: slowdown (times as long as " +
			"alone at the same clocks),\n" +
			"tasks (how many), load_pct (the sum of their utilisations alone, per cent, by slot, with spaces between) and\n" +
			"memory (the part of the GPU's that they took, 0 to 1). The curve is for --contention of consolidate, plan\n" +
			"and compare, and for contention in [cluster.sharing] of a cluster. Few lines move it part of the way only from\n" +
			"what is taken otherwise: a slot with 140 % of work takes 1.4 slots.\n" +
			"Example: epplab contention coruns.csv -o contention.json",
		Flags:  []cli.Flag{terminal.OutputFlag()},
		Action: t.Runs(terminal.WithArgs(1, 1, "one file", runFitContention)),
	}
}

// fittedCurve is a curve of contention in its file, as sharing.ReadCurve reads it.
type fittedCurve struct {
	Exponent float64 `json:"exponent"`
	ByTask   float64 `json:"by_task"`
	ByMemory float64 `json:"by_memory"`
	Samples  int     `json:"samples"`
	Outliers int     `json:"outliers"`
	Residual float64 `json:"residual"`
}

func runFitContention(t *terminal.Terminal, c *cli.Context) error {
	samples, err := terminal.ParseFile(t, c.Args().First(), trace.ReadCoRuns)
	if err != nil {
		return err
	}
	fit, err := contention.FitCurve(samples)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), err)
	}
	err = t.Write(c.String("out"), func(w io.Writer) error {
		return report.WriteJSON(w, fittedCurve{
			fit.Exponent, fit.ByTask, fit.ByMemory, fit.Samples, fit.Outliers, fit.Residual,
		}, "  ")
	})
	if err != nil {
		return err
	}
	t.Notef("%s, %d of them far off; the others are typically within %.1f %% of the curve",
		report.Plural(fit.Samples, "sample"), fit.Outliers, 100*fit.Residual)
	return nil
}

// fittedContention has a consolidation count what sharing costs by a fitted curve.
func fittedContention(t *terminal.Terminal, c *cli.Context, r *consolidation) error {
	name := c.String("contention")
	if name == "" {
		return nil
	}
	if r.problem == share.AsPrinted {
		return terminal.Usagef(
			"--contention and --problem as-printed are both given: the printed problem knows no " +
				"contention, want one",
		)
	}
	var err error
	r.instance.Contention, err = terminal.ParseFile(t, name, sharing.ReadCurve)
	return err
}
