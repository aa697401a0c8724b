package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// jobPage is everything that is known of a job.
func jobPage(ctx context.Context, r *Request) (*View, error) {
	text := r.PathValue("id")
	ref, err := slurm.ParseJobRef(text)
	if err != nil || ref.Step != "" || ref.Het || ref.Array && ref.Task < 0 {
		return nil, notFound("There is no job "+text+".",
			"Jobs have numbers, such as 4711, and tasks of arrays an index, such as 4711_3.")
	}
	v, err := r.Source.Job(ctx, text)
	if isRefused(err) {
		return nil, notFound("Job "+text+" isn't known.",
			"Jobs without GPUs, and those that ended before epd was there, aren't; users see only their own.")
	}
	if err != nil {
		return nil, err
	}
	id := ref.Job
	if v.Job != nil {
		id = slurm.JobID(v.Job.ID) //nolint:gosec // ids of Slurm's have 32 bits
	}
	series, err := r.Source.Series(ctx, id)
	if isRefused(err) {
		series, err = &epdapi.JobSeries{}, nil
	}
	if err != nil {
		return nil, err
	}
	title := "Job " + id.String()
	if v.Job != nil && v.Job.ArrayID != "" {
		title += " (" + v.Job.ArrayID + ")"
	}
	if v.Job != nil && v.Job.Name != "" {
		title += ": " + jobNameCell(v.Job.Name, "").Text
	}
	shown := &View{Title: title, Back: page.Link{Text: "Jobs", Href: "/jobs"}}
	about := shown.add("about", "", aboutJob(v, r)...)
	if v.Job != nil {
		about.State = fmt.Sprintf("Job %d: %s", v.Job.ID, orDash(v.Job.State))
	}
	shown.add("why", "Why these clocks", whyParts(v)...)
	if len(v.Outcomes) > 0 {
		shown.add("measured", "Predicted and measured", measuredParts(v, nodesWithPages(ctx, r))...)
	}
	shown.add("stays", "Where its clock stayed", residencyParts(v)...)
	shown.add("series", "Over time", seriesParts(v, series, r.Now)...)
	if levers, err := leversFor(ctx, r); err == nil && levers != nil {
		shown.add("levers", "In Slurm's queue", jobLevers(levers, id)...)
	}
	shown.add("history", "What happened", historyTable(v), jsonLinks(id))
	return shown, nil
}

// aboutJob returns what Slurm knows of a job, and what its user wished.
func aboutJob(v *epdapi.JobView, r *Request) []any {
	parts := view.Job(v).Parts()
	facts, _ := parts[0].(page.Facts)
	for i := range facts {
		if facts[i].Name == "Workload" && v.Job.Workload != "" {
			facts[i].Href = workloadLink(v, r)
		}
	}
	return parts
}

// workloadLink leads to a job's workload: its models for those who may see them,
// else its jobs.
func workloadLink(v *epdapi.JobView, r *Request) string {
	if n := len(v.Decisions); n > 0 && r.Viewer.SeesAll() && v.Decisions[n-1].GPUModel != "" &&
		v.Decisions[n-1].Workload == v.Job.Workload {
		return workloadHref(v.Job.Workload, v.Decisions[n-1].GPUModel)
	}
	return withQuery("/jobs", (&epdapi.JobQuery{Workload: v.Job.Workload}).Values())
}

// whyParts say why a job has its clocks, and what else there was.
func whyParts(v *epdapi.JobView) []any {
	if len(v.Decisions) == 0 {
		return undecidedParts(v)
	}
	var parts []any
	for i, d := range slices.Backward(v.Decisions) {
		group := []any{view.Decision(&v.Decisions[i]).Page()}
		if d.Default != nil {
			group = append(group, view.Points(d.Model, d.GPUModel, d.Default, d.Chosen).Page())
		}
		one := &page.Group{Heading: "On " + orDash(d.Node) + ", " + view.DateTime(d.Created), Parts: group}
		if i == len(v.Decisions)-1 {
			parts = append(parts, one)
			continue
		}
		parts = append(parts, &page.Details{
			Summary: "Earlier: " + orDash(d.Node) + ", " + view.DateTime(d.Created), Parts: []any{one},
		})
	}
	return parts
}

// undecidedParts say what would be decided if the job started now.
func undecidedParts(v *epdapi.JobView) []any {
	if len(v.MissedProlog) > 0 {
		return []any{page.Text(v.UndecidedWords())}
	}
	if v.Estimate == nil {
		return []any{page.Text("Nothing was decided. Clocks are chosen when a job starts.")}
	}
	e := v.Estimate
	parts := []any{page.Text("Nothing is decided before it starts. If it started now:")}
	if e.Reason != "" {
		parts = append(parts, page.Text(e.Reason))
	}
	for i := range e.Models {
		m := &e.Models[i]
		set := "These clocks would not be set: mode " + e.Mode + "."
		if m.Apply {
			set = "These clocks would be set."
		}
		group := []any{page.Text(m.Reason), page.Text(set)}
		if m.Default != nil {
			group = append(group, view.Points(m.Model, m.GPUModel, m.Default, m.Chosen).Page())
		}
		parts = append(parts, &page.Group{Heading: "On " + m.GPUModel, Parts: group})
	}
	if expected := view.Forecast(e.Forecast, &e.Factors); expected != nil {
		parts = append(parts, expected.Page())
	}
	return parts
}

// nodesWithPages returns the addresses of the nodes that are known, by name: one where a
// job ran may be gone since.
func nodesWithPages(ctx context.Context, r *Request) map[string]string {
	pages := make(map[string]string)
	if list, err := r.Source.Nodes(ctx); err == nil {
		for i := range list.Nodes {
			pages[list.Nodes[i].Name] = view.NodeHref(list.Nodes[i].Name)
		}
	}
	return pages
}

// measuredParts put what runs took beside what was predicted.
func measuredParts(v *epdapi.JobView, nodes map[string]string) []any {
	t := &page.Table{
		ID: "measured-table", Caption: "Each run beside its prediction",
		Note: "A run is this job on one node.",
		Columns: []page.Column{
			{Head: "Node"},
			{Head: "Ended"},
			{Head: "Locked"},
			{Head: "Time", Number: true},
			{Head: "Predicted", Unit: "time", Number: true},
			{Head: "Off by", Number: true},
			{Head: "GPU energy", Number: true},
			{Head: "Predicted", Unit: "energy", Number: true},
			{Head: "Off by", Number: true},
			{Head: "Measured by"},
			{Head: "Power limit", Number: true},
			{Head: "In use", Number: true},
		},
	}
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		var time, energy live.Number
		if d := v.DecisionOf(o); d != nil {
			time, energy = d.TimeS.Value, d.EnergyJ.Value
		}
		took := o.TimeS.Else(o.Restarted.TimeS)
		times := commonTimeFormat(took, time)
		node := page.Cell{Text: orDash(o.Node), Href: nodes[o.Node]}
		t.Rows = append(t.Rows, []page.Cell{
			node, stateCell(o.ExitState),
			clocksCell(o.Setting),
			{Text: times(took)},
			{Text: times(time)},
			{Text: againstPredicted(o.TimeS, time)},
			{Text: joulesOrDash(o.GPUEnergyJ.Else(o.Restarted.GPUEnergyJ))},
			{Text: joulesOrDash(energy)},
			{Text: againstPredicted(o.GPUEnergyJ, energy)},
			{Text: cmp.Or(o.EnergySource().Words(), dash)},
			{Text: numberOrDash(o.CapW, wattsText)},
			{Text: numberOrDash(o.Utilisation, report.FormatPercent)},
		})
	}
	return slices.Concat([]any{t}, restartParts(v), implausibleParts(v), limitParts(v), noteParts(v),
		throttleParts(v))
}

// noteParts say what became of the runs' clocks.
func noteParts(v *epdapi.JobView) []any {
	const most = 10
	var items []string
	for i := range v.Outcomes {
		for _, note := range v.Outcomes[i].Remarks() {
			items = append(items, orDash(v.Outcomes[i].Node)+": "+note)
		}
	}
	return noticeOf(page.Info, "Of its clocks:", items[:min(len(items), most)])
}

// implausibleParts say what of the runs' outcomes can't be.
func implausibleParts(v *epdapi.JobView) []any {
	const most = 10
	var items []string
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; !o.Implausible.IsZero() && len(items) < most {
			items = append(items, orDash(o.Node)+": "+o.Implausible.Why)
		}
	}
	return noticeOf(page.Warn, "This came with its outcomes, can't be, and counts nowhere:", items)
}

// noticeOf returns a notice with some items; nothing without any.
func noticeOf(kind page.Severity, text string, items []string) []any {
	if len(items) == 0 {
		return nil
	}
	return []any{&page.Notice{Kind: kind, Text: text, Items: items}}
}

// restartParts say which runs epd was restarted under, Slurm suspended, or ended late,
// and what that means.
func restartParts(v *epdapi.JobView) []any {
	var nodes [3][]string
	for i := range v.Outcomes {
		switch o := &v.Outcomes[i]; {
		case o.Restarted.Suspended:
			nodes[1] = append(nodes[1], orDash(o.Node))
		case o.Restarted.Late:
			nodes[2] = append(nodes[2], orDash(o.Node))
		case !o.Restarted.IsZero():
			nodes[0] = append(nodes[0], orDash(o.Node))
		}
	}
	var parts []any
	for i, text := range [len(nodes)]string{
		"epd was restarted while it ran on %s, which gave its clocks back.",
		"It was suspended for a while on %s.",
		"Something ran before its Epilog on %s.",
	} {
		if len(nodes[i]) > 0 {
			parts = append(parts, &page.Notice{Kind: page.Info, Text: fmt.Sprintf(text+
				" Its time and energy are shown, and count in no model and no saving.", strings.Join(nodes[i], ", "))})
		}
	}
	return parts
}

// limitParts say under which runs the power limit was changed.
func limitParts(v *epdapi.JobView) []any {
	const most = 10
	var items []string
	for i := range v.Outcomes {
		if s, ok := v.Outcomes[i].OtherCapsS.Get(); ok && len(items) < most {
			items = append(items, fmt.Sprintf("%s: another one for %s", orDash(v.Outcomes[i].Node),
				report.FormatSeconds(s)))
		}
	}
	return noticeOf(page.Warn, "The power limit was changed while it ran:", items)
}

// throttleParts say for how long GPUs were slower than they were told to be.
func throttleParts(v *epdapi.JobView) []any {
	var items []string
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		for _, reason := range slices.Sorted(maps.Keys(o.ThrottledS)) {
			items = append(items, fmt.Sprintf("%s: %s for %s", orDash(o.Node), reason,
				report.FormatSeconds(o.ThrottledS[reason])))
		}
	}
	const most = 10
	if more := len(items) - most; more > 0 {
		items = append(items[:most], report.FormatCount(more)+" more, see all of it as JSON")
	}
	return noticeOf(page.Warn, "GPUs were throttled:", items)
}

// jobLevers returns what levers do, or would, about a job.
func jobLevers(l *epdapi.Levers, id slurm.JobID) []any {
	var items []string
	if at := slices.Index(l.Order, id); at >= 0 {
		items = append(items,
			"its place in the wanted order is "+strconv.Itoa(at+1)+" of "+report.FormatCount(len(l.Order)))
	}
	for i := range l.Advice {
		if l.Advice[i].Job == id {
			items = append(items, l.Advice[i].Text)
		}
	}
	if slices.Contains(l.Left, id) {
		items = append(items, "it is left alone: somebody else changed its Nice or what it prefers")
	}
	return noticeOf(page.Info, "Levers and advice:", items)
}

// jsonLinks lead to the same as JSON.
func jsonLinks(id slurm.JobID) any {
	path := epdapi.PathJobs + "/" + id.String()
	return renderTemplate("json", []page.Link{
		{Text: "All of it", Href: path}, {Text: "the time series", Href: path + epdapi.SuffixSeries},
	})
}
