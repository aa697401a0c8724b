package web

import (
	"context"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

// maxDecisions is how many decisions the overview shows.
const maxDecisions = 10

// decisionsTable returns the latest decisions on runs.
func decisionsTable(all []epdapi.JobDecision, r *Request) *page.Table {
	whose := "of your jobs"
	if r.Viewer.SeesAll() {
		whose = "of all jobs"
	}
	t := &page.Table{
		ID: "decisions-table", Caption: "The last decisions on runs " + whose,
		Empty: "nothing was decided yet",
		Columns: []page.Column{
			{Head: "Job", Number: true},
			{Head: "Name"},
			{Head: "User"},
			{Head: "When"},
			{Head: "Clocks"},
			{Head: "Expected saving", Number: true},
			{Head: "Why"},
		},
	}
	for i := range all[:min(len(all), maxDecisions)] {
		d := &all[i]
		t.Rows = append(t.Rows, []page.Cell{
			jobCell(d.JobID),
			jobNameCell(d.Name, ""),
			{Text: orDash(d.User)},
			{Text: ago(d.Created, r.Now), Title: view.DateTime(d.Created)},
			decidedClocks(d),
			{Text: joulesOrDash(d.Would)},
			{Text: shortReason(d.Reason)},
		})
	}
	return t
}

// decidedClocks returns what clocks were decided, and whether they were set.
func decidedClocks(d *epdapi.JobDecision) page.Cell {
	text := d.Setting.Words()
	if !d.Apply && d.Setting.Core+d.Setting.Mem > 0 {
		text += ", not set"
	}
	return page.Cell{Text: text, Listed: true}
}

// adviceParts returns what epd would do where it may not, and what it suggests to users.
func adviceParts(ctx context.Context, r *Request, o *epdapi.Overview) ([]any, error) {
	var parts []any
	if advised := advisedDecisions(o); len(advised) > 0 {
		t := &page.Table{
			Caption: "Clocks that would have been set",
			Note:    "By mode advise: these jobs ran at default clocks.",
			Columns: []page.Column{
				{Head: "Job", Number: true},
				{Head: "Name"},
				{Head: "Partition"},
				{Head: "Clocks"},
				{Head: "Would have saved", Number: true},
				{Head: "Why"},
			},
		}
		for _, d := range advised {
			t.Rows = append(t.Rows, []page.Cell{
				jobCell(d.JobID), jobNameCell(d.Name, ""),
				{Text: orDash(d.Partition)},
				clocksCell(d.Setting),
				{Text: joulesOrDash(d.Would)},
				{Text: shortReason(d.Reason)},
			})
		}
		parts = append(parts, t)
	}
	levers, err := leversFor(ctx, r)
	if err != nil {
		return nil, err
	}
	if levers == nil {
		return parts, nil
	}
	return append(parts, view.Levers(&levers.Status).Parts()...), nil
}

// advisedDecisions returns those of partitions in mode advise that would have changed
// something.
func advisedDecisions(o *epdapi.Overview) []*epdapi.JobDecision {
	var all []*epdapi.JobDecision
	for i := range o.Decisions {
		if d := &o.Decisions[i]; d.Mode == string(live.Advise) && d.Setting.Core+d.Setting.Mem > 0 &&
			len(all) < maxDecisions {
			all = append(all, d)
		}
	}
	return all
}

// leversFor returns what is steered in Slurm; nil where nothing is.
func leversFor(ctx context.Context, r *Request) (*epdapi.Levers, error) {
	l, err := r.Source.Levers(ctx)
	if isRefused(err) {
		return nil, nil //nolint:nilnil // Slurm isn't steered from here
	}
	return l, err
}
