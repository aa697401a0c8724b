package web

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// residencyParts returns the clocks that runs stayed at whose clocks were adapted, and for
// how long; nothing where there was no such run.
func residencyParts(v *epdapi.JobView) []any {
	var parts []any
	more := 0
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		switch _, adapted := o.Slowdown.Get(); {
		case len(parts) == maxSeriesRuns && (adapted || len(o.Stays) > 0):
			more++
		case len(o.Stays) > 0:
			parts = append(parts, residencyTable(o))
		case adapted:
			parts = append(parts,
				page.Text("On "+orDash(o.Node)+" others were on its GPUs: "+
					"what it took at which clock isn't known."))
		}
	}
	if more > 0 {
		parts = append(parts, page.Text("and "+report.Plural(more, "further run")+", see all of it as JSON."))
	}
	return parts
}

// residencyTable returns the clocks of one run, the highest first.
func residencyTable(o *epdapi.Outcome) *page.Table {
	t := &page.Table{
		Caption: "Core clocks that the run on " + orDash(o.Node) + " stayed at",
		Note: "At work is for how long something ran on any of its GPUs, as far as their driver shows " +
			"it. Energy and power are those of all of its GPUs.",
		Columns: []page.Column{
			{Head: "Core clock", Number: true},
			{Head: "Time", Number: true},
			{Head: "Of the time"},
			{Head: "At work", Number: true},
			{Head: "GPU energy", Number: true},
			{Head: "Mean power", Number: true},
			{Head: "Came to it", Unit: "times", Number: true},
		},
	}
	stays := slices.SortedFunc(slices.Values(o.Stays), func(a, b dvfsmodel.ClockResidency) int {
		return cmp.Compare(b.Core, a.Core)
	})
	told, longest := dvfsmodel.ResidencySeconds(stays), 0.0
	for i := range stays {
		longest = max(longest, stays[i].Seconds)
	}
	times := report.CommonScale(report.Seconds, timeDigits, longest)
	for i := range stays {
		s := &stays[i]
		power := dash
		if s.Seconds > 0 {
			power = wattsText(float64(s.Energy) / s.Seconds)
		}
		t.Rows = append(t.Rows, []page.Cell{
			{Text: mhzText(s.Core)},
			{Text: times.FormatWithUnit(s.Seconds)},
			shareCell(s.Seconds, told),
			{Text: times.FormatWithUnit(s.Work)},
			{Text: joulesText(float64(s.Energy))},
			{Text: power},
			{Text: report.FormatCount(s.Begun)},
		})
	}
	t.More = residencyNote(o, told)
	return t
}

// residencyNote returns how much longer the run took by adapting its clocks, and for how
// long its clock isn't known.
func residencyNote(o *epdapi.Outcome, told float64) string {
	text := ""
	if slower, ok := o.Slowdown.Get(); ok {
		text = fmt.Sprintf("It took at most %.3f times as long as at default clocks. ", slower)
	}
	const seen = 0.99
	if took, ok := o.TimeS.Get(); ok && told < seen*took {
		text += "For " + report.FormatSeconds(took-told) + " others were on its GPUs, or it wasn't looked at."
	}
	return text
}

// shareCell returns a part of a whole as a bar and in per cent.
func shareCell(of, whole float64) page.Cell {
	if whole <= 0 {
		return page.Cell{Text: dash}
	}
	const width, leastShown = 120, .005
	share := of / whole
	text := fmt.Sprintf("%.0f %%", 100*share)
	if of > 0 && share < leastShown {
		text = "below 1 %"
	}
	return page.Cell{HTML: template.HTML(fmt.Sprintf( //nolint:gosec // our own numbers
		`<span class="whole"><svg class="pic share" width="%d" height="12" aria-hidden="true"><rect class="bar" width="%.1f" height="12"/></svg> %s</span>`, width, max(1, width*share), text))}
}
