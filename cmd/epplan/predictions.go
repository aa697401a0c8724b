package main

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/queue"
)

// checkPredictFiles reports a missing file to learn from or to predict.
func checkPredictFiles(c *cli.Context) error {
	for _, flag := range []string{"train", "test"} {
		if c.String(flag) == "" {
			return usagef("no --%s, want a file with jobs", flag)
		}
	}
	return nil
}

type predictionSet struct {
	target      predict.Target
	ids         []string
	predictions []predict.Prediction
	truths      []float64 // NaN: not known
	strangeness []probe.Novelty
	aligned     []string // jobs that were predicted from a rewrite
}

type predictedJob struct {
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

func printPredicted(t *terminal, c *cli.Context, p *predictionSet) error {
	jobs := p.jobs()
	switch {
	case c.Bool("csv"):
		return t.print(func(w io.Writer) error { return writePredictedCSV(w, jobs, p.strangeness != nil) })
	case c.Bool("json"):
		return t.printJSON(struct {
			Target string         `json:"target"`
			Unit   string         `json:"unit"`
			Jobs   []predictedJob `json:"jobs"`
		}{p.target.String(), p.target.Unit(), jobs})
	}
	return t.printText(p.summary() + "\n" + predictedTable(p.target, jobs).Text(t.textOptions(c.Int("rows"))))
}

func (p *predictionSet) jobs() []predictedJob {
	jobs := make([]predictedJob, len(p.ids))
	for i := range jobs {
		q := &p.predictions[i]
		jobs[i] = predictedJob{
			ID: p.ids[i], Value: q.Value, Low: q.Low, High: q.High, Rung: string(q.Rung),
		}
		if p.strangeness != nil {
			jobs[i].Out, jobs[i].Score = &p.strangeness[i].IsOutside, &p.strangeness[i].Score
			jobs[i].Aligned = slices.Contains(p.aligned, p.ids[i])
		}
	}
	return jobs
}

func predictedTable(target predict.Target, jobs []predictedJob) *report.Table {
	return report.TableOf(jobs, func(row *report.Row, j *predictedJob) {
		row.Add(report.Column{Head: "job", Left: true, Max: longestID}, report.Text(j.ID))
		row.Add(report.Column{Head: target.String(), Note: target.Unit()}, report.Number(j.Value))
		row.Add(report.Column{Head: "from", Note: target.Unit()}, report.Number(j.Low))
		row.Add(report.Column{Head: "to", Note: target.Unit()}, report.Number(j.High))
		row.Add(report.Column{Head: "by", Left: true}, report.Text(j.Rung))
	})
}

const longestID = 32

func writePredictedCSV(w io.Writer, jobs []predictedJob, strange bool) error {
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
			textfile.EscapeFormula(queue.Printable(j.ID)), digits(j.Value), digits(j.Low), digits(j.High), j.Rung,
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

func (p *predictionSet) summary() string {
	var b strings.Builder
	writeRow(&b, "Predicted", "%s of %s", p.target, plural(len(p.ids), "job"))
	rungs := make(map[predict.Rung]int)
	for i := range p.predictions {
		rungs[p.predictions[i].Rung]++
	}
	for _, rung := range []predict.Rung{predict.Repeat, predict.Similar, predict.Code, predict.Prior} {
		if n := rungs[rung]; n > 0 {
			writeRow(&b, "  "+string(rung), "%s", report.FormatCount(n))
		}
	}
	if p.strangeness != nil {
		out := 0
		for i := range p.strangeness {
			if p.strangeness[i].IsOutside {
				out++
			}
		}
		writeRow(&b, "Strange", "%d, unlike anything learnt from", out)
		if n := len(p.aligned); n > 0 {
			writeRow(&b, "  aligned", "%d of them, predicted from a rewrite", n)
		}
	}
	s := predict.ScorePredictions(p.predictions, p.truths)
	if s.Jobs == 0 {
		writeRow(&b, "Truth", "not known")
		return b.String()
	}
	writeRow(&b, "Truth", "known of %s", plural(s.Jobs, "job"))
	writeRow(&b, "  mean", "%s %s off", fixed(s.MeanAbsoluteError, decimalPlaces(s.MeanAbsoluteError)),
		p.target.Unit())
	writeRow(&b, "  median", "%s of the truth off", report.FormatPercent(s.MedianRelativeError))
	writeRow(&b, "  inside", "%s of the truths lie within their interval", report.FormatPercent(s.Coverage))
	return b.String()
}

// decimalPlaces is how many decimals show a number to four figures.
func decimalPlaces(v float64) int {
	if !(v > 0) {
		return 0
	}
	return min(8, max(0, 3-int(math.Floor(math.Log10(v)))))
}
