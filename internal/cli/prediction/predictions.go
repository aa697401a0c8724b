// Package prediction prints predictions of jobs.
package prediction

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/queue"
)

// CheckFiles reports a missing file to learn from or to predict.
func CheckFiles(c *cli.Context) error {
	for _, flag := range []string{"train", "test"} {
		if c.String(flag) == "" {
			return terminal.Usagef("no --%s, want a file with jobs", flag)
		}
	}
	return nil
}

// Set is predictions of jobs, and what is known of them.
type Set struct {
	Target      predict.Target
	IDs         []string
	Predictions []predict.Prediction
	Truths      []float64 // NaN: not known
	Strangeness []probe.Novelty
	Aligned     []string // jobs that were predicted from a rewrite
}

// Job is one row of the output.
type Job struct {
	ID    string   `json:"job_id"`
	Value float64  `json:"value"`
	Low   float64  `json:"lo"`
	High  float64  `json:"hi"`
	Rung  string   `json:"rung"`
	Out   *bool    `json:"ood,omitempty"`
	Score *float64 `json:"ood_score,omitempty"`
	// Aligned tells that it was predicted from a rewrite of its source.
	Aligned bool `json:"aligned,omitempty"`
}

// Print writes predictions as the flags of a command ask.
func Print(t *terminal.Terminal, c *cli.Context, p *Set) error {
	jobs := p.jobs()
	switch {
	case c.Bool("csv"):
		return t.Print(func(w io.Writer) error { return WriteCSV(w, jobs, p.Strangeness != nil) })
	case c.Bool("json"):
		return t.PrintJSON(struct {
			Target string `json:"target"`
			Unit   string `json:"unit"`
			Jobs   []Job  `json:"jobs"`
		}{p.Target.String(), p.Target.Unit(), jobs})
	}
	return t.PrintText(p.summary() + "\n" + predictedTable(p.Target, jobs).Text(t.TextOptions(c.Int("rows"))))
}

func (p *Set) jobs() []Job {
	jobs := make([]Job, len(p.IDs))
	for i := range jobs {
		q := &p.Predictions[i]
		jobs[i] = Job{
			ID: p.IDs[i], Value: q.Value, Low: q.Low, High: q.High, Rung: string(q.Rung),
		}
		if p.Strangeness != nil {
			jobs[i].Out, jobs[i].Score = &p.Strangeness[i].IsOutside, &p.Strangeness[i].Score
			jobs[i].Aligned = slices.Contains(p.Aligned, p.IDs[i])
		}
	}
	return jobs
}

func predictedTable(target predict.Target, jobs []Job) *report.Table {
	return report.TableOf(jobs, func(row *report.Row, j *Job) {
		row.Add(report.Column{Head: "job", Left: true, Max: longestID}, report.Text(j.ID))
		row.Add(report.Column{Head: target.String(), Note: target.Unit()}, report.Number(j.Value))
		row.Add(report.Column{Head: "from", Note: target.Unit()}, report.Number(j.Low))
		row.Add(report.Column{Head: "to", Note: target.Unit()}, report.Number(j.High))
		row.Add(report.Column{Head: "by", Left: true}, report.Text(j.Rung))
	})
}

const longestID = 32

// WriteCSV writes rows, with how unlike the learnt sources are where that is known.
func WriteCSV(w io.Writer, jobs []Job, strange bool) error {
	// digits are a number to more places than anybody can measure.
	digits := func(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }
	rows := csv.NewWriter(w)
	header := []string{"job_id", "value", "lo", "hi", "rung"}
	if strange {
		header = append(header, "ood", "ood_score")
	}
	_ = rows.Write(header) // Error reports it below
	for i := range jobs {
		j := &jobs[i]
		row := []string{
			textfile.EscapeFormula(queue.Printable(j.ID)),
			digits(j.Value),
			digits(j.Low),
			digits(j.High),
			j.Rung,
		}
		if strange {
			out := "0"
			if *j.Out {
				out = "1"
			}
			row = append(row, out, digits(*j.Score))
		}
		_ = rows.Write(row)
	}
	rows.Flush()
	return rows.Error()
}

func (p *Set) summary() string {
	var b strings.Builder
	report.WriteRow(&b, "Predicted", "%s of %s", p.Target, report.Plural(len(p.IDs), "job"))
	rungs := make(map[predict.Rung]int)
	for i := range p.Predictions {
		rungs[p.Predictions[i].Rung]++
	}
	for _, rung := range []predict.Rung{predict.Repeat, predict.Similar, predict.Code, predict.Prior} {
		if n := rungs[rung]; n > 0 {
			report.WriteRow(&b, "  "+string(rung), "%s", report.FormatCount(n))
		}
	}
	if p.Strangeness != nil {
		out := 0
		for i := range p.Strangeness {
			if p.Strangeness[i].IsOutside {
				out++
			}
		}
		report.WriteRow(&b, "Strange", "%d, unlike anything learnt from", out)
		if n := len(p.Aligned); n > 0 {
			report.WriteRow(&b, "  aligned", "%d of them, predicted from a rewrite", n)
		}
	}
	s := predict.ScorePredictions(p.Predictions, p.Truths)
	if s.Jobs == 0 {
		report.WriteRow(&b, "Truth", "not known")
		return b.String()
	}
	report.WriteRow(&b, "Truth", "known of %s", report.Plural(s.Jobs, "job"))
	report.WriteRow(&b, "  mean", "%s %s off",
		terminal.Fixed(s.MeanAbsoluteError, decimalPlaces(s.MeanAbsoluteError)), p.Target.Unit())
	report.WriteRow(&b, "  median", "%s of the truth off", report.FormatPercent(s.MedianRelativeError))
	report.WriteRow(&b, "  inside", "%s of the truths lie within their interval",
		report.FormatPercent(s.Coverage))
	return b.String()
}

// decimalPlaces returns how many decimals show a number to four figures.
func decimalPlaces(v float64) int {
	if !(v > 0) {
		return 0
	}
	return min(8, max(0, 3-int(math.Floor(math.Log10(v)))))
}
