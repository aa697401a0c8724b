package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/prediction"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/predict"
)

func predictCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "predict",
		Usage: "predict what jobs take from what earlier ones took",
		Description: "Each job of one table is predicted as if it had just been submitted: from jobs of " +
			"both tables that had ended\n" +
			"by then. Tables are CSV with job_id, submit_s, and what is known of user, job_name, gpus, requested_s and the\n" +
			"like; runtime_s, energy_kwh and power_per_gpu_w are learnt from, and wait_s says when a job ended. Between lo\n" +
			"and hi lie 90 % of the true values.\n" +
			"Example: epplan predict --train history.csv --test waiting.csv --target time --csv",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "train", Usage: "`FILE` with jobs to learn from"},
			&cli.StringFlag{Name: "test", Usage: "`FILE` with jobs to predict"},
			&cli.StringFlag{
				Name: "target", Usage: "`WHAT` to predict: time (s), energy (kWh) or power (W per GPU)",
				Value: "time",
			},
			&cli.StringFlag{
				Name: "owner", Usage: "`COLUMN` of who a job belongs to", DefaultText: "user, vc or task",
			},
			&cli.StringFlag{
				Name: "name", Usage: "`COLUMN` of what a job is called",
				DefaultText: "job_name, model and dataset",
			},
			terminal.RowsFlag("jobs"),
			terminal.CSVFlag(), terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.WithoutArgs(runPredict)),
	}
}

func runPredict(t *terminal.Terminal, c *cli.Context) error {
	if err := prediction.CheckFiles(c); err != nil {
		return err
	}
	target, err := predict.ParseTarget(c.String("target"))
	if err != nil {
		return terminal.Usagef("--target %q, want time, energy or power", c.String("target"))
	}
	return predictHistory(t, c, target)
}

func predictHistory(t *terminal.Terminal, c *cli.Context, target predict.Target) error {
	columns := predict.Columns{Owner: c.String("owner"), Name: c.String("name")}
	train, err := terminal.ParseFile(
		t,
		c.String("train"),
		func(r io.Reader, name string) (*predict.Table, error) {
			return predict.ReadTable(r, name, columns, nil)
		},
	)
	if err != nil {
		return err
	}
	test, err := terminal.ParseFile(
		t,
		c.String("test"),
		func(r io.Reader, name string) (*predict.Table, error) {
			return predict.ReadTable(r, name, columns, &train.Layout)
		},
	)
	if err != nil {
		return err
	}
	if train.Measured(target) == 0 {
		return fmt.Errorf("%s: no job has a value above 0 in column %s", train.Name, target.Column())
	}
	predictions, err := predict.Replay(c.Context, target, train, test, nil)
	if err != nil {
		return err
	}
	p := &prediction.Set{Target: target, Predictions: predictions, Truths: make([]float64, len(test.Jobs))}
	for i := range test.Jobs {
		p.IDs = append(p.IDs, test.Jobs[i].ID)
		p.Truths[i] = test.Outcomes[i].ValueOf(target)
	}
	return prediction.Print(t, c, p)
}
