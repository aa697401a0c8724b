package web

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

// rowsPerPage is how many rows lists have.
const rowsPerPage = 50

// queuePage is Slurm's queue as epd sees it.
func queuePage(ctx context.Context, r *Request) (*View, error) {
	view := &View{
		Title: "Queue",
		Lead:  "GPU jobs that wait or run, as Slurm lists them, with what epd expects of them.",
	}
	if !r.Viewer.SeesAll() {
		view.Lead = "Your GPU jobs that wait or run, as Slurm lists them, with what epd expects of them."
	}
	q, err := r.Source.Queue(ctx)
	if isUnavailable(err) {
		view.Sections = []Section{{ID: "queue", Parts: []any{&page.Notice{
			Kind: page.Warn, Text: "Slurm's queue isn't known: epd doesn't ask Slurm, or has no answer yet.",
			Items: []string{"With --slurm off it never asks. Otherwise see Health on the overview."},
		}}}}
		return view, nil
	}
	if err != nil {
		return nil, err
	}
	levers, err := leversFor(ctx, r)
	if err != nil {
		return nil, err
	}
	f, err := readQueueFilter(r.Query)
	if err != nil {
		return nil, err
	}
	places := orderPositions(levers)
	jobs := f.matchingJobs(q.Jobs, places)
	from := min(f.page*rowsPerPage, len(jobs))
	shown := jobs[from:min(from+rowsPerPage, len(jobs))]
	parts := []any{queueTable(shown, jobs, q, places, r)}
	if links := f.pager(len(jobs)); links != nil {
		parts = append(parts, links)
	}
	if q.LeftOut > 0 {
		parts = append(parts, &page.Notice{
			Kind: page.Warn, Text: report.FormatCount(q.LeftOut) + " further jobs are too many to list.",
		})
	}
	view.Sections = []Section{
		{ID: "filter", Still: true, Parts: []any{f.form(q.Jobs)}},
		{ID: "queue", Parts: parts},
		{ID: "order", Heading: "Order and levers", Parts: orderParts(levers)},
	}
	if levers != nil && levers.Plan != nil {
		view.Sections = append(view.Sections,
			Section{ID: "plan", Heading: "The plan in force", Parts: planParts(levers.Plan, r)})
	}
	return view, nil
}

// queueFilter is what of the queue is shown.
type queueFilter struct {
	user, partition, state, sort string
	page                         int
}

// queueSorts are the orders of the list, the first one by default.
var queueSorts = []selectOption{
	{"", "as Slurm lists them"},
	{"order", "planned order"},
	{"age", "waiting longest"},
	{"gpus", "most GPUs"},
	{"time", "longest predicted"},
}

func readQueueFilter(q url.Values) (queueFilter, error) {
	f := queueFilter{
		user: q.Get("user"), partition: q.Get("partition"), state: q.Get("state"), sort: q.Get("sort"),
	}
	if !slices.ContainsFunc(queueSorts, func(o selectOption) bool { return o.Value == f.sort }) {
		return f, badQuery("There is no such order of the queue.", "Choose one in the form above the list.")
	}
	if text := q.Get("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1_000_000 {
			return f, badQuery("That is no page of the list.", "Pages are numbered from 1.")
		}
		f.page = n - 1
	}
	return f, nil
}

// queryOf returns the query of a page of the list.
func (f *queueFilter) queryOf(at int) url.Values {
	v := url.Values{}
	for key, value := range map[string]string{
		"user": f.user, "partition": f.partition, "state": f.state,
		"sort": f.sort,
	} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if at > 0 {
		v.Set("page", strconv.Itoa(at+1))
	}
	return v
}

// matchingJobs returns the jobs that are asked for, in the order that is asked for.
func (f *queueFilter) matchingJobs(all []epdapi.QueuedJob, places map[int64]int) []*epdapi.QueuedJob {
	var jobs []*epdapi.QueuedJob
	for i := range all {
		j := &all[i]
		if (f.user == "" || j.User == f.user) &&
			(f.partition == "" || slices.Contains(strings.Split(j.Partition, ","), f.partition)) &&
			(f.state == "" || j.State == f.state) {
			jobs = append(jobs, j)
		}
	}
	apart := map[string]func(a, b *epdapi.QueuedJob) float64{
		"age":  func(a, b *epdapi.QueuedJob) float64 { return b.AgeS.Or(0) - a.AgeS.Or(0) },
		"gpus": func(a, b *epdapi.QueuedJob) float64 { return float64(b.GPUs - a.GPUs) },
		"time": func(a, b *epdapi.QueuedJob) float64 { return b.RuntimeS.Or(0) - a.RuntimeS.Or(0) },
		"order": func(a, b *epdapi.QueuedJob) float64 {
			return float64(positionOrLast(places, a.ID) - positionOrLast(places, b.ID))
		},
	}[f.sort]
	if apart != nil {
		slices.SortStableFunc(jobs, func(a, b *epdapi.QueuedJob) int { return cmp.Compare(apart(a, b), 0) })
	}
	return jobs
}

// orderPositions returns the places of jobs in the wanted order, from 1.
func orderPositions(l *epdapi.Levers) map[int64]int {
	if l == nil || len(l.Order) == 0 {
		return nil
	}
	places := make(map[int64]int, len(l.Order))
	for i, id := range l.Order {
		places[int64(id)] = i + 1
	}
	return places
}

// positionOrLast returns a job's place, or one behind all.
func positionOrLast(places map[int64]int, id int64) int {
	if p, ok := places[id]; ok {
		return p
	}
	return len(places) + 1
}

// queueCaption counts the jobs of a list. Each task of an array is one, as on the
// overview, though those that wait share a row.
func queueCaption(all []*epdapi.QueuedJob) string {
	tasks := 0
	for _, j := range all {
		tasks += max(1, j.Tasks)
	}
	text := "GPU jobs: " + report.FormatCount(tasks)
	if tasks > len(all) {
		text += ", in " + report.Plural(len(all), "row") + ": tasks of an array that wait share one"
	}
	return text
}

// queueTable returns a part of the queue; all are those that the filter leaves.
func queueTable(
	jobs, all []*epdapi.QueuedJob, q *epdapi.Queue, places map[int64]int, r *Request,
) *page.Table {
	t := &page.Table{
		ID: "queue-table", Caption: queueCaption(all), Note: "By Slurm " + ago(q.At, r.Now) +
			". So far is how long a job waits, or runs. A prediction is of the whole job, of an array's " +
			"each task. Where a workload has a model, the job's page says what is expected at which clocks.",
		Empty: "no GPU job waits or runs here",
		Columns: []page.Column{
			{Head: "Job", Number: true},
			{Head: "Name"},
			{Head: "User"},
			{Head: "Partition"},
			{Head: "State"},
			{Head: "GPUs", Number: true},
			{Head: "So far", Number: true},
			{Head: "Time limit", Number: true},
			{Head: "Predicted", Unit: "time", Number: true},
			{Head: "Predicted", Unit: "energy", Number: true},
			{Head: "Known by"},
		},
	}
	if places != nil {
		t.Columns = append(t.Columns, page.Column{Head: "Place", Number: true})
	}
	lengths := make([]live.Number, 0, 3*len(jobs))
	for _, j := range jobs {
		lengths = append(lengths, j.AgeS, live.Known(j.Limit.Seconds()), j.RuntimeS)
	}
	times := commonTimeFormat(lengths...)
	for _, j := range jobs {
		row := []page.Cell{
			jobCell(j.ID),
			jobNameCell(j.Name, tasksText(j)),
			{Text: orDash(j.User)},
			{Text: orDash(j.Partition)},
			stateCell(j.State),
			{Text: gpusText(j)},
			{Text: times(j.AgeS)},
			{Text: j.Limit.Words(func(s float64) string { return times(live.Known(s)) })},
			{Text: times(j.RuntimeS)},
			{Text: queuedEnergy(j)},
			{Text: forecastBasis(j)},
		}
		if places != nil {
			place := page.Cell{Text: dash}
			if p, ok := places[j.ID]; ok {
				place.Text = report.FormatCount(p)
			}
			row = append(row, place)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// tasksText returns how many tasks a row of the queue stands for; empty: one.
func tasksText(j *epdapi.QueuedJob) string {
	if j.Tasks > 1 {
		return " (" + report.FormatCount(j.Tasks) + " tasks)"
	}
	return ""
}

func gpusText(j *epdapi.QueuedJob) string {
	switch {
	case j.Shared:
		return "a part"
	case j.GPUModel != "":
		return report.FormatCount(j.GPUs) + " × " + j.GPUModel
	}
	return report.FormatCount(j.GPUs)
}

// queuedEnergy returns what a job's GPUs are expected to take.
func queuedEnergy(j *epdapi.QueuedJob) string {
	t, known := j.RuntimeS.Get()
	w, ok := j.PowerW.Get()
	if !known || !ok {
		return dash
	}
	return joulesText(t * w * float64(max(1, j.GPUs)))
}

// forecastBasis returns what a job's expectation rests on, or why clocks stay.
func forecastBasis(j *epdapi.QueuedJob) string {
	_, predicted := j.RuntimeS.Get()
	var words []string
	switch {
	case j.Workload != "":
		words = append(words, "model of its workload")
	case predicted:
		words = append(words, "prediction")
	default:
		words = append(words, "nothing yet")
	}
	if j.HandsOff {
		words = append(words, "its clocks stay as its user wants")
	}
	if j.Held {
		words = append(words, "held, or not due")
	}
	if d, ok := j.DeadlineS.Get(); ok {
		words = append(words, "deadline in "+report.FormatSeconds(max(0, d)))
	}
	return strings.Join(words, "; ")
}

// orderParts returns the order that is wanted and the levers that bring it about.
func orderParts(l *epdapi.Levers) []any {
	if l == nil {
		return []any{page.Text("epd doesn't move Slurm's queue and nodes here.")}
	}
	return view.Levers(&l.Status).Parts()
}

// planParts returns the plan in force, and what it has for the jobs that are to start next. Only
// those who see all see what its runs took.
func planParts(p *live.Plan, r *Request) []any {
	own := *p
	if !r.Viewer.SeesAll() {
		own.Without, own.EnergyJ, own.Record = 0, 0, live.PlanRecord{Starts: p.Record.Starts}
	}
	return view.Plan(&own, rowsPerPage).Parts()
}

// form returns the fields above the queue.
func (f *queueFilter) form(all []epdapi.QueuedJob) template.HTML {
	users, partitions, states := map[string]bool{}, map[string]bool{}, map[string]bool{f.state: true}
	for i := range all {
		users[all[i].User], states[all[i].State] = true, true
		for p := range strings.SplitSeq(all[i].Partition, ",") {
			partitions[p] = true
		}
	}
	return filterFormHTML("/queue",
		formInput{Name: "user", Label: "User", Value: f.user, List: commonValues(users)},
		formInput{Name: "partition", Label: "Partition", Value: f.partition, List: commonValues(partitions)},
		formInput{Name: "state", Label: "State", Value: f.state, Options: anyOptions(commonValues(states))},
		formInput{Name: "sort", Label: "Order", Value: f.sort, Options: queueSorts})
}

// pager leads to the other pages of a list; nil where there are none.
func (f *queueFilter) pager(rows int) any {
	pages := (rows + rowsPerPage - 1) / rowsPerPage
	if pages < 2 && f.page == 0 {
		return nil
	}
	to := func(at int) string { return "/queue?" + f.queryOf(at).Encode() }
	links := []page.Link{
		{Text: "Page " + report.FormatCount(f.page+1) + " of " + report.FormatCount(max(1, pages))},
	}
	if f.page > 0 {
		links = append(links, page.Link{Text: "First", Href: trimQuery(to(0))},
			page.Link{Text: "Previous", Href: trimQuery(to(f.page - 1))})
	}
	if f.page+1 < pages {
		links = append(links, page.Link{Text: "Next", Href: to(f.page + 1)})
	}
	return renderTemplate("pager", links)
}
