package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

func reproduceFlags() []cli.Flag {
	return []cli.Flag{
		boolFlag("quick", "draw less: a task set, a stream, ten queues, a tenth of the simulations' tasks"),
		&cli.StringFlag{
			Name: "pwr-data", DefaultText: "a synthetic trace",
			Usage: "`FOLDER` with the trace's lists of the PWR+FGD paper",
		},
		&cli.StringFlag{
			Name: "predict-data", DefaultText: "drawn queues",
			Usage: "`FOLDER` with clusters.csv and the queues of the PREDICT paper",
		},
		htmlFlag(),
		jsonFlag(), csvFlag(),
	}
}

// reproduceScale is how much is drawn for the figures.
type reproduceScale struct {
	sets              int // of the EDL paper's tasks, by figure
	streams           int // of the PWR+FGD paper's tasks
	instances, tuning int // queues of the PREDICT paper
	scale             float64
	proof             time.Duration // that each proof of the CATS paper may take
}

// The efforts: all that is worth its time, and what takes some seconds.
var (
	fullScale = reproduceScale{
		sets: 10, streams: paperSeeds, instances: paperInstances, tuning: paperTuning, scale: 1,
		proof: 10 * time.Second,
	}
	quickScale = reproduceScale{
		sets: 1, streams: 1, instances: 10, tuning: 10, scale: 0.1, proof: time.Second,
	}
)

// reproducedPaper is a paper with its figures, computed anew.
type reproducedPaper struct {
	paper    *paper
	findings []finding
	table    *report.Table // as the paper's own command prints it
	charts   []report.Chart
	notes    []string
}

// reproducer computes the figures of papers.
type reproducer struct {
	t *terminal
	reproduceScale
	pwrDir, predictDir string // with data; empty: drawn
}

// paper is one whose figures can be computed anew.
type paper struct {
	name, title string // name is of its command
	page        string // of the documentation
	compute     func(ctx context.Context, r *reproducer, count newProgress) (*reproducedPaper, error)
}

// papers are all of them, in the order in which they decide: clocks, nodes,
// queues, sharing.
var papers = []paper{ //nolint:gochecknoglobals // constant
	{"edl", "EDL: energy-aware non-preemptive scheduling with deadlines", "docs/papers/edl.md", computeEDL},
	{"pwr", "PWR+FGD: power- and fragmentation-aware placement", "docs/papers/pwr-fgd.md", computePWR},
	{
		"predict", "PREDICT: predictive decisions for queues on two GPU types", "docs/papers/predict.md",
		computePredict,
	},
	{"cats", "CATS: correlation-aware task scheduling on shared GPUs", "docs/papers/cats.md", computeCATS},
}

func runReproduceAll(t *terminal, c *cli.Context) error {
	if err := checkArgs(c, 0, 0, "none"); err != nil {
		return err
	}
	if err := checkHTML(c); err != nil {
		return err
	}
	r := &reproducer{
		t: t, reproduceScale: fullScale, pwrDir: c.String("pwr-data"),
		predictDir: c.String("predict-data"),
	}
	for _, flag := range []string{"pwr-data", "predict-data"} {
		if dir := c.String(flag); dir != "" && !isDir(dir) {
			return usagef("--%s %s, want a folder", flag, dir)
		}
	}
	if c.Bool("quick") {
		r.reproduceScale = quickScale
		t.message("note", "quick: few draws, so that means are rougher than those of a full run")
	}
	all := make([]*reproducedPaper, len(papers))
	for i := range papers {
		p := &papers[i]
		found, err := p.compute(c.Context, r,
			t.progressCounter(fmt.Sprintf("%d of %d, %s", i+1, len(papers), p.name)))
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		found.paper = p
		all[i] = found
	}
	return printReproduced(t, c, all)
}

// printReproduced writes the report, and prints the summary.
func printReproduced(t *terminal, c *cli.Context, all []*reproducedPaper) error {
	return t.withHTML(c, reproducedPage(all, c.Bool("quick")), func() error {
		if c.Bool("json") || c.Bool("csv") {
			return t.printTable(c, figureTable(figuresOf(all)))
		}
		return t.print(summaryText(all, t.textOptions(-1)))
	})
}

func computeEDL(ctx context.Context, r *reproducer, count newProgress) (*reproducedPaper, error) {
	e := edlPaper{sets: r.sets, seed: planner.DefaultSeed}
	findings, err := e.reproduce(ctx, count, edlSections)
	if err != nil {
		return nil, err
	}
	return &reproducedPaper{
		findings: findings, table: findingsTable(findings), notes: []string{e.note()},
	}, nil
}

func computePWR(ctx context.Context, r *reproducer, count newProgress) (*reproducedPaper, error) {
	found := &reproducedPaper{}
	p := &pwrPaper{dir: r.pwrDir, first: paperFirstSeed, seeds: r.streams}
	p.draw = func(in *inflation, runs [][]inflationRun) error {
		for _, chart := range in.charts(runs) {
			chart.Title = in.label + ": " + chart.Title
			found.charts = append(found.charts, chart.Chart)
		}
		return nil
	}
	var err error
	if found.findings, err = p.reproduce(ctx, r.t, count, pwrSections); err != nil {
		return nil, err
	}
	found.table = findingsTable(found.findings)
	if found.notes = []string{p.note()}; r.pwrDir == "" {
		found.notes = append(found.notes, "a synthetic trace in place of Alibaba's (--pwr-data)")
	}
	return found, nil
}

func computePredict(ctx context.Context, r *reproducer, count newProgress) (*reproducedPaper, error) {
	q := predictQueues{dir: r.predictDir, seed: planner.DefaultSeed, instances: r.instances, tuning: r.tuning}
	findings, notes, err := q.reproduce(ctx, r.t, count, predictSections)
	if err != nil {
		return nil, err
	}
	return &reproducedPaper{
		findings: predictFigures(findings), table: predictTable(findings), notes: notes,
	}, nil
}

func computeCATS(ctx context.Context, r *reproducer, count newProgress) (*reproducedPaper, error) {
	p := &catsPaper{seed: planner.DefaultSeed, scale: r.scale, limit: r.proof}
	if err := p.reproduce(ctx, count, catsSections); err != nil {
		return nil, err
	}
	return &reproducedPaper{findings: p.findings, table: findingsTable(p.findings), notes: p.notes}, nil
}
