package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
)

type finding struct {
	section, what string
	unit          string
	ours          float64
	paper         float64 // 0: the paper gives none
}

type newProgress func(what string, steps int) *report.Progress

func (t *terminal) progressCounter(label string) newProgress {
	return func(what string, steps int) *report.Progress {
		if what != "" {
			what = ", " + what
		}
		return report.NewProgress(t.stderr, t.progress, time.Now, label+what, steps)
	}
}

func findingsTable(findings []finding) *report.Table {
	const digits = 5
	return report.TableOf(findings, func(row *report.Row, f *finding) {
		row.Add(report.Column{Key: "section", Head: "section", Left: true}, report.Text(f.section))
		row.Add(report.Column{Key: "what", Head: "what", Left: true}, report.Text(f.what))
		row.Add(report.Column{Key: "ours", Head: "ours", Digits: digits}, report.Number(f.ours))
		row.Add(report.Column{Key: "paper", Head: "paper", Digits: digits}, report.NonZero(f.paper))
		row.Add(report.Column{Key: "unit", Head: "unit", Left: true}, report.Text(f.unit))
	})
}

func sectionsFlag(all []string) cli.Flag {
	return &cli.StringFlag{
		Name: "only", DefaultText: "all", Usage: "`SECTIONS`, separated by commas: " +
			strings.Join(all, ", "),
	}
}

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

// reproducedPaper is a paper with its figures, computed anew.
type reproducedPaper struct {
	paper    *paper
	findings []finding
	table    *report.Table // as the paper's own command prints it
	charts   []report.Chart
	notes    []string
}

// paper is one whose figures can be computed anew.
type paper struct {
	name, title string // name is of its command
	page        string // of the documentation
	compute     func(ctx context.Context, r *reproducer, count newProgress) (*reproducedPaper, error)
}

type reproducer struct {
	t *terminal
	reproduceScale
	pwrDir, predictDir string // with data; empty: drawn
}

// reproduceScale is how much is drawn for the figures.
type reproduceScale struct {
	sets              int // of the EDL paper's tasks, by figure
	streams           int // of the PWR+FGD paper's tasks
	instances, tuning int // queues of the PREDICT paper
	scale             float64
	proof             time.Duration // that each proof of the CATS paper may take
}
