package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/queue"
)

func (t *terminal) optimumCommand() *cli.Command {
	return &cli.Command{
		Name:      "optimum",
		Usage:     "the best setting of single workloads",
		ArgsUsage: "FILE.csv",
		Description: "FILE has the columns id, P0, gamma, c, D, delta, t0 (normalised, watts and seconds) and optionally\n" +
			"limit, the longest run time (inf: none); other columns are ignored. - is standard input.\n" +
			"Example: epplan model optimum --range wide params.csv --csv",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "range", Usage: "scaling interval: wide or narrow", Value: "wide"},
			&cli.StringFlag{Name: "objective", Usage: "what to minimise: energy, edp, ed2p or time", Value: "energy"},
			&cli.Float64Flag{Name: "time-price", Usage: "watts that a second of run time costs beside its energy"},
			csvFlag(), jsonFlag(),
		},
		Action: t.optimum,
	}
}

// optimumRow is one workload's answer. A limit that can't be met leaves the
// setting out.
type optimumRow struct {
	ID       string  `json:"id"`
	Feasible int     `json:"feasible"`
	V        float64 `json:"v,omitempty"`
	Fc       float64 `json:"fc,omitempty"`
	Fm       float64 `json:"fm,omitempty"`
	Time     float64 `json:"time_s,omitempty"`
	Power    float64 `json:"power_w,omitempty"`
	Energy   float64 `json:"energy_j,omitempty"`
	MinTime  float64 `json:"min_time_s"`
}

func (t *terminal) optimum(c *cli.Context) error {
	if err := arguments(c, 1, 1, "one file"); err != nil {
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
	return t.print(func(w io.Writer) error { return writeOptima(w, rows, c.Bool("json"), c.Bool("csv")) })
}

// optima answers each row; an infeasible limit is an answer.
func optima(batch *queue.Batch, r *dvfsmodel.Range, o dvfsmodel.Objective) ([]optimumRow, error) {
	rows := make([]optimumRow, len(batch.Jobs))
	for i := range batch.Jobs {
		job := &batch.Jobs[i]
		m := job.Model
		p := dvfsmodel.Params{
			P0: dvfsmodel.Watt(m.P0), Gamma: dvfsmodel.Watt(m.Gamma), C: dvfsmodel.Watt(m.C),
			D: m.D, Delta: m.Delta, T0: m.T0,
		}
		rows[i] = optimumRow{ID: job.ID, MinTime: r.MinTime(p)}
		pt, err := r.Optimum(p, o, job.Limit)
		switch {
		case errors.Is(err, dvfsmodel.ErrInfeasible):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", job.Pos, err)
		}
		rows[i] = optimumRow{
			ID: job.ID, Feasible: 1, V: float64(pt.Setting.V), Fc: pt.Setting.Fc, Fm: pt.Setting.Fm,
			Time: pt.Time, Power: float64(pt.Power), Energy: float64(pt.Energy), MinTime: rows[i].MinTime,
		}
	}
	return rows, nil
}

var optimumColumns = []string{"id", "feasible", "v", "fc", "fm", "time_s", "power_w", "energy_j", "min_time_s"}

func writeOptima(w io.Writer, rows []optimumRow, asJSON, asCSV bool) error {
	switch {
	case asJSON:
		return json.NewEncoder(w).Encode(rows)
	case asCSV:
		out := csv.NewWriter(w)
		if err := out.Write(optimumColumns); err != nil {
			return err
		}
		for i := range rows {
			if err := out.Write(rows[i].cells()); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	}
	return optimumTable(rows).WriteText(w)
}

// cells are the row in the order of optimumColumns, exact.
func (r *optimumRow) cells() []string {
	exact := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	if r.Feasible == 0 {
		return []string{r.ID, "0", "", "", "", "", "", "", exact(r.MinTime)}
	}
	return []string{
		r.ID, "1", exact(r.V), exact(r.Fc), exact(r.Fm),
		exact(r.Time), exact(r.Power), exact(r.Energy), exact(r.MinTime),
	}
}

// orNothing is a value that is left out where there is none.
func (r *optimumRow) orNothing(x float64) float64 {
	if r.Feasible == 0 {
		return math.NaN()
	}
	return x
}
