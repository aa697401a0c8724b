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
)

func optimumCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "optimum",
		Usage:     "the best setting of single workloads",
		ArgsUsage: "FILE.csv",
		Description: "FILE has the columns id, " + strings.Join(symbols(), ", ") +
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
			csvFlag(), jsonFlag(),
		},
		Action: t.runs(runOptimum),
	}
}

// symbols are the coefficients of the model in the paper's notation.
func symbols() []string {
	params := dvfsmodel.ParamList()
	all := make([]string, len(params))
	for i, p := range params {
		all[i] = p.Symbol
	}
	return all
}

// optimumRow is one workload's answer.
type optimumRow struct {
	id       string
	feasible bool
	point    dvfsmodel.Point
	minTime  float64
}

func runOptimum(t *terminal, c *cli.Context) error {
	if err := checkArgs(c, 1, 1, "one file"); err != nil {
		return err
	}
	r, err := dvfsmodel.RangeByName(c.String("range"))
	if err != nil {
		return usagef("--range: %v", err)
	}
	objective, err := dvfsmodel.ObjectiveByName(c.String("objective"))
	if err != nil {
		return usagef("--objective: %v", err)
	}
	objective.TimeWeight += c.Float64("time-price")
	if err := objective.Validate(); err != nil {
		return usagef("--time-price: %v", err)
	}
	var rows []optimumRow
	err = t.read(c.Args().First(), func(in io.Reader, name string) error {
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
	return t.printTable(c, optimumTable(rows))
}

// optima answers each row; an infeasible limit is an answer.
func optima(batch *queue.Batch, r *dvfsmodel.Range, o dvfsmodel.Objective) ([]optimumRow, error) {
	rows := make([]optimumRow, len(batch.Jobs))
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		p := *job.Model
		rows[i] = optimumRow{id: job.ID, minTime: r.MinTime(p)}
		pt, err := r.Optimum(p, o, job.Limit)
		if err != nil && !errors.Is(err, dvfsmodel.ErrInfeasible) {
			return nil, fmt.Errorf("%s: %w", job.Pos, err)
		}
		rows[i].feasible, rows[i].point = err == nil, pt
	}
	return rows, nil
}

// optimumTable is the rows as a table.
func optimumTable(rows []optimumRow) *report.Table {
	return &report.Table{
		Columns: []report.Column{
			{Key: "id", Head: "id", Left: true, Max: 32},
			{Key: "feasible", Head: "feasible"},
			{Key: "v", Head: "V"},
			{Key: "fc", Head: "fc"},
			{Key: "fm", Head: "fm"},
			{Key: "time_s", Head: "time", Unit: report.Seconds},
			{Key: "power_w", Head: "power", Unit: report.Watts},
			{Key: "energy_j", Head: "energy", Unit: report.Joules},
			{Key: "min_time_s", Head: "shortest", Unit: report.Seconds},
		},
		Len: len(rows),
		Rows: func(yield func([]report.Value) bool) {
			for i := range rows {
				if !yield(rows[i].values()) {
					return
				}
			}
		},
	}
}

// values are the cells of a row; an infeasible one has no setting.
func (r *optimumRow) values() []report.Value {
	if !r.feasible {
		return []report.Value{
			report.Text(r.id), report.Count(0), {}, {}, {}, {}, {}, {}, report.Number(r.minTime),
		}
	}
	pt := &r.point
	return []report.Value{
		report.Text(r.id), report.Count(1),
		report.Number(pt.Scaling.V), report.Number(pt.Scaling.Fc), report.Number(pt.Scaling.Fm),
		report.Number(pt.Time), report.Number(pt.Power), report.Number(pt.Energy), report.Number(r.minTime),
	}
}
