package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/reproduction"
	"github.com/epplan/epplan/planner"
)

func reproduceFlags() []cli.Flag {
	return []cli.Flag{
		terminal.BoolFlag("list", "list the papers' figures and tables, and why some aren't computed"),
		terminal.BoolFlag("quick",
			"draw less: a task set, a stream, ten queues, a tenth of the simulations' tasks"),
		&cli.StringFlag{
			Name: "pwr-data", DefaultText: "a synthetic trace",
			Usage: "`FOLDER` with the trace's lists of the PWR+FGD paper",
		},
		&cli.StringFlag{
			Name: "predict-data", DefaultText: "drawn queues",
			Usage: "`FOLDER` with clusters.csv and the queues of the PREDICT paper",
		},
		terminal.HTMLFlag(),
		terminal.JSONFlag(),
		terminal.CSVFlag(),
	}
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

// papers are all of them, in the order in which they decide: clocks, nodes,
// queues, sharing.
var papers = []paper{paperEDL, paperPWR, paperPredict, paperCATS} //nolint:gochecknoglobals // constant

func runReproduceAll(t *terminal.Terminal, c *cli.Context) error {
	if err := terminal.CheckHTML(c); err != nil {
		return err
	}
	if c.Bool("list") {
		return listExhibits(t, c)
	}
	r := &reproducer{
		t: t, reproduceScale: fullScale, seed: planner.DefaultSeed, firstStream: paperFirstSeed,
		pwrDir:     c.String("pwr-data"),
		predictDir: c.String("predict-data"),
	}
	if err := cmp.Or(checkFolder(c, "pwr-data"), checkFolder(c, "predict-data")); err != nil {
		return err
	}
	warning := ""
	if c.Bool("quick") {
		r.reproduceScale = quickScale
		warning = "quick: few draws, so that means are rougher than those of a full run"
		t.Message("note", warning)
	}
	all := make([]*reproduction.Result, len(papers))
	for i := range papers {
		p := &papers[i]
		r.count = progressCounter(t, fmt.Sprintf("%d of %d, %s", i+1, len(papers), p.Name))
		r.start(p)
		found, err := p.compute(c.Context, r)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if found.Drawn != "" {
			found.Notes = append([]string{found.Drawn}, found.Notes...)
		}
		if p.Name == "pwr" && r.pwrDir == "" {
			found.Notes = append(found.Notes, "a synthetic trace in place of Alibaba's (--pwr-data)")
		}
		all[i] = found
	}
	page := func(w io.Writer) error { return reproduction.WritePage(w, all, nil, warning, t.Provenance()) }
	return t.WithHTML(c, page, func() error {
		if c.Bool("json") || c.Bool("csv") {
			return t.PrintTable(c, reproduction.FullTable(all))
		}
		return t.PrintText(reproduction.SummaryText(all, t.TextOptions(-1)))
	})
}

func listExhibits(t *terminal.Terminal, c *cli.Context) error {
	if c.String("html") != "" {
		return terminal.Usagef("--list is a table only, want it without --html, whose report has it")
	}
	list := make([]*reproduction.Paper, len(papers))
	for i := range papers {
		list[i] = &papers[i].Paper
	}
	return t.PrintTable(c, reproduction.ExhibitsTable(list))
}

func reproduceCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "reproduce",
		Usage: "compute the papers' tables anew, ours beside theirs",
		Description: "Without the name of a paper it computes the figures of all four, and sums them up " +
			"beside the papers': which\n" +
			"deviate, by how much, and why. It takes about a minute on two cores, with --quick some ten seconds. JSON and\n" +
			"CSV, and the report of --html, have the figures that the papers don't state, too. That a figure isn't the\n" +
			"paper's is no failure: the exit status is 0 when all of them were computed.\n" +
			"Example: epplab reproduce --quick --html papers.html",
		Flags:  reproduceFlags(),
		Action: t.Runs(terminal.WithoutArgs(runReproduceAll)),
		Subcommands: []*cli.Command{
			{
				Name:  "edl",
				Usage: "the EDL paper: single tasks, Table 3, offline and online savings",
				Description: "Task sets are generated like the paper's; it publishes none, so its averages over 100 sets and ours\n" +
					"over --sets sets differ by tenths of a per cent. lab/docs/papers.md says where readings differ.\n" +
					"Example: epplab reproduce edl --figure 9 --html figure9.html",
				Flags: append(exhibitFlags(&paperEDL),
					terminal.AtLeast(&cli.IntFlag{
						Name: "sets", Usage: "`COUNT` of random task sets to average over", Value: 1,
					}, 1),
					setup.SeedFlag()),
				Action: t.Runs(terminal.WithoutArgs(runReproduceEDL)),
			},
			reproducePWRCommand(t),
			reproducePredictCommand(t),
			reproduceCATSCommand(t),
		},
	}
}

func runReproduceEDL(t *terminal.Terminal, c *cli.Context) error {
	return reproduceOne(t, c, &paperEDL, &reproducer{reproduceScale: reproduceScale{sets: c.Int("sets")}})
}
