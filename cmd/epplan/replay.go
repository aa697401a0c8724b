package main

import (
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/replay"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
)

func replayCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "tell what past jobs would have cost by other policies",
		ArgsUsage: "HISTORY",
		Description: "HISTORY is what sacct printed, or a table of jobs as epplan history writes it; - is standard input.\n" +
			"It tells what its jobs would have cost on --cluster by policies of epplan plan, with 90 % intervals over\n" +
			"--draws of how workloads respond to clocks.\n" +
			"With --flex it tells instead what could have been given back at times of each day, the price in turnaround and\n" +
			"energy beside it: the days of a month say what tomorrow may bring.\n" +
			"Example: epplan replay history.csv --cluster cluster.toml --runtime-gpu-model V100",
		Flags: append(historyFlags(),
			&cli.StringSliceFlag{
				Name: "policy", Aliases: []string{"p"}, DefaultText: "baseline,clocks=optimum",
				Usage: "`POLICIES`, separated by commas; repeat it for more",
			},
			&cli.StringFlag{
				Name: "flex", Usage: "tell how much power the queue could have done without at `TIMES` of each day, such as " +
					"08:00,17:00", DefaultText: "not told",
			},
			&cli.StringFlag{Name: "for", Value: "1h", Usage: "`TIMES` for which windows of --flex last"},
			&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` from which the draws follow", Value: 42},
			terminal.JSONFlag(), terminal.CSVFlag(), terminal.HTMLFlag(),
		),
		Action: t.Runs(terminal.WithArgs(1, 1, "a file with past jobs, or - for standard input", replay.Run)),
	}
}

func historyFlags() []cli.Flag {
	return append(
		setup.RuntimeFlags("GPU `MODEL` on which jobs ran that don't name it; *: they take as long on all"),
		&cli.StringFlag{
			Name:  "format",
			Usage: "`FORMAT` of HISTORY: sacct, or jobs for a job table", DefaultText: "by its columns",
			Value: replay.AutoFormat,
		},
		&cli.StringFlag{Name: "cluster", Usage: "TOML `FILE` with the cluster"},
		setup.ModelsFlag("TOML `FILE` with fitted workload models; repeat it for more", ""),
		&cli.StringSliceFlag{
			Name: "workload", Usage: "`NAMES=WORKLOAD`, jobs of such names, * in them is any " +
				"text, are of a workload of --models",
		},
		&cli.StringFlag{Name: "profiles", Usage: "TOML `FILE` with further GPU models"},
		terminal.Between(&cli.IntFlag{
			Name: "draws", Usage: "`COUNT` of draws of how workloads respond to clocks",
			Value: 20,
		}, 3, maxReplayDraws),
		terminal.AtLeast(&cli.IntFlag{
			Name: "learning", Usage: "`COUNT` of jobs of each workload that run at default " +
				"clocks until its response is known", Value: 3,
		}, 0),
		&cli.StringFlag{
			Name: "timezone", Usage: "of sacct's times: `ZONE`, such as Europe/Berlin",
			DefaultText: "this machine's",
		},
		&cli.Float64Flag{
			Name: "scale-cluster", Usage: "multiply the nodes of --cluster by `FACTOR`", Value: 1,
		},
		&cli.BoolFlag{
			Name:  "any-cluster",
			Usage: "replay it on a cluster with fewer GPUs than it had in use at once",
		},
	)
}

// maxReplayDraws is the most draws of how workloads respond.
const maxReplayDraws = 10_000
