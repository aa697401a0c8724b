package web

import (
	"context"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

// jobStates are the states by which jobs can be listed.
var jobStates = []string{
	"RUNNING", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY",
	"PREEMPTED", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED", "ENDED",
}

// jobsPage returns the jobs that epd decided about, newest first.
func jobsPage(ctx context.Context, r *Request) (*View, error) {
	q := epdapi.JobQuery{
		User: r.Query.Get("user"), Account: r.Query.Get("account"), Partition: r.Query.Get("partition"),
		Workload: r.Query.Get("workload"),
		State:    r.Query.Get("state"), Limit: rowsPerPage,
	}
	if text := r.Query.Get("before"); text != "" {
		before, err := strconv.ParseInt(text, 10, 64)
		if err != nil || before < 0 {
			return nil, badQuery("That is no page of the list.", "Begin again with the newest jobs.")
		}
		q.Before = before
	}
	list, err := r.Source.Jobs(ctx, q.Values())
	if err != nil {
		return nil, err
	}
	lead := "Your jobs with GPUs that started, the ones that were submitted last first."
	if r.Viewer.SeesAll() {
		lead = "Jobs with GPUs that started, the ones that were submitted last first."
	}
	section := Section{ID: "jobs", Still: q.Before > 0, Parts: []any{jobsTable(list.Jobs)}}
	if links := jobsPager(&q, list); len(links) > 0 {
		section.Parts = append(section.Parts, renderTemplate("pager", links))
	}
	return &View{
		Title: "Jobs", Lead: lead, Sections: []Section{
			{ID: "filter", Still: true, Parts: []any{jobsForm(&q, r)}}, section,
		},
	}, nil
}

// jobsForm returns the fields above the list. Users have their own jobs only.
func jobsForm(q *epdapi.JobQuery, r *Request) any {
	var inputs []formInput
	if r.Viewer.SeesAll() {
		inputs = append(inputs, formInput{Name: "user", Label: "User", Value: q.User})
	}
	inputs = append(inputs, formInput{Name: "account", Label: "Account", Value: q.Account},
		formInput{Name: "partition", Label: "Partition", Value: q.Partition},
		formInput{Name: "state", Label: "State", Value: q.State, Options: anyOptions(jobStates)},
		formInput{Name: "workload", Label: "Workload", Value: q.Workload})
	return filterFormHTML("/jobs", inputs...)
}

func jobsTable(jobs []epdapi.JobRow) *page.Table {
	t := &page.Table{
		ID: "jobs-table", Caption: "Jobs",
		Note: "Clocks, and power limits that were set, are those that its runs had, or are to have where no " +
			"agent told of any yet. Time is that of the longest run; energy that of all GPUs, as far as it " +
			"was measured.",
		Empty: "no such job is known",
		Columns: []page.Column{
			{Head: "Job", Number: true},
			{Head: "Name"},
			{Head: "User"},
			{Head: "Partition"},
			{Head: "State"},
			{Head: "Submitted"},
			{Head: "GPUs", Number: true},
			{Head: "Clocks"},
			{Head: "Compared as"},
			{Head: "Time", Number: true},
			{Head: "Energy", Number: true},
		},
	}
	took := make([]live.Number, 0, len(jobs))
	for i := range jobs {
		timeS, _ := jobs[i].TimeAndEnergy()
		took = append(took, timeS)
	}
	times := commonTimeFormat(took...)
	for i := range jobs {
		j := &jobs[i]
		_, energyJ := j.TimeAndEnergy()
		mark := ""
		if !j.Restarted.IsZero() {
			mark, t.More = " *", "* epd was restarted while it ran, its job was suspended, or its Epilog "+
				"late: this counts in no model and no saving."
		}
		t.Rows = append(t.Rows, []page.Cell{
			jobCell(j.ID),
			jobNameCell(j.Name, ""),
			{Text: orDash(j.User)},
			{Text: orDash(j.Partition)},
			stateCell(j.State),
			{Text: view.DateTime(j.Submitted)},
			{Text: report.FormatCount(j.GPUs)},
			ranClocksCell(j),
			{Text: view.ArmWords(j.Arm)},
			{Text: times(took[i]) + mark},
			{Text: joulesOrDash(energyJ) + mark},
		})
	}
	return t
}

// ranClocksCell returns the clocks that a job's runs had.
func ranClocksCell(j *epdapi.JobRow) page.Cell {
	had := j.Settings()
	words := make([]string, len(had))
	for i, s := range had {
		words[i] = s.Words()
	}
	return page.Cell{Text: strings.Join(words, "; "), Listed: true}
}

// jobsPager leads to older jobs, and back to the newest.
func jobsPager(q *epdapi.JobQuery, list *epdapi.JobPage) []page.Link {
	var links []page.Link
	at := *q
	at.Limit = 0
	if q.Before > 0 {
		at.Before = 0
		links = append(links, page.Link{Text: "Newest", Href: withQuery("/jobs", at.Values())})
	}
	if list.Next > 0 {
		at.Before = list.Next
		text := "Older"
		if len(list.Jobs) < rowsPerPage {
			text = "Look further back: as many were looked at as may be at once"
		}
		links = append(links, page.Link{Text: text, Href: withQuery("/jobs", at.Values())})
	}
	return links
}
