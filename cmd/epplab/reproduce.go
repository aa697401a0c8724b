package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/reproduction"
)

type newProgress func(what string, steps int) *report.Progress

func progressCounter(t *terminal.Terminal, label string) newProgress {
	return func(what string, steps int) *report.Progress {
		if what != "" {
			what = ", " + what
		}
		return report.NewProgress(t.Stderr, t.Progress, time.Now, label+what, steps)
	}
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

// exhibitFlags are the flags of a paper that choose what is computed, and how it is printed.
func exhibitFlags(p *paper) []cli.Flag {
	return []cli.Flag{
		sectionsFlag(p.Sections),
		&cli.StringFlag{Name: "figure", Usage: "`NUMBERS` of the paper's figures, separated by commas"},
		&cli.StringFlag{Name: "table", Usage: "`NUMBERS` of the paper's tables"},
		terminal.HTMLFlag(), terminal.JSONFlag(), terminal.CSVFlag(),
	}
}

// reproduceOne is the command of one paper: what --only, --figure and --table name, or everything.
func reproduceOne(t *terminal.Terminal, c *cli.Context, p *paper, r *reproducer) error {
	if err := terminal.CheckHTML(c); err != nil {
		return err
	}
	r.t, r.count = t, progressCounter(t, "reproduce")
	r.seed, r.firstStream = c.Uint64("seed"), c.Uint64("seed")
	chosen, err := r.choose(c, p)
	if err != nil {
		return err
	}
	found, err := p.compute(c.Context, r)
	if err != nil {
		return err
	}
	if found.Drawn != "" {
		t.Message("note", found.Drawn)
	}
	page := func(w io.Writer) error {
		return reproduction.WritePage(w, []*reproduction.Result{found}, chosen, "", t.Provenance())
	}
	if err := t.WithHTML(c, page, func() error { return t.PrintTable(c, found.Table) }); err != nil {
		return err
	}
	for _, note := range found.Notes {
		t.Message("note", note)
	}
	return nil
}

// start makes the paper the one to compute, all of it.
func (r *reproducer) start(p *paper) {
	r.paper, r.sections = &p.Paper, p.Sections
	r.keep = func(*reproduction.Finding) bool { return true }
}

// choose sets the sections to compute, and which of their rows are kept, by the command's flags.
func (r *reproducer) choose(c *cli.Context, p *paper) (chosen []*reproduction.Exhibit, err error) {
	r.start(p)
	for _, kind := range []reproduction.Kind{reproduction.FigureKind, reproduction.TableKind} {
		for number := range strings.SplitSeq(c.String(string(kind)), ",") {
			if number == "" {
				continue
			}
			e, err := p.Exhibit(kind, number)
			if err != nil {
				return nil, terminal.Usagef("--%s %s: %v", kind, number, err)
			}
			if e.NeedsLists() && r.pwrDir == "" {
				return nil, terminal.Usagef("--%s %s is of the trace's own lists, want --data", kind, number)
			}
			chosen = append(chosen, e)
		}
	}
	only := c.String("only")
	switch {
	case only != "" && chosen != nil:
		return nil, terminal.Usagef("--only names sections, want it left out with --figure and --table")
	case only != "":
		r.sections = strings.Split(only, ",")
	case chosen != nil:
		r.keep = func(f *reproduction.Finding) bool {
			return slices.ContainsFunc(chosen, func(e *reproduction.Exhibit) bool { return e.Has(f) })
		}
		r.sections = slices.DeleteFunc(slices.Clone(p.Sections), func(section string) bool {
			return !slices.ContainsFunc(chosen, func(e *reproduction.Exhibit) bool {
				return slices.Contains(e.Sections(), section)
			})
		})
	}
	for _, s := range r.sections {
		if !slices.Contains(p.Sections, s) {
			return nil, terminal.Usagef("--only %q, want some of %s", s, strings.Join(p.Sections, ", "))
		}
	}
	return chosen, nil
}

// result returns the findings that the command keeps, with their table.
func (r *reproducer) result(all []reproduction.Finding) *reproduction.Result {
	all = slices.DeleteFunc(all, func(f reproduction.Finding) bool { return !r.keep(&f) })
	return &reproduction.Result{Paper: r.paper, Findings: all, Table: reproduction.Table(r.paper, all)}
}

// paper is one whose figures can be computed anew.
type paper struct {
	reproduction.Paper
	compute func(ctx context.Context, r *reproducer) (*reproduction.Result, error)
}

type reproducer struct {
	t        *terminal.Terminal
	count    newProgress
	paper    *reproduction.Paper
	sections []string                           // of the paper
	keep     func(f *reproduction.Finding) bool // reports whether a row was asked for
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
