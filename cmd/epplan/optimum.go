package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/queue"

	"github.com/epplan/epplan/internal/cli/terminal"
)

func optimumCommand(t *terminal.Terminal) *cli.Command {
	symbols := terminal.TextsOf(dvfsmodel.ParamList(), func(p dvfsmodel.Param) string { return p.Symbol })
	return &cli.Command{
		Name:      "optimum",
		Usage:     "the best setting of single workloads",
		ArgsUsage: "FILE.csv",
		Description: "FILE has the columns id, " + strings.Join(symbols, ", ") +
			" (normalised, watts and seconds) and optionally\n" +
			"limit, the longest run time (inf: none); other columns are ignored. - is standard input.\n" +
			"Example: epplan model optimum --range wide params.csv --csv",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "range", Usage: "scaling `INTERVAL`: wide or narrow", Value: "wide"},
			&cli.StringFlag{
				Name: "objective", Usage: "`GOAL` to minimise: energy, edp, ed2p or time", Value: "energy",
			},
			&cli.Float64Flag{
				Name:  "time-price",
				Usage: "`WATTS`, the joules that a second of run time costs beside its own",
			},
			terminal.CSVFlag(), terminal.JSONFlag(),
		},
		Action: t.Runs(terminal.Takes(1, 1, "one file", runOptimum)),
	}
}

type optimumRow struct {
	id      string
	point   *dvfsmodel.Point // nil: none is fast enough
	minTime float64
}

func runOptimum(t *terminal.Terminal, c *cli.Context) error {
	r, err := dvfsmodel.RangeByName(c.String("range"))
	if err != nil {
		return terminal.Usagef("--range: %v", err)
	}
	objective, err := dvfsmodel.ObjectiveByName(c.String("objective"))
	if err != nil {
		return terminal.Usagef("--objective: %v", err)
	}
	objective.TimeWeight += c.Float64("time-price")
	if err := objective.Validate(); err != nil {
		return terminal.Usagef("--time-price: %v", err)
	}
	var rows []optimumRow
	err = t.Read(c.Args().First(), func(in io.Reader, name string) error {
		batch, err := queue.Read(in, name, queue.Params)
		if err != nil {
			return fmt.Errorf("read parameters: %w", err)
		}
		rows, err = optima(batch, &r, objective)
		return err
	})
	if err != nil {
		return err
	}
	return t.PrintTable(c, optimumTable(rows))
}

// optima answers each row; an infeasible limit is an answer.
func optima(batch *queue.Batch, r *dvfsmodel.Range, o dvfsmodel.Objective) ([]optimumRow, error) {
	rows := make([]optimumRow, len(batch.Jobs))
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		rows[i] = optimumRow{id: job.ID, minTime: r.MinTime(*job.Model)}
		switch pt, err := r.Optimum(*job.Model, o, job.Limit); {
		case err == nil:
			rows[i].point = &pt
		case !errors.Is(err, dvfsmodel.ErrInfeasible):
			return nil, fmt.Errorf("%s: %w", job.Pos, err)
		}
	}
	return rows, nil
}

func optimumTable(rows []optimumRow) *report.Table {
	return report.TableOf(rows, func(row *report.Row, r *optimumRow) {
		feasible, pt := 1, r.point
		number := report.Number[float64]
		if pt == nil {
			feasible, pt = 0, &dvfsmodel.Point{}
			number = func(float64) report.Value { return report.Value{} }
		}
		row.Add(report.Column{Key: "id", Head: "id", Left: true, Max: 32}, report.Text(r.id))
		row.Add(report.Column{Key: "feasible", Head: "feasible"}, report.Count(feasible))
		row.Add(report.Column{Key: "v", Head: "V"}, number(float64(pt.Scaling.V)))
		row.Add(report.Column{Key: "fc", Head: "fc"}, number(pt.Scaling.Fc))
		row.Add(report.Column{Key: "fm", Head: "fm"}, number(pt.Scaling.Fm))
		row.Add(report.Column{Key: "time_s", Head: "time", Unit: report.Seconds}, number(pt.Time))
		row.Add(report.Column{Key: "power_w", Head: "power", Unit: report.Watts}, number(float64(pt.Power)))
		row.Add(report.Column{Key: "energy_j", Head: "energy", Unit: report.Joules},
			number(float64(pt.Energy)))
		row.Add(report.Column{Key: "min_time_s", Head: "shortest", Unit: report.Seconds},
			report.Number(r.minTime))
	})
}
