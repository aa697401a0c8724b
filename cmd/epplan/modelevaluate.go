package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/report/fitreport"

	"github.com/epplan/epplan/internal/cli/inputs"
	"github.com/epplan/epplan/internal/cli/terminal"
)

const (
	leaveOneOut   = "leave-one-workload-out"
	defaultProbes = 3
)

func evaluateCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "evaluate",
		Usage:     "what clocks chosen from a few measured settings and other workloads would cost",
		ArgsUsage: "FILE.csv",
		Description: "FILE is as for model fit: a line for each application and setting. Each application in turn is left out:\n" +
			"what the others have in common is learnt, --probes settings of it are measured, each where most is to be\n" +
			"learnt, and a setting is chosen. The regret is its measured energy there above the least measured, in percent;\n" +
			"errors are those at settings that weren't probed, in percent, and missing where there are none or nothing was\n" +
			"probed.\n" +
			"Example: epplan model evaluate measured.csv --leave-one-workload-out --probes 3",
		Flags: append(inputs.TableFlags("measurements"),
			terminal.BoolFlag(leaveOneOut, "leave each workload out in turn; there is no other way yet"),
			terminal.AtLeast(&cli.IntFlag{
				Name: "probes", Usage: "`COUNT` of settings that are measured of a left-out workload",
				Value: defaultProbes,
			}, 0),
			&cli.StringFlag{
				Name:  "gpu-model",
				Usage: "GPU `MODEL` that was measured: clocks that aren't set are its default ones",
			},
			inputs.ProfilesFlag(),
			inputs.SlowdownFlag("choose among settings this `PART` slower than the fastest at most"),
			terminal.JSONFlag(), terminal.CSVFlag(),
		),
		Action: t.Runs(terminal.Takes(1, 1, "one file", runEvaluatePrior)),
	}
}

func runEvaluatePrior(t *terminal.Terminal, c *cli.Context) error {
	if !c.Bool(leaveOneOut) {
		return terminal.Usagef("want --%s: a prior is judged by workloads that it didn't see", leaveOneOut)
	}
	probes := c.Int("probes")
	slowdown, err := inputs.SlowdownOf(c)
	if err != nil {
		return err
	}
	profiles, err := inputs.ReadProfiles(t, c.String("profiles"))
	if err != nil {
		return err
	}
	apps, err := inputs.ReadMeasurements(t, c)
	if err != nil {
		return err
	}
	opts := &pooled.EvaluateOptions{Slowdown: slowdown}
	if name := c.String("gpu-model"); name != "" {
		profile, err := profiles.Lookup(name)
		if err == nil {
			err = profile.CheckUnits(apps)
		}
		if err != nil {
			return err
		}
		opts.Base = profile.Default
	}
	reports, err := pooled.EvaluateWith(apps, probes, opts)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), err)
	}
	result := reports[probes]
	if c.Bool("json") {
		return t.PrintJSON(fitreport.Rounded(result))
	}
	return t.PrintTable(c, fitreport.LeftOut(&result))
}
