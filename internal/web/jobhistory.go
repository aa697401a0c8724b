package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

// jobEvent is something that happened to a job.
type jobEvent struct {
	at         time.Time
	what, more string
	node       string
}

// historyTable returns what happened to a job, in order.
func historyTable(v *epdapi.JobView) *page.Table {
	t := &page.Table{
		ID: "history-table", Caption: "From submission to the last record", Unnamed: true,
		Columns: []page.Column{{Head: "When"}, {Head: "Where"}, {Head: "What"}, {Head: "Details"}},
	}
	for _, e := range historyOf(v) {
		t.Rows = append(t.Rows, []page.Cell{
			{Text: view.DateTime(e.at)}, {Text: orDash(e.node)}, {Text: e.what, Listed: true}, {Text: e.more},
		})
	}
	return t
}

// historyOf returns the events of a job, by time.
func historyOf(v *epdapi.JobView) []jobEvent {
	var all []jobEvent
	if v.Job != nil {
		all = append(all, jobEvent{at: v.Job.Submitted, what: "submitted", more: "by " + orDash(v.Job.User)})
	}
	if d := v.Submission; d != nil {
		all = append(all, jobEvent{at: d.Created, what: "noted at submission", more: shortReason(d.Reason)})
	}
	for i := range v.Decisions {
		d := &v.Decisions[i]
		all = append(all, jobEvent{
			at: d.Created, node: d.Node, what: "decided: " + d.Setting.Words(), more: shortReason(d.Reason),
		})
	}
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		if !o.Started.IsZero() {
			all = append(all, jobEvent{
				at: o.Started, node: o.Node, what: "started", more: "locked: " + o.Setting.Words(),
			})
		}
		end := jobEvent{
			at: o.Ended, node: o.Node, what: "ended: " + cmp.Or(o.ExitState, "nobody said how"),
			more: report.Plural(len(o.GPUs), "GPU") + clocksSeen(o),
		}
		if o.Unmatched {
			end.more = "its start wasn't seen, so that nothing was measured"
		}
		all = append(all, end)
	}
	slices.SortStableFunc(all, func(a, b jobEvent) int { return a.at.Compare(b.at) })
	return all
}

// clocksSeen returns the clocks that a run's GPUs ran at for longest. Clocks of an
// adapted run, and those that the guard gave back, show here.
func clocksSeen(o *epdapi.Outcome) string {
	const most = 3
	shares := slices.Clone(o.Clocks)
	slices.SortStableFunc(shares, func(a, b live.Residency) int { return cmp.Compare(b.Seconds, a.Seconds) })
	var text strings.Builder
	for _, c := range shares[:min(len(shares), most)] {
		fmt.Fprintf(&text, "; %s for %s", c.Words(), report.FormatSeconds(c.Seconds))
	}
	if len(shares) > most {
		fmt.Fprintf(&text, "; and %d others", len(shares)-most)
	}
	return text.String()
}
