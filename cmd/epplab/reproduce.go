package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
)

type finding struct {
	section, what string
	unit          string
	ours          float64
	paper         float64 // 0: the paper gives none
}

type newProgress func(what string, steps int) *report.Progress

func progressCounter(t *terminal.Terminal, label string) newProgress {
	return func(what string, steps int) *report.Progress {
		if what != "" {
			what = ", " + what
		}
		return report.NewProgress(t.Stderr, t.Progress, time.Now, label+what, steps)
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

// checkFolder refuses a file where a flag wants a folder.
func checkFolder(c *cli.Context, flag string) error {
	if dir := c.String(flag); dir != "" && !terminal.IsDir(dir) {
		return terminal.Usagef("--%s %s, want a folder", flag, dir)
	}
	return nil
}

// reproduceOne is the command of one paper: the sections that --only names, or all of them.
func reproduceOne(t *terminal.Terminal, c *cli.Context, p *paper, r *reproducer) error {
	r.t, r.count, r.sections = t, progressCounter(t, "reproduce"), p.sections
	r.seed, r.firstStream = c.Uint64("seed"), c.Uint64("seed")
	if only := c.String("only"); only != "" {
		r.sections = strings.Split(only, ",")
	}
	for _, s := range r.sections {
		if !slices.Contains(p.sections, s) {
			return terminal.Usagef("--only %q, want some of %s", s, strings.Join(p.sections, ", "))
		}
	}
	found, err := p.compute(c.Context, r)
	if err != nil {
		return err
	}
	if found.drawn != "" {
		t.Message("note", found.drawn)
	}
	if err := t.PrintTable(c, found.table); err != nil {
		return err
	}
	for _, note := range found.notes {
		t.Message("note", note)
	}
	return nil
}

// reproducedPaper is a paper with its figures, computed anew.
type reproducedPaper struct {
	paper    *paper
	findings []finding
	table    *report.Table // as the paper's own command prints it
	charts   []report.Chart
	drawn    string   // what was, of which the table consists
	notes    []string // on the table
}

// paper is one whose figures can be computed anew.
type paper struct {
	name, title string // name is of its command
	page        string // of the documentation
	sections    []string
	compute     func(ctx context.Context, r *reproducer) (*reproducedPaper, error)
}

type reproducer struct {
	t        *terminal.Terminal
	count    newProgress
	sections []string // of the paper
	reproduceScale
	seed, firstStream  uint64 // of what is drawn; of the PWR+FGD paper's first stream
	jobs               int    // runs at a time; 0: as many as processors
	pwrDir, predictDir string // with data; empty: drawn
	svgDir             string // for the pictures of each family of the PWR+FGD paper
}

// reproduceScale is how much is drawn for the figures.
type reproduceScale struct {
	sets              int // of the EDL paper's tasks, by figure
	streams           int // of the PWR+FGD paper's tasks
	instances, tuning int // queues of the PREDICT paper
	scale             float64
	proof             time.Duration // that each proof of the CATS paper may take
}
