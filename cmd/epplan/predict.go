package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/predict/probe"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/queue"
)

func predictCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:  "predict",
		Usage: "predict what jobs take from what earlier ones took",
		Description: "Each job of one table is predicted as if it had just been submitted: from jobs of " +
			"both tables that had ended\n" +
			"by then. Tables are CSV with job_id, submit_s, and what is known of user, job_name, gpus, requested_s and the\n" +
			"like; runtime_s, energy_kwh and power_per_gpu_w are learnt from, and wait_s says when a job ended. Between lo\n" +
			"and hi lie 90 % of the true values.\n" +
			"With --code, jobs are predicted from their source code: tables have job_id, file, and to learn from time_a_s or\n" +
			"energy_a_kwh for GPU type a. Then ood says whether a source is unlike all that was learnt from.\n" +
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
			rowsFlag("jobs"),
			csvFlag(), jsonFlag(),
		},
		Action: t.runs(takesNone(runPredict)),
	}
}

func runPredict(t *terminal, c *cli.Context) error {
	for _, flag := range []string{"train", "test"} {
		if c.String(flag) == "" {
			return usagef("no --%s, want a file with jobs", flag)
		}
	}
	target, err := predict.ParseTarget(c.String("target"))
	if err != nil {
		return usagef("--target %q, want time, energy or power", c.String("target"))
	}
	if c.IsSet("code") {
		return predictCode(t, c, target)
	}
	err = refuse(c, "goes with --code", "code-test", "gpu-type", "probe", "embeddings", "align")
	if err != nil {
		return err
	}
	return predictHistory(t, c, target)
}

func predictHistory(t *terminal, c *cli.Context, target predict.Target) error {
	columns := predict.Columns{Owner: c.String("owner"), Name: c.String("name")}
	train, err := parseFile(t, c.String("train"), func(r io.Reader, name string) (*predict.Table, error) {
		return predict.ReadTable(r, name, columns, nil)
	})
	if err != nil {
		return err
	}
	test, err := parseFile(t, c.String("test"), func(r io.Reader, name string) (*predict.Table, error) {
		return predict.ReadTable(r, name, columns, &train.Layout)
	})
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
	p := &predictionSet{target: target, predictions: predictions, truths: make([]float64, len(test.Jobs))}
	for i := range test.Jobs {
		p.ids = append(p.ids, test.Jobs[i].ID)
		p.truths[i] = test.Outcomes[i].ValueOf(target)
	}
	return printPredicted(t, c, p)
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
