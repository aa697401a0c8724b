package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/prediction"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
)

func predictCodeCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "predict",
		Usage: "predict what jobs take from their source code",
		Description: "Tables are CSV with job_id, file, and to learn from time_a_s or energy_a_kwh for GPU type a. Between lo\n" +
			"and hi lie 90 % of the true values; ood says whether a source is unlike all that was learnt from.\n" +
			"Example: epplab predict --train programs.csv --test others.csv --code code",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "train", Usage: "`FILE` with jobs to learn from"},
			&cli.StringFlag{Name: "test", Usage: "`FILE` with jobs to predict"},
			&cli.StringFlag{
				Name:  "target",
				Usage: "`WHAT` to predict: time (s) or energy (kWh)",
				Value: "time",
			},
			&cli.StringFlag{Name: "code", Usage: "`FOLDER` that the column file of --train is relative to"},
			&cli.StringFlag{
				Name: "code-test", Usage: "`FOLDER` that the column file of --test is relative to",
				DefaultText: "that of --code",
			},
			&cli.StringFlag{Name: "gpu-type", Usage: "`TYPE` of GPU to predict for, with --code", Value: "a"},
			&cli.StringFlag{
				Name: "probe", Usage: "`KIND` of probe: linear or mlp", Value: string(probe.Linear),
			},
			&cli.StringFlag{
				Name:        "embeddings",
				Usage:       "`URL` of an embedding server, such as http://localhost:8080/v1/embeddings",
				DefaultText: "the built-in embedding",
			},
			&cli.StringSliceFlag{Name: "allow-host", Usage: "`HOST` that source code may be sent to"},
			&cli.StringFlag{Name: "embedding-model", Usage: "`MODEL` that the server is asked for"},
			&cli.StringFlag{Name: "embedding-key", Usage: "`FILE` with the server's key"},
			&cli.StringFlag{
				Name:  "embedding-cache",
				Usage: "`FOLDER` that keeps embeddings, by the hash of what was sent",
			},
			&cli.DurationFlag{
				Name: "embedding-timeout", Usage: "`TIME` that an answer may take", Value: 20 * time.Second,
			},
			&cli.StringFlag{
				Name: "align", Usage: "`URL` of a chat-completion server that rewrites sources unlike any " +
					"learnt from", DefaultText: "none is asked",
			},
			&cli.StringFlag{Name: "align-model", Usage: "`MODEL` that it is asked for"},
			&cli.StringFlag{Name: "align-key", Usage: "`FILE` with its key"},
			&cli.IntFlag{Name: "align-rounds", Usage: "`COUNT` of rewrites of a source at most", Value: 3},
			&cli.DurationFlag{
				Name: "align-timeout", Usage: "`TIME` that a rewrite may take", Value: 40 * time.Second,
			},
			terminal.RowsFlag("jobs"),
			terminal.CSVFlag(),
			terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.WithoutArgs(runPredictCode)),
	}
}

func runPredictCode(t *terminal.Terminal, c *cli.Context) error {
	if err := prediction.CheckFiles(c); err != nil {
		return err
	}
	if c.String("code") == "" {
		return terminal.Usagef("no --code, want the folder that the column file of --train is relative to")
	}
	target, err := predict.ParseTarget(c.String("target"))
	if err != nil {
		return terminal.Usagef("--target %q, want time or energy", c.String("target"))
	}
	return predictCode(t, c, target)
}
