package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/trace"
)

// paperFigure is a figure of a paper, computed anew, beside the paper's.
type paperFigure struct {
	finding
	of  *paper
	why string // what sets the two apart; empty: nothing worth saying
}

// figuresOf are all figures that were computed.
func figuresOf(all []*reproducedPaper) []paperFigure {
	var list []paperFigure
	for _, r := range all {
		for _, f := range r.findings {
			list = append(list, paperFigure{finding: f, of: r.paper, why: whyDifferent(r.paper.name, &f)})
		}
	}
	return list
}

// withPaperValue are those that the paper gives a number for.
func withPaperValue(list []paperFigure) []paperFigure {
	return slices.DeleteFunc(slices.Clone(list), func(f paperFigure) bool { return f.paper == 0 })
}

// predictFigures are the figures of the PREDICT paper: those of its own
// energy model beside the paper's, and those of the physical one.
func predictFigures(findings []predictFinding) []finding {
	all := make([]finding, 0, 2*len(findings))
	for i := range findings {
		f := &findings[i]
		what := f.rule + ": " + f.what
		all = append(all,
			finding{
				section: f.section, what: what, unit: f.unit, ours: f.ours[trace.Independent], paper: f.paper,
			},
			finding{
				section: f.section, what: what + ", coupled energy", unit: f.unit,
				ours: f.ours[trace.Coupled],
			})
	}
	return all
}

// isFraction reports whether the figure is a part of something, so that a
// difference means more than a ratio.
func (f *finding) isFraction() bool {
	return strings.HasPrefix(f.unit, "%") || f.unit == "GRAR" || f.unit == "load"
}

// difference is how far ours is from the paper's figure, per cent of it, or
// percentage points.
func (f *finding) difference() float64 {
	switch {
	case strings.HasPrefix(f.unit, "%"):
		return f.ours - f.paper
	case f.isFraction():
		return 100 * (f.ours - f.paper)
	}
	return 100 * (f.ours/f.paper - 1)
}

// differenceText is apart for people.
func (f *finding) differenceText() string {
	unit := "%"
	if f.isFraction() {
		unit = "points"
	}
	const tenths = 10
	// Adding 0 makes -0 positive.
	return fmt.Sprintf("%+.1f %s", math.Round(tenths*f.difference())/tenths+0, unit)
}

// How far apart figures may be to be counted as the same, or as near.
const (
	samePct = 1.0
	nearPct = 10.0
)

// agreementCount is how many figures are how far from the paper's.
type agreementCount struct{ same, near, far, incomparable int }

func (n *agreementCount) add(f *paperFigure) {
	switch off := math.Abs(f.difference()); {
	case slices.Contains(incomparable, f.why):
		n.incomparable++
	case off <= samePct:
		n.same++
	case off <= nearPct:
		n.near++
	default:
		n.far++
	}
}

// countAgreement counts a paper's figures.
func countAgreement(r *reproducedPaper) agreementCount {
	var n agreementCount
	for _, f := range withPaperValue(figuresOf([]*reproducedPaper{r})) {
		n.add(&f)
	}
	return n
}

// tallyTable is a row for each paper.
func tallyTable(all []*reproducedPaper) *report.Table {
	rows := make([][]report.Value, len(all))
	for i, r := range all {
		n := countAgreement(r)
		rows[i] = []report.Value{
			report.Text(r.paper.name), report.Count(n.same), report.Count(n.near), report.Count(n.far),
			report.Count(n.incomparable), report.Text(r.paper.page),
		}
	}
	return &report.Table{
		Columns: []report.Column{
			{Head: "of", Left: true},
			{Head: "within 1 %"},
			{Head: "within 10 %"},
			{Head: "farther off"},
			{Head: "not comparable"},
			{Head: "more in", Left: true},
		},
		Len: len(rows), Rows: slices.Values(rows),
	}
}

// figureDigits is how many digits of figures people see.
const figureDigits = 4

// figureTable is a row for each figure. People get numbers in place of reasons,
// which are those of reasons.
func figureTable(list []paperFigure) *report.Table {
	why := reasons(list)
	return &report.Table{
		Columns: []report.Column{
			{Key: "of", Head: "of", Left: true},
			{Key: "section", Head: "section", Left: true},
			{Key: "what", Head: "what", Left: true},
			{Key: "ours", Head: "ours", Digits: figureDigits},
			{Key: "paper", Head: "paper", Digits: figureDigits},
			{Key: "unit", Head: "unit", Left: true},
			{Head: "deviation"},
			{Key: "deviation_pct"},
			{Head: "why"},
			{Key: "why"},
		},
		Len: len(list),
		Rows: func(yield func([]report.Value) bool) {
			for i := range list {
				f := &list[i]
				none := report.Value{}
				row := []report.Value{
					report.Text(f.of.name), report.Text(f.section), report.Text(f.what),
					report.Number(f.ours),
					none, report.Text(f.unit), none, none, none, report.Text(f.why),
				}
				if f.paper != 0 {
					row[4], row[6], row[7] = report.Number(f.paper), report.Text(f.differenceText()),
						report.Number(f.difference())
				}
				if f.why != "" {
					row[8] = report.Count(1 + slices.Index(why, f.why))
				}
				if !yield(row) {
					return
				}
			}
		},
	}
}

// reasons are why figures differ, each once.
func reasons(list []paperFigure) []string {
	var why []string
	for i := range list {
		if w := list[i].why; w != "" && !slices.Contains(why, w) {
			why = append(why, w)
		}
	}
	return why
}

// summaryText is the summary for people: figures that the papers state, why
// they differ, and how many do.
func summaryText(all []*reproducedPaper, opts *report.TextOptions) func(io.Writer) error {
	return func(w io.Writer) error {
		out := bufio.NewWriter(w)
		list := withPaperValue(figuresOf(all))
		if err := figureTable(list).WriteText(out, opts); err != nil {
			return err
		}
		_, _ = out.WriteString("\nWhy\n")
		for i, why := range reasons(list) {
			_, _ = fmt.Fprintf(out, "%3d  %s\n", i+1, why)
		}
		_, _ = out.WriteString("\nNotes\n")
		for _, r := range all {
			for _, note := range r.notes {
				_, _ = fmt.Fprintf(out, "  %-7s  %s\n", r.paper.name, note)
			}
		}
		_, _ = out.WriteString("\n")
		if err := tallyTable(all).WriteText(out, opts); err != nil {
			return err
		}
		return out.Flush()
	}
}
