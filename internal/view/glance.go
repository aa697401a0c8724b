package view

import (
	"cmp"
	"maps"
	"net/url"
	"slices"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// PowerOverTime returns the picture of what the GPUs of jobs used over the last hours and would have used at
// default clocks, or why there is none.
func PowerOverTime(hours []epdapi.HourPower) any {
	most := 0.0
	for i := range hours {
		most = max(most, hours[i].UsedW, hours[i].DefaultW)
	}
	if most <= 0 {
		return page.Text("No job whose GPU energy is known ended in the last " +
			report.FormatCount(epdapi.OverviewHours) + " hours.")
	}
	factor, unit := 1.0, "W"
	if most >= 2000 {
		factor, unit = 1000, "kW"
	}
	used, byDefault, held := report.Series{Name: "used"},
		report.Series{Name: "at default clocks, by the models", Mark: report.Dashed},
		report.Series{Name: "held out", Color: 8}
	for i := range hours {
		h := &hours[i]
		for _, at := range []float64{0, 1} { // a step for each hour
			x := float64(i-len(hours)) + at
			used.X, used.Y = append(used.X, x), append(used.Y, h.UsedW/factor)
			byDefault.X, byDefault.Y = append(byDefault.X, x), append(byDefault.Y, h.DefaultW/factor)
			held.X, held.Y = append(held.X, x), append(held.Y, h.HeldOutW/factor)
		}
	}
	used.Low, used.High = used.Y, byDefault.Y // saved
	chart := report.Chart{
		Title: "Power over time", X: "hours from now", Y: unit, Zero: true, Half: true,
		Lines: []report.Series{used, byDefault, held},
	}
	return &page.Figure{
		ID: "power-figure", Numbers: hoursTable(hours),
		SVG: report.InlineCharts("power-chart", "GPU power of jobs by hour", []report.Chart{chart}),
		Caption: "Mean GPU power of jobs by hour. The area is what was saved, by the models. A job counts once " +
			"it has ended.",
	}
}

// hoursTable returns the hours, the last one first.
func hoursTable(hours []epdapi.HourPower) *page.Table {
	t := &page.Table{Caption: "GPU power of jobs by hour", Columns: []page.Column{
		{Head: "From"},
		{Head: "Used", Number: true},
		{Head: "At default clocks", Number: true},
		{Head: "Held out", Number: true},
	}}
	for _, h := range slices.Backward(hours) {
		t.Rows = append(t.Rows, page.Cells(h.From.Local().Format("2006-01-02 15:04"), report.FormatWatts(h.UsedW),
			report.FormatWatts(h.DefaultW), report.FormatWatts(h.HeldOutW)))
	}
	return t
}

// Months returns this month beside the last one, as far as the overview knows them.
func Months(o *epdapi.Overview) *page.Table {
	t := &page.Table{
		ID: "months-table", Caption: "This month and last", Note: "By the end of runs, in UTC.",
		Columns: []page.Column{{Head: ""}},
	}
	row := func(name string, value func(m *epdapi.Day) string) {
		cells := page.Cells(name)
		for i := range o.Months {
			cells = append(cells, page.Cell{Text: value(&o.Months[i])})
		}
		t.Rows = append(t.Rows, cells)
	}
	for i := range o.Months {
		head := o.Months[i].Day.UTC().Format("January")
		if i == 0 {
			head += " so far"
		}
		t.Columns = append(t.Columns, page.Column{Head: head, Number: true})
	}
	row("Runs", func(m *epdapi.Day) string { return report.FormatCount(int(m.Runs)) })
	row("Completed", func(m *epdapi.Day) string { return report.FormatCount(int(m.Completed)) })
	row("Held out", func(m *epdapi.Day) string { return report.FormatCount(int(m.HeldOut)) })
	row("GPU energy", func(m *epdapi.Day) string { return report.EnergyText(m.GPUEnergyJ) })
	row("Node energy", func(m *epdapi.Day) string { return report.EnergyText(m.NodeJ) })
	row("Saved, measured", monthSaving)
	row("Cost", func(m *epdapi.Day) string {
		return cmp.Or(FootprintText(&o.Savings.Factors, max(m.NodeJ, m.GPUEnergyJ)), "–")
	})
	return t
}

// monthSaving returns what the jobs of a month saved, measured.
func monthSaving(m *epdapi.Day) string {
	if m.Saved == nil {
		return "–"
	}
	best, of := m.Saved.Best()
	if best.Runs == 0 {
		return "too few held-out runs"
	}
	return shareText(best, best.SavedJ) + " of the " + of + " (" + shareText(best, best.LowJ) + " to " +
		shareText(best, best.HighJ) + ")"
}

// maxWaiting is how many users a glance at the queue names.
const maxWaiting = 5

// Waiting returns who waits: users with their pending jobs, those who want the most GPUs first.
func Waiting(q *epdapi.Queue) *page.Table {
	type waiting struct {
		user       string
		jobs, gpus int
		longestS   float64
	}
	byUser := make(map[string]*waiting)
	for i := range q.Jobs {
		j := &q.Jobs[i]
		if j.State != "PENDING" {
			continue
		}
		w := byUser[j.User]
		if w == nil {
			w = &waiting{user: j.User}
			byUser[j.User] = w
		}
		tasks := max(1, j.Tasks)
		w.jobs, w.gpus, w.longestS = w.jobs+tasks, w.gpus+tasks*j.GPUs, max(w.longestS, j.AgeS.Or(0))
	}
	all := slices.SortedFunc(maps.Values(byUser), func(a, b *waiting) int {
		return cmp.Or(cmp.Compare(b.gpus, a.gpus), cmp.Compare(a.user, b.user))
	})
	longest := 0.0
	for _, w := range all {
		longest = max(longest, w.longestS)
	}
	times := report.CommonScale(report.Seconds, report.SignificantDigits, longest)
	t := &page.Table{
		ID: "waiting-table", Caption: "Who waits", Empty: "no job that you may see waits",
		Columns: []page.Column{
			{Head: "User"},
			{Head: "Jobs", Number: true},
			{Head: "GPUs", Number: true},
			{Head: "Longest", Number: true},
		},
	}
	for _, w := range all[:min(len(all), maxWaiting)] {
		t.Rows = append(t.Rows, []page.Cell{
			{Text: cmp.Or(w.user, "–"), Href: "/queue?state=PENDING&user=" + url.QueryEscape(w.user)},
			{Text: report.FormatCount(w.jobs)},
			{Text: report.FormatCount(w.gpus)},
			{Text: times.FormatWithUnit(w.longestS)},
		})
	}
	if more := len(all) - len(t.Rows); more > 0 {
		t.More = "and " + report.Plural(more, "more user") + "; see the queue"
	}
	return t
}
