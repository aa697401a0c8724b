package setup

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// PlanningFlags returns the flags of commands that plan a batch by one policy.
func PlanningFlags() []cli.Flag {
	return append(ProblemFlags(),
		&cli.IntFlag{Name: "gpus-per-node", Usage: "`COUNT` of pairs on a node of --cluster paper", Value: 1},
		&cli.StringFlag{
			Name: "policy", Aliases: []string{"p"}, DefaultText: "the best one",
			Usage: "`POLICY`: NAME[:THETA][,KEY=VALUE]…; epplan compare --help lists them",
		},
		&cli.Float64Flag{Name: "theta", DefaultText: "1", Usage: "`PART` of its optimal time to which " +
			"θ-readjustment may shorten a job"},
		&cli.Float64Flag{Name: "pace", DefaultText: "1", Usage: "`FACTOR` over EASY at default clocks that the " +
			"mean turnaround of an online plan may take, up to max_turnaround; a job with a deadline only has " +
			"to meet it"},
		&cli.Float64Flag{Name: "effort", DefaultText: "1", Usage: "`FACTOR` of the usual search for a " +
			"better plan: 5 searches five times as long"},
		&cli.Float64Flag{Name: "rho", DefaultText: "2", Usage: "`SLOTS` (seconds without slots) that an " +
			"idle node waits before it is switched off"},
	)
}

// ProblemFlags returns the flags that say what is planned.
func ProblemFlags() []cli.Flag {
	return append(slices.Concat(TableFlags("batches"),
		RuntimeFlags("GPU `MODEL` on which the batch's run times and powers were measured, if it doesn't "+
			"say; *: the same on all models")),
		&cli.StringFlag{
			Name: "format", Usage: "`FORMAT` of the batch: auto, csv, json or edl", Value: "auto",
		},
		ConfigFlag("TOML `FILE` with cluster, objective, policy and safety margins"),
		&cli.StringFlag{Name: "cluster", Usage: "TOML `FILE` with the cluster, or paper: the EDL paper's"},
		ModelsFlag("TOML `FILE` with fitted workload models; repeat it for more", ""),
		ProfilesFlag(),
		ContentionFlag("the cluster's, or time is shared without loss"),
		&cli.StringFlag{
			Name: "range", DefaultText: "wide",
			Usage: "scaling `INTERVAL` of --cluster paper: wide or narrow",
		},
		&cli.StringFlag{
			Name: "start", DefaultText: "slot online, else continuous",
			Usage: "`RULE` by which queued jobs start: slot or continuous",
		},
		terminal.BoolFlag("clairvoyant", "use all jobs from the start, also those that arrive later"),
		terminal.BoolFlag(priorFlag, "use an average model for jobs without one, and reserve the 95th "+
			"percentile of their run time"),
		terminal.BoolFlag(capsFlag, "also set power caps, of workloads whose models have them on GPU models "+
			"with known limits; without it only if live.cap.mode is chosen"),
		&cli.Float64Flag{
			Name: "stretch", DefaultText: "1.5",
			Usage: "`FACTOR` over first come, first served by which jobs without a deadline end (max_turnaround)",
		},
		SeedFlag(),
	)
}

// RuntimeFlags are about run times on GPU models, and about what is warned of.
func RuntimeFlags(model string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: RuntimeModelFlag, Usage: model},
		&cli.StringFlag{
			Name: SpeedFlag, Usage: "relative `SPEEDS` of GPU models, such as A100=1,H100=2.1: a run time that isn't known on " +
				"one follows from another's",
		},
		&cli.StringFlag{
			Name: warningsFlag, Value: "kinds",
			Usage: "`WHICH` warnings to print: kinds (one line each) or all",
			Action: func(_ *cli.Context, which string) error {
				if which != "kinds" && which != allWarnings {
					return terminal.Usagef("--%s %q, want kinds or %s", warningsFlag, which, allWarnings)
				}
				return nil
			},
		},
	}
}

// priorFlag has jobs without a model planned as others respond.
const priorFlag = "prior"

// capsFlag has power caps among the settings.
const capsFlag = "caps"

// RuntimeModelFlag says on which GPU model run times were measured.
const RuntimeModelFlag = "runtime-gpu-model"

// SpeedFlag says how fast GPU models are beside each other.
const SpeedFlag = "speed"

// warningsFlag says which warnings are printed; allWarnings is one of its values.
const (
	warningsFlag = "warnings"
	allWarnings  = "all"
)

// ConfigFlag names the configuration, or else one that is found.
func ConfigFlag(usage string) cli.Flag {
	return &cli.StringFlag{
		Name: "config", Usage: usage,
		DefaultText: "$EPPLAN_CONFIG, ./epplan.toml, ~/.config/epplan/epplan.toml, /etc/epplan/config.toml",
	}
}
