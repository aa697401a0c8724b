package reproduction

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/report"
)

// Paper is a paper whose figures and tables can be computed anew.
type Paper struct {
	Name, Title string   // Name is of its command
	Page        string   // of the documentation
	Sections    []string // in which its numbers are computed
}

// Finding is a number computed anew, and the paper's.
type Finding struct {
	Section, What string
	Unit          string
	Ours          float64
	Paper         float64 // 0: the paper gives none
}

// Result is what a paper's figures and tables come to.
type Result struct {
	Paper    *Paper
	Findings []Finding
	Table    *report.Table // as the paper's own command prints it
	Curves   []Curves
	Drawn    string   // the random input of the table
	Notes    []string // on the table
}

// Curves are charts in full, of one family of the PWR+FGD paper's traces.
type Curves struct {
	Family string
	Charts []report.Chart // one for each of curveSections, and more
}

// Table returns a row for each finding.
func Table(paper *Paper, findings []Finding) *report.Table {
	const digits = 5
	return report.TableOf(findings, func(row *report.Row, f *Finding) {
		row.Add(report.Column{Key: "section", Head: "section", Left: true}, report.Text(f.Section))
		row.Add(InPaper(), report.NonEmpty(paper.Shown(f)))
		row.Add(report.Column{Key: "what", Head: "what", Left: true}, report.Text(f.What))
		row.Add(report.Column{Key: "ours", Head: "ours", Digits: digits}, report.Number(f.Ours))
		row.Add(report.Column{Key: "paper", Head: "paper", Digits: digits}, report.NonZero(f.Paper))
		row.Add(report.Column{Key: "unit", Head: "unit", Left: true}, report.Text(f.Unit))
	})
}

// InPaper returns the column with the figures and tables of the paper that have a finding.
func InPaper() report.Column { return report.Column{Head: "in the paper", Left: true} }

// explained is a finding with its paper, and why the two numbers differ.
type explained struct {
	Finding
	of  *Paper
	why string // empty: nothing worth saying
}

func explain(all []*Result) []explained {
	var list []explained
	for _, r := range all {
		for _, f := range r.Findings {
			one := explained{Finding: f, of: r.Paper}
			if f.Paper != 0 {
				one.why = Why(r.Paper.Name, f.Section, f.What)
			}
			list = append(list, one)
		}
	}
	return list
}

func withPaperValue(list []explained) []explained {
	return slices.DeleteFunc(slices.Clone(list), func(f explained) bool { return f.Paper == 0 })
}

// isFraction reports whether the figure is a part of something, so that a
// difference means more than a ratio.
func (f *Finding) isFraction() bool {
	return strings.HasPrefix(f.Unit, "%") || f.Unit == "GRAR" || f.Unit == "load"
}

// difference returns how far ours is from the paper's figure, per cent of it, or
// percentage points.
func (f *Finding) difference() float64 {
	switch {
	case strings.HasPrefix(f.Unit, "%"):
		return f.Ours - f.Paper
	case f.isFraction():
		return 100 * (f.Ours - f.Paper)
	}
	return 100 * (f.Ours/f.Paper - 1)
}

func (f *Finding) differenceText() string {
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

// agreementCount counts figures by how far they are from the paper's.
type agreementCount struct{ same, near, far, incomparable int }

func (n *agreementCount) add(f *explained) {
	switch off := math.Abs(f.difference()); {
	case isIncomparable(f.why):
		n.incomparable++
	case off <= samePct:
		n.same++
	case off <= nearPct:
		n.near++
	default:
		n.far++
	}
}

func countAgreement(r *Result) agreementCount {
	var n agreementCount
	for _, f := range withPaperValue(explain([]*Result{r})) {
		n.add(&f)
	}
	return n
}
