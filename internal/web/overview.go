package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/live"
)

// overviewPage returns the cluster at a glance.
func overviewPage(ctx context.Context, r *Request) (*View, error) {
	o, err := r.Source.Overview(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := r.Source.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	health, saved := healthOf(o, nodes, r), view.Savings(&o.Savings)
	v := &View{Title: "Overview of " + orDash(o.Status.Cluster), Lead: modeLead(&o.Status)}
	waiting, err := waitingParts(ctx, r)
	if err != nil {
		return nil, err
	}
	v.add("summary", "", summaryTiles(o, saved, r))
	if !health.good {
		v.add("health", "Health", health.parts...).State = health.state
	}
	v.add("now", "Power, queue and clocks", &page.Group{Columns: true, Parts: []any{
		&page.Group{Parts: append([]any{view.PowerOverTime(o.Hours)}, waiting...)},
		&page.Group{Parts: []any{clocksTable(nodes), view.Months(o)}},
	}})
	if health.good {
		v.add("health", "Health", health.parts...).State = health.state
	}
	v.add("days", "The last days", &page.Group{Columns: true, Parts: []any{
		&page.Group{Parts: daysParts(o)}, modesTable(&o.Status),
	}})
	measured := saved.Parts("measured", "how")
	facts := min(1, len(measured)) // stand first
	v.add("savings", "What was saved", &page.Group{Columns: true, Parts: []any{
		&page.Group{Parts: measured[:facts]}, &page.Group{Parts: measured[facts:]},
	}})
	if r.Viewer.Role > login.Anonymous {
		advice, err := adviceParts(ctx, r, o)
		if err != nil {
			return nil, err
		}
		v.add("advice", "What epd would do, and what it moves", advice...)
		v.add("decisions", "The last decisions", decisionsTable(o.Decisions, r))
	}
	return v, nil
}

// waitingParts returns who waits, if the viewer may know anybody.
func waitingParts(ctx context.Context, r *Request) ([]any, error) {
	if r.Viewer.Role <= login.Anonymous {
		return nil, nil
	}
	q, err := r.Source.Queue(ctx)
	if isUnavailable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []any{view.Waiting(q)}, nil
}

// modeLead says in a sentence what epd does to jobs.
func modeLead(s *epdapi.ControllerStatus) string {
	some := func(mode live.Mode) bool {
		return s.Mode == mode || slices.Contains(slices.Collect(maps.Values(s.Modes)), mode)
	}
	switch {
	case some(live.Enforce):
		return "epd chooses clocks and sets them, where the mode is enforce."
	case some(live.Advise):
		return "epd only says what it would do: no clock is touched."
	}
	return "epd observes: no clock is touched, and what jobs take is recorded."
}

// summaryTiles returns the figures that matter most.
func summaryTiles(o *epdapi.Overview, saved *view.View, r *Request) page.Tiles {
	tiles := slices.DeleteFunc(saved.Tiles, func(t page.Tile) bool { return t.ID == "" })
	tiles = append(tiles, powerTile(&o.Power))
	if !o.Queue.At.IsZero() {
		tiles = append(tiles, page.Tile{
			Label: "GPU jobs", Value: report.FormatCount(o.Queue.Running) + " running",
			Note: report.FormatCount(o.Queue.Pending) + " waiting, by Slurm " + ago(o.Queue.At, r.Now),
			ID:   "queued",
		})
	}
	return append(tiles, page.Tile{
		Label: "Decisions", Value: report.FormatCount(int(o.Status.Decisions)),
		Note: fmt.Sprintf("%s set, %s held out; epd started %s", report.FormatCount(int(o.Status.Applied)),
			report.FormatCount(int(o.Status.HeldOut)), ago(o.Status.Started, r.Now)),
	})
}

// daysParts returns what ended on the last days. Days on which nothing did are left out.
func daysParts(o *epdapi.Overview) []any {
	t := &page.Table{
		ID: "days-table", Caption: "Runs that ended, by day",
		Note:  "Days in UTC, the last one first. A run is a job on one node.",
		Empty: "no run ended in these days",
		Columns: []page.Column{
			{Head: "Day"},
			{Head: "Runs", Number: true},
			{Head: "Completed", Number: true},
			{Head: "Treated", Number: true},
			{Head: "Held out", Number: true},
			{Head: "GPU energy", Number: true},
			{Head: "Measured", Unit: "runs", Number: true},
		},
	}
	const constantAt = 5 // its column
	constant := slices.ContainsFunc(o.Days, func(d epdapi.Day) bool { return d.Constant > 0 })
	if constant {
		t.Columns = slices.Insert(t.Columns, constantAt, page.Column{Head: "Constant", Number: true})
	}
	for _, d := range slices.Backward(o.Days) {
		if d.Runs == 0 {
			continue
		}
		cells := page.Cells(d.Day.UTC().Format("2006-01-02"), report.FormatCount(int(d.Runs)),
			report.FormatCount(int(d.Completed)),
			report.FormatCount(int(d.Treated)), report.FormatCount(int(d.HeldOut)), joulesText(d.GPUEnergyJ),
			report.FormatCount(int(d.Measured)))
		if constant {
			cells = slices.Insert(cells, constantAt, page.Cell{Text: report.FormatCount(int(d.Constant))})
		}
		t.Rows = append(t.Rows, cells)
	}
	parts := []any{daysPicture(o, t)}
	if len(o.States) > 0 {
		ended := make([]string, 0, len(o.States))
		for _, s := range o.States {
			ended = append(ended, report.FormatCount(int(s.Runs))+" "+cmp.Or(s.State, "in an unknown way"))
		}
		parts = append(parts, page.Text("They ended: "+strings.Join(ended, ", ")+"."))
	}
	return parts
}

// daysPicture returns the energy of the last days, over the table of them; without
// any run it is the table alone.
func daysPicture(o *epdapi.Overview, t *page.Table) any {
	if len(t.Rows) == 0 {
		return t
	}
	most := 0.0
	for i := range o.Days {
		most = max(most, o.Days[i].GPUEnergyJ/dvfsmodel.JoulesPerKWh)
	}
	factor, unit := unitChooser([]displayUnit{
		{2e6, 1e6, "GWh"}, {2e3, 1e3, "MWh"}, {.2, 1, "kWh"}, {0, 1e-3, "Wh"},
	})(most)
	line := report.Series{Name: "GPU energy, where measured"}
	for i, d := range o.Days {
		line.X = append(line.X, float64(i+1-len(o.Days)))
		line.Y = append(line.Y, d.GPUEnergyJ/dvfsmodel.JoulesPerKWh/factor)
	}
	chart := report.Chart{
		Title: "Energy by day", X: "days from today", Y: unit, Zero: true, Half: true, Lines: []report.Series{line},
	}
	return &page.Figure{
		ID: "days-figure", Caption: "What ended in the last " + report.FormatCount(len(o.Days)) +
			" days. Today isn't over.", Numbers: t,
		SVG: report.InlineCharts("days-chart", "GPU energy by day", []report.Chart{chart}),
	}
}

// modesTable returns what epd does by partition.
func modesTable(s *epdapi.ControllerStatus) *page.Table {
	t := &page.Table{
		Caption: "Mode of each partition", Columns: []page.Column{{Head: "Partition"}, {Head: "Mode"}},
	}
	others := "all"
	if len(s.Modes) > 0 {
		others = "all others"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Modes)) {
		t.Rows = append(t.Rows, []page.Cell{{Text: name}, modeCell(s.Modes[name])})
	}
	t.Rows = append(t.Rows, []page.Cell{{Text: others}, modeCell(s.Mode)})
	t.More = fmt.Sprintf("Configuration %s; %s of the jobs are held out", orDash(s.ConfigVersion),
		statedShare(s.HoldOut))
	if s.ConstantArm > 0 {
		t.More += ", " + statedShare(s.ConstantArm) + " are drawn for constant clocks"
	}
	t.More += "."
	return t
}

func modeCell(m live.Mode) page.Cell {
	c := page.Cell{Text: string(m), Badge: true}
	switch m {
	case live.Enforce:
		c.Kind = page.Good
	case live.Advise:
		c.Kind = page.Info
	case live.Observe:
	}
	return c
}
