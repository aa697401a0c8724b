package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/internal/report"
)

func reproduceCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:  "reproduce",
		Usage: "compute the papers' tables anew, ours beside theirs",
		Description: "Without the name of a paper it computes the figures of all four, and sums them up " +
			"beside the papers': which\n" +
			"deviate, by how much, and why. It takes about a minute on two cores, with --quick some ten seconds. JSON and\n" +
			"CSV, and the report of --html, have the figures that the papers don't state, too. That a figure isn't the\n" +
			"paper's is no failure: the exit status is 0 when all of them were computed.\n" +
			"Example: epplan reproduce --quick --html papers.html",
		Flags:  reproduceFlags(),
		Action: t.runs(runReproduceAll),
		Subcommands: []*cli.Command{{
			Name:  "edl",
			Usage: "the EDL paper: single tasks, Table 3, offline and online savings",
			Description: "Task sets are generated like the paper's; it publishes none, so its averages over 100 sets and ours\n" +
				"over --sets sets differ by tenths of a per cent. docs/papers.md says where readings differ.\n" +
				"Example: epplan reproduce edl --only single,table3",
			Flags: []cli.Flag{
				sectionsFlag(edlSections),
				&cli.IntFlag{Name: "sets", Usage: "`COUNT` of random task sets to average over", Value: 1},
				seedFlag(), jsonFlag(), csvFlag(),
			},
			Action: t.runs(runReproduceEDL),
		}, reproducePWRCommand(t), reproducePredictCommand(t), reproduceCATSCommand(t)},
	}
}

// finding is one figure of a paper, computed anew.
type finding struct {
	section, what string
	unit          string
	ours          float64
	paper         float64 // 0: the paper gives none
}

// newProgress starts the line of progress for some work of so many steps.
type newProgress func(what string, steps int) *report.Progress

// counting shows progress on a terminal.
func (t *terminal) progressCounter(label string) newProgress {
	return func(what string, steps int) *report.Progress {
		if what != "" {
			what = ", " + what
		}
		return report.NewProgress(t.stderr, t.progress, time.Now, label+what, steps)
	}
}

var edlSections = []string{"single", "table3", "offline", "online"}

func runReproduceEDL(t *terminal, c *cli.Context) error {
	if err := checkArgs(c, 0, 0, "none"); err != nil {
		return err
	}
	sections, err := chosenSections(c, edlSections)
	if err != nil {
		return err
	}
	if c.Int("sets") < 1 {
		return usagef("--sets %d, want 1 or more", c.Int("sets"))
	}
	e := edlPaper{sets: c.Int("sets"), seed: c.Uint64("seed")}
	findings, err := e.reproduce(c.Context, t.progressCounter("reproduce"), sections)
	if err != nil {
		return err
	}
	if slices.Contains(sections, "offline") || slices.Contains(sections, "online") {
		t.message("note", e.note())
	}
	return t.printTable(c, findingsTable(findings))
}

func findingsTable(findings []finding) *report.Table {
	return &report.Table{
		Columns: []report.Column{
			{Key: "section", Head: "section", Left: true},
			{Key: "what", Head: "what", Left: true},
			{Key: "ours", Head: "ours", Digits: 5},
			{Key: "paper", Head: "paper", Digits: 5},
			{Key: "unit", Head: "unit", Left: true},
		},
		Len: len(findings),
		Rows: func(yield func([]report.Value) bool) {
			for _, f := range findings {
				paper := report.Value{}
				if f.paper != 0 {
					paper = report.Number(f.paper)
				}
				if !yield([]report.Value{
					report.Text(f.section), report.Text(f.what), report.Number(f.ours),
					paper, report.Text(f.unit),
				}) {
					return
				}
			}
		},
	}
}

// experiment computes one figure of a section.
type experiment struct {
	finding
	run func(ctx context.Context) (float64, error)
}

// reproduce runs the experiments of the sections, in parallel.
func (e *edlPaper) reproduce(ctx context.Context, count newProgress, sections []string) ([]finding, error) {
	var all []experiment
	for _, section := range sections {
		some, err := e.experiments(section)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	progress := count("", len(all))
	defer progress.Finish()
	findings := make([]finding, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		group.Go(func() error {
			defer progress.Add(1)
			value, err := all[i].run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", all[i].what, err)
			}
			findings[i] = all[i].finding
			findings[i].ours = value
			return nil
		})
	}
	return findings, group.Wait()
}

// note says what was drawn.
func (e *edlPaper) note() string {
	return fmt.Sprintf("random task sets per figure: %d, seed %d", e.sets, e.seed)
}

// sectionsFlag is the flag for some of a paper's sections.
func sectionsFlag(all []string) cli.Flag {
	return &cli.StringFlag{
		Name: "only", DefaultText: "all", Usage: "`SECTIONS`, separated by commas: " +
			strings.Join(all, ", "),
	}
}

// chosenSections are those that the flag names, or all of them.
func chosenSections(c *cli.Context, all []string) ([]string, error) {
	only := c.String("only")
	if only == "" {
		return all, nil
	}
	sections := strings.Split(only, ",")
	for _, s := range sections {
		if !slices.Contains(all, s) {
			return nil, usagef("--only %q, want some of %s", s, strings.Join(all, ", "))
		}
	}
	return sections, nil
}
