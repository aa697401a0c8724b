package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/paperdiff"
)

// paperFigure is a figure of a paper, computed anew, beside the paper's.
type paperFigure struct {
	finding
	of  *paper
	why string // what sets the two apart; empty: nothing worth saying
}

func figuresOf(all []*reproducedPaper) []paperFigure {
	var list []paperFigure
	for _, r := range all {
		for _, f := range r.findings {
			figure := paperFigure{finding: f, of: r.paper}
			if f.paper != 0 {
				figure.why = paperdiff.Why(r.paper.name, f.section, f.what)
			}
			list = append(list, figure)
		}
	}
	return list
}

func withPaperValue(list []paperFigure) []paperFigure {
	return slices.DeleteFunc(slices.Clone(list), func(f paperFigure) bool { return f.paper == 0 })
}

// isFraction reports whether the figure is a part of something, so that a
// difference means more than a ratio.
func (f *finding) isFraction() bool {
	return strings.HasPrefix(f.unit, "%") || f.unit == "GRAR" || f.unit == "load"
}

// difference returns how far ours is from the paper's figure, per cent of it, or
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
	case paperdiff.IsIncomparable(f.why):
		n.incomparable++
	case off <= samePct:
		n.same++
	case off <= nearPct:
		n.near++
	default:
		n.far++
	}
}

func countAgreement(r *reproducedPaper) agreementCount {
	var n agreementCount
	for _, f := range withPaperValue(figuresOf([]*reproducedPaper{r})) {
		n.add(&f)
	}
	return n
}

func tallyTable(all []*reproducedPaper) *report.Table {
	return report.TableOf(all, func(row *report.Row, r **reproducedPaper) {
		n := countAgreement(*r)
		row.Add(report.Column{Head: "of", Left: true}, report.Text((*r).paper.name))
		row.Add(report.Column{Head: "within 1 %"}, report.Count(n.same))
		row.Add(report.Column{Head: "within 10 %"}, report.Count(n.near))
		row.Add(report.Column{Head: "farther off"}, report.Count(n.far))
		row.Add(report.Column{Head: "not comparable"}, report.Count(n.incomparable))
		row.Add(report.Column{Head: "more in", Left: true}, report.Text((*r).paper.page))
	})
}

// figureTable returns a row for each figure. People get numbers in place of reasons,
// which are those of reasons.
func figureTable(list []paperFigure) *report.Table {
	const digits = 4
	why := reasons(list)
	return report.TableOf(list, func(row *report.Row, f *paperFigure) {
		var theirs, text, deviation, reason report.Value
		if f.paper != 0 {
			theirs, text = report.Number(f.paper), report.Text(f.differenceText())
			deviation = report.Number(f.difference())
		}
		if f.why != "" {
			reason = report.Count(1 + slices.Index(why, f.why))
		}
		row.Add(report.Column{Key: "of", Head: "of", Left: true}, report.Text(f.of.name))
		row.Add(report.Column{Key: "section", Head: "section", Left: true}, report.Text(f.section))
		row.Add(report.Column{Key: "what", Head: "what", Left: true}, report.Text(f.what))
		row.Add(report.Column{Key: "ours", Head: "ours", Digits: digits}, report.Number(f.ours))
		row.Add(report.Column{Key: "paper", Head: "paper", Digits: digits}, theirs)
		row.Add(report.Column{Key: "unit", Head: "unit", Left: true}, report.Text(f.unit))
		row.Add(report.Column{Head: "deviation"}, text)
		row.Add(report.Column{Key: "deviation_pct"}, deviation)
		row.Add(report.Column{Head: "why"}, reason)
		row.Add(report.Column{Key: "why"}, report.Text(f.why))
	})
}

func reasons(list []paperFigure) []string {
	var why []string
	for i := range list {
		if w := list[i].why; w != "" && !slices.Contains(why, w) {
			why = append(why, w)
		}
	}
	return why
}

// summaryText returns the summary for people: figures that the papers state, why
// they differ, and how many do.
func summaryText(all []*reproducedPaper, opts *report.TextOptions) string {
	var b strings.Builder
	list := withPaperValue(figuresOf(all))
	b.WriteString(figureTable(list).Text(opts) + "\nWhy\n")
	for i, why := range reasons(list) {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, why)
	}
	b.WriteString("\nNotes\n")
	for _, r := range all {
		for _, note := range r.notes {
			fmt.Fprintf(&b, "  %-7s  %s\n", r.paper.name, note)
		}
	}
	b.WriteString("\n" + tallyTable(all).Text(opts))
	return b.String()
}
