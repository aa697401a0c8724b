package reproduction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/report"
)

func tallyTable(all []*Result) *report.Table {
	return report.TableOf(all, func(row *report.Row, r **Result) {
		n := countAgreement(*r)
		row.Add(report.Column{Head: "of", Left: true}, report.Text((*r).Paper.Name))
		row.Add(report.Column{Head: "within 1 %"}, report.Count(n.same))
		row.Add(report.Column{Head: "within 10 %"}, report.Count(n.near))
		row.Add(report.Column{Head: "farther off"}, report.Count(n.far))
		row.Add(report.Column{Head: "not comparable"}, report.Count(n.incomparable))
		row.Add(report.Column{Head: "more in", Left: true}, report.Text((*r).Paper.Page))
	})
}

// explainedTable returns a row for each figure. People get numbers in place of reasons,
// which are those of reasons.
func explainedTable(list []explained) *report.Table {
	const digits = 4
	why := reasons(list)
	return report.TableOf(list, func(row *report.Row, f *explained) {
		var theirs, text, deviation, reason report.Value
		if f.Paper != 0 {
			theirs, text = report.Number(f.Paper), report.Text(f.differenceText())
			deviation = report.Number(f.difference())
		}
		if f.why != "" {
			reason = report.Count(1 + slices.Index(why, f.why))
		}
		row.Add(report.Column{Key: "of", Head: "of", Left: true}, report.Text(f.of.Name))
		row.Add(report.Column{Key: "section", Head: "section", Left: true}, report.Text(f.Section))
		row.Add(InPaper(), report.NonEmpty(f.of.Shown(&f.Finding)))
		row.Add(report.Column{Key: "what", Head: "what", Left: true}, report.Text(f.What))
		row.Add(report.Column{Key: "ours", Head: "ours", Digits: digits}, report.Number(f.Ours))
		row.Add(report.Column{Key: "paper", Head: "paper", Digits: digits}, theirs)
		row.Add(report.Column{Key: "unit", Head: "unit", Left: true}, report.Text(f.Unit))
		row.Add(report.Column{Head: "deviation"}, text)
		row.Add(report.Column{Key: "deviation_pct"}, deviation)
		row.Add(report.Column{Head: "why"}, reason)
		row.Add(report.Column{Key: "why"}, report.Text(f.why))
	})
}

func reasons(list []explained) []string {
	var why []string
	for i := range list {
		if w := list[i].why; w != "" && !slices.Contains(why, w) {
			why = append(why, w)
		}
	}
	return why
}

// SummaryText returns the summary for people: figures that the papers state, why
// they differ, and how many do.
func SummaryText(all []*Result, opts *report.TextOptions) string {
	var b strings.Builder
	list := withPaperValue(explain(all))
	b.WriteString(explainedTable(list).Text(opts) + "\nWhy\n")
	for i, why := range reasons(list) {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, why)
	}
	b.WriteString("\nNotes\n")
	for _, r := range all {
		for _, note := range r.Notes {
			fmt.Fprintf(&b, "  %-7s  %s\n", r.Paper.Name, note)
		}
	}
	b.WriteString("\n" + tallyTable(all).Text(opts))
	return b.String()
}

// FullTable returns a row for each figure that was computed, for programs.
func FullTable(all []*Result) *report.Table { return explainedTable(explain(all)) }
