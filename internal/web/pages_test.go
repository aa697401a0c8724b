package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// shownPage is a page taken apart.
type shownPage struct {
	status int
	kind   string
	text   string
	root   *html.Node
}

// source answers everything, whoever views it.
type source interface {
	web.Source
	web.Administration
}

func sourceOf(of source) func(login.Viewer) (web.Source, web.Administration) {
	return func(login.Viewer) (web.Source, web.Administration) { return of, of }
}

// look asks a cluster's site for a page.
func look(t *testing.T, of source, v login.Viewer, path string) shownPage {
	t.Helper()
	site := web.New(web.Options{
		Source: sourceOf(of), Version: "1.0",
		Now: func() time.Time { return shownAt },
	})
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host = "localhost"
	site.Socket(func(*http.Request) login.Viewer { return v }).ServeHTTP(w, r)
	p := shownPage{status: w.Code, kind: w.Header().Get("Content-Type"), text: w.Body.String()}
	root, err := html.Parse(strings.NewReader(p.text))
	if err != nil {
		t.Fatal(err)
	}
	p.root = root
	return p
}

// each calls f for each element.
func (p *shownPage) each(f func(tag string, attributes map[string]string, n *html.Node)) {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode {
			attributes := make(map[string]string)
			for _, a := range n.Attr {
				attributes[a.Key] = a.Val
			}
			f(n.Data, attributes, n)
		}
	}
}

// words returns all text in a node.
func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// links returns the addresses of this site that a page names.
func (p *shownPage) links() []string {
	var all []string
	p.each(func(_ string, a map[string]string, _ *html.Node) {
		for _, key := range []string{"href", "src", "action"} {
			if a[key] != "" && a["method"] != "post" {
				all = append(all, a[key])
			}
		}
	})
	return all
}

// renamed is a cluster all of whose jobs have one name.
type renamed struct {
	*cluster
	name string
}

func (r renamed) Job(ctx context.Context, job string) (*epdapi.JobView, error) {
	v, err := r.cluster.Job(ctx, job)
	if err == nil {
		v.Job.Name = r.name
	}
	return v, err
}

func TestALongNameOfAJobIsWholeBelowItsTitle(t *testing.T) {
	long := strings.Repeat("W", 900)
	for name, title := range map[string]string{
		long:    "Job 4711: " + long[:59] + "…",
		"train": "Job 4711: train",
	} {
		p := look(t, renamed{newCluster(), name}, admin, "/jobs/4711")
		var headings, facts []string
		p.each(func(tag string, _ map[string]string, n *html.Node) {
			switch tag {
			case "h1":
				headings = append(headings, words(n))
			case "dd":
				facts = append(facts, words(n))
			}
		})
		if !slices.Equal(headings, []string{title}) {
			t.Errorf("the title is %q, want %q", headings, title)
		}
		if !slices.Contains(facts, "4711 "+name) {
			t.Errorf("the facts about %.10q are %q", name, facts)
		}
	}
}

func TestJobsCanBeListedByALaunchThatFailed(t *testing.T) {
	if text := words(look(t, newCluster(), admin, "/jobs").root); !strings.Contains(text, "LAUNCH_FAILED") {
		t.Errorf("no such state in %s", text)
	}
}

func TestAWaitingJobIsFoundUnderEachOfItsPartitions(t *testing.T) {
	c := newCluster()
	c.queue.Jobs[3].Name, c.queue.Jobs[3].Partition = "in-several", "obs,main"
	for partition, want := range map[string]bool{
		"": true, "obs": true, "main": true, "gpu": false,
		"obs,main": false,
	} {
		p := look(t, c, admin, "/queue?"+url.Values{"partition": {partition}}.Encode())
		if got := strings.Contains(p.text, "in-several"); got != want {
			t.Errorf("under partition %q: %v, want %v", partition, got, want)
		}
	}
}

func TestAllLinksOfTheSiteLeadSomewhere(t *testing.T) {
	c := newCluster()
	seen, queue := map[string]bool{"/": true}, []string{"/"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		p := look(t, c, admin, path)
		if p.status != http.StatusOK {
			t.Errorf("%s: %d", path, p.status)
		}
		if strings.HasPrefix(p.kind, "text/html") {
			wellMade(t, path, &p)
		}
		for _, link := range p.links() {
			if next := target(t, path, link); next != "" && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	for _, want := range []string{
		"/queue", "/jobs", "/jobs/4711", "/nodes", "/nodes/n1", "/workloads", "/month",
		"/whatif", "/admin",
	} {
		if !seen[want] {
			t.Errorf("no page leads to %s; those found are %d", want, len(seen))
		}
	}
}

// target returns where a link of a page leads; empty: to nothing that the cluster of
// these tests knows of.
func target(t *testing.T, path, link string) string {
	t.Helper()
	if link == "data:," || strings.HasPrefix(link, "#") { // no icon; this page
		return ""
	}
	u, err := url.Parse(link)
	if err != nil || u.Host != "" || u.Scheme != "" {
		t.Errorf("%s leads away from the site: %q", path, link)
		return ""
	}
	at := (&url.URL{Path: path}).ResolveReference(u)
	at.Fragment = ""
	next := at.String()
	other := strings.HasPrefix(next, "/jobs/") && next != "/jobs/4711" ||
		strings.HasPrefix(next, "/workloads/") && !strings.HasPrefix(next, workloadPath[:20])
	if other || strings.HasPrefix(next, "/v1/") {
		return ""
	}
	return next
}

// wellMade reports whether a page has what every page needs, and nothing that the
// policy forbids.
func wellMade(t *testing.T, path string, p *shownPage) {
	t.Helper()
	count, ids := map[string]int{}, map[string]int{}
	p.each(func(tag string, a map[string]string, n *html.Node) {
		count[tag]++
		if id, ok := a["id"]; ok {
			ids[id]++
		}
		wellMadeElement(t, path, tag, a, n)
	})
	for tag, want := range map[string]int{"h1": 1, "main": 1, "head": 1} {
		if count[tag] != want {
			t.Errorf("%s has %d <%s>", path, count[tag], tag)
		}
	}
	if count["table"] != count["caption"] || count["title"] < 1 || count["nav"] < 1 {
		t.Errorf("%s has %d tables, %d captions, %d titles and %d navigations", path, count["table"],
			count["caption"], count["title"], count["nav"])
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s has %d elements with the id %q", path, n, id)
		}
	}
	p.each(func(tag string, a map[string]string, _ *html.Node) {
		for id := range strings.FieldsSeq(a["aria-labelledby"] + " " + a["aria-describedby"] + " " +
			a["for"] + " " + a["list"]) {
			if ids[id] == 0 {
				t.Errorf("%s: <%s> names %q, which isn't there", path, tag, id)
			}
		}
	})
	if strings.Contains(p.text, `method="post"`) && !strings.Contains(p.text, `name="form_token"`) {
		t.Errorf("%s: a form without a token", path)
	}
}

// wellMadeElement reports whether an element may be on a page.
func wellMadeElement(t *testing.T, path, tag string, a map[string]string, n *html.Node) {
	t.Helper()
	for key := range a {
		if key == "style" || strings.HasPrefix(key, "on") {
			t.Errorf("%s: <%s %s> is forbidden by the policy", path, tag, key)
		}
	}
	wrong := map[string]bool{
		"script": a["src"] == "" || n.FirstChild != nil, "style": true, "th": a["scope"] == "",
		"html": a["lang"] == "",
	}
	if wrong[tag] {
		t.Errorf("%s: a <%s> that may not be there: %s", path, tag, words(n))
	}
}

func TestHostileNamesAreShownAsTheyAre(t *testing.T) {
	c := newCluster()
	for _, path := range []string{
		"/", "/queue", "/jobs", "/workloads", "/queue?user=%3Cscript%3E",
		"/jobs?user=%22%3E%3Cscript%3E", "/jobs/%3Cscript%3E", "/nodes/%3Cscript%3E",
		"/nodes?partition=%3Cscript%3E",
	} {
		p := look(t, c, admin, path)
		p.each(func(tag string, a map[string]string, n *html.Node) {
			if tag == "img" || tag == "b" || tag == "script" &&
				!strings.HasPrefix(a["src"], "/static/epd.js") {
				t.Errorf("%s: a name became an element: %s", path, words(n.Parent))
			}
		})
		if strings.ContainsAny(p.text, "\u202e\u200b\x1b") {
			t.Errorf("%s: control characters reach the page", path)
		}
	}
	if p := look(t, c, admin, "/queue"); !strings.Contains(p.text, "&lt;img src=x onerror=alert(1)&gt;") {
		t.Error("the name isn't shown")
	}
}

// rows returns the cells of a table's rows.
func (p *shownPage) rows(t *testing.T, id string) [][]string {
	t.Helper()
	var all [][]string
	p.each(func(tag string, a map[string]string, n *html.Node) {
		if tag != "table" || a["id"] != id {
			return
		}
		for r := range n.Descendants() {
			if r.Data != "tr" || r.Parent.Data != "tbody" {
				continue
			}
			var cells []string
			for cell := range r.ChildNodes() {
				if cell.Type == html.ElementNode {
					cells = append(cells, words(cell))
				}
			}
			all = append(all, cells)
		}
	})
	return all
}

// column returns one column of a table.
func column(rows [][]string, at int) []string {
	var all []string
	for _, r := range rows {
		if at < len(r) {
			all = append(all, r[at])
		}
	}
	return all
}

func TestTheQueueIsFilteredSortedAndInPages(t *testing.T) {
	c := newCluster()
	c.queue = waiting(120)
	rowsOf := func(query string) [][]string {
		p := look(t, c, admin, "/queue"+query)
		if p.status != http.StatusOK {
			t.Fatalf("%s: %d", query, p.status)
		}
		return p.rows(t, "queue-table")
	}
	if n := len(rowsOf("")); n != 50 {
		t.Errorf("%d rows on a page", n)
	}
	if rows := rowsOf("?page=3"); len(rows) != 20 || rows[0][0] != "5100" {
		t.Errorf("the third page has %d rows, from %v on", len(rows), rows[0])
	}
	if rows := rowsOf("?page=99"); len(rows) != 1 {
		t.Errorf("behind the end: %v", rows)
	}
	for _, user := range column(rowsOf("?user=grace"), 2) {
		if user != "grace" {
			t.Errorf("%s is in grace's list", user)
		}
	}
	for _, state := range column(rowsOf("?state=RUNNING&partition=gpu"), 4) {
		if state != "RUNNING" {
			t.Errorf("%s is in the list of those that run", state)
		}
	}
	if gpus := column(rowsOf("?sort=gpus"), 5); gpus[0] != "4" ||
		!slices.IsSortedFunc(gpus, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("by GPUs: %v", gpus)
	}
	p := look(t, c, admin, "/queue?user=grace&sort=age")
	if !slices.Contains(p.links(), "/queue?sort=age&user=grace") && len(p.rows(t, "queue-table")) > 50 {
		t.Errorf("the links forget the filter: %v", p.links())
	}
	for _, query := range []string{"?sort=nonsense", "?page=0", "?page=x", "?page=-1"} {
		if p := look(t, c, admin, "/queue"+query); p.status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, p.status)
		}
	}
}

// silent is a cluster whose queue Slurm doesn't tell.
type silent struct{ *cluster }

func (silent) Queue(context.Context) (*epdapi.Queue, error) {
	return nil, refused(http.StatusServiceUnavailable, "Slurm's queue isn't known")
}

func TestAQueueThatIsntKnownIsNoError(t *testing.T) {
	p := look(t, silent{newCluster()}, admin, "/queue")
	if p.status != http.StatusOK || !strings.Contains(p.text, "queue isn&#39;t known") {
		t.Errorf("%d: %s", p.status, words(p.root))
	}
}

// planning is a cluster with a plan in force.
type planning struct{ *cluster }

func (p planning) Levers(ctx context.Context) (*epdapi.Levers, error) {
	l, err := p.cluster.Levers(ctx)
	job := live.PlannedJob{
		Job: 5000, Task: "5000_7", User: "ada", Start: shownAt, End: shownAt.Add(time.Hour), NodeClass: "v100x4",
		GPUModel: "V100", Setting: dvfsmodel.Setting{Core: 1087}, Reason: "readjusted " + hostile,
	}
	l.Plan = &live.Plan{
		Policy: "edl:0.8", At: shownAt, TookS: .4, EnergyJ: 5e6, Without: 3, Jobs: []live.PlannedJob{job},
		Stale: "it doesn't know 4 of the 9 jobs that wait",
		Record: live.PlanRecord{
			Starts: map[live.PlanKept]int64{live.KeptAsPlanned: 3, live.KeptLater: 1}, Ended: 2, PlannedJ: 1e6,
			MeasuredJ: 2e6,
		},
		Recent: []live.PlanStart{{Job: 4999, User: "eve", At: shownAt, GPUModel: "T4", How: live.KeptElsewhere}},
	}
	return l, err
}

func (p planning) Job(ctx context.Context, job string) (*epdapi.JobView, error) {
	v, err := p.cluster.Job(ctx, job)
	if v != nil {
		v.Plan = &epdapi.JobPlan{Policy: "edl:0.8", Mode: "enforce", Why: "it is stale"}
	}
	return v, err
}

func TestThePlanInForceIsShownWithHowStartsKeptToIt(t *testing.T) {
	c := planning{newCluster()}
	for path, all := range map[string][]string{
		"/queue": {
			"The plan in force", "edl:0.8", "The plan counts no more: it doesn't know 4 of the 9 jobs", "5000_7", "v100x4",
			"core 1087 MHz", "75", "planned 1.000 MJ, measured 2.000 MJ", "4999", "on another GPU model",
		},
		"/jobs/4711": {"Plan plan edl:0.8 has nothing for it: it is stale"},
	} {
		p := look(t, c, admin, path)
		text := words(p.root)
		for _, want := range all {
			if !strings.Contains(text, want) {
				t.Errorf("%s doesn't say %q:\n%s", path, want, text)
			}
		}
		if strings.Contains(p.text, "<img src=x") {
			t.Errorf("%s has what a user wrote as it is", path)
		}
	}
	if p := look(t, newCluster(), admin, "/queue"); strings.Contains(p.text, "The plan in force") {
		t.Error("a plan is shown where there is none")
	}
}

func TestAJobsPageSaysWhyAndHowItTurnedOut(t *testing.T) {
	p := look(t, newCluster(), admin, "/jobs/4711")
	text := words(p.root)
	for _, want := range []string{
		"Job 4711", "Why these clocks", "core 1110 MHz, memory 877 MHz",
		"model version 3 of 9 runs; optimum", "mode enforce", "As JSON",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page doesn't say %q", want)
		}
	}
	if rows := p.rows(t, "measured-table"); len(rows) == 0 ||
		!strings.Contains(strings.Join(rows[0], " "), "%") {
		t.Errorf("measured: %v", rows)
	}
	if !slices.Contains(p.links(), "/v1/jobs/4711") || !slices.Contains(p.links(), "/nodes/n1") {
		t.Errorf("links: %v", p.links())
	}
	pictures, tables := 0, 0
	p.each(func(tag string, a map[string]string, _ *html.Node) {
		switch {
		case tag == "svg" && a["role"] == "img" && !strings.Contains(a["class"], "narrow"):
			pictures++
		case tag == "details":
			tables++
		}
	})
	if pictures < 2 || tables < pictures {
		t.Errorf("%d pictures, %d of them with their numbers", pictures, tables)
	}
}

// shortened is a cluster in which an administrator shortened a running job's limit.
type shortened struct{ *cluster }

func (c shortened) Job(ctx context.Context, job string) (*epdapi.JobView, error) {
	v, err := c.cluster.Job(ctx, job)
	now := live.LimitOf(time.Minute)
	v.Job.Limit, v.LimitNow = live.LimitOf(time.Hour), &now
	return v, err
}

func TestAJobsPageShowsTheLimitThatSlurmHasNow(t *testing.T) {
	text := words(look(t, shortened{newCluster()}, admin, "/jobs/4711").root)
	if want := "60.00 s now, 1:00:00 when its clocks were decided"; !strings.Contains(text, want) {
		t.Errorf("no %q in %s", want, text)
	}
}

// waits is a cluster in which job 1 waits.
type waits struct{ *cluster }

func (waits) Job(context.Context, string) (*epdapi.JobView, error) {
	return &epdapi.JobView{
		Job: &epdapi.Job{
			ID: 1, Name: "later", User: "ada", Partition: "gpu", State: "PENDING", Submitted: shownAt,
			GPUs: 2, Nodes: 1,
		},
		Wishes: &epdapi.Wishes{Deadline: shownAt.Add(time.Hour), Warnings: []string{"epplan:what"}},
		Estimate: &epdapi.Estimate{
			Mode: "advise",
			Models: []epdapi.EstimateModel{{
				GPUModel: "V100", Reason: "optimum",
				Default: &epdapi.Point{
					Setting: dvfsmodel.Setting{Core: 1380, Mem: 877}, TimeS: 100, EnergyJ: 1000, PowerW: 10,
				}, Chosen: &epdapi.Point{
					Setting: dvfsmodel.Setting{Core: 1110, Mem: 877}, TimeS: 110, EnergyJ: 800, PowerW: 7,
				},
			}},
			Forecast: &epdapi.Forecast{Time: epdapi.PredictedRange{Value: 120, Low: 90, High: 200}},
		},
	}, nil
}

func (waits) Series(context.Context, slurm.JobID) (*epdapi.JobSeries, error) {
	return &epdapi.JobSeries{}, nil
}

func TestAJobThatWaitsShowsWhatWouldBeDecided(t *testing.T) {
	p := look(t, waits{newCluster()}, admin, "/jobs/1")
	text := words(p.root)
	for _, want := range []string{
		"If it started now", "would not be set: mode advise",
		"80.0 % of the GPUs' energy", "120.0 s (90.00 s to 200.0 s", "to end by",
		"not understood: epplan:what",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page doesn't say %q:\n%s", want, text)
		}
	}
}

// timedOut is a cluster with a job that a Prolog which timed out left at default clocks
// on one of its nodes.
type timedOut struct{ *cluster }

func (timedOut) Jobs(context.Context, url.Values) (*epdapi.JobPage, error) {
	row := jobRow(0)
	row.Locked = []dvfsmodel.Setting{{}, {Core: 945, Mem: 877}, {Core: 945, Mem: 877, Cap: 210}}
	return &epdapi.JobPage{Jobs: []epdapi.JobRow{row, jobRow(1)}}, nil
}

func TestTheListOfJobsShowsTheClocksThatRunsHad(t *testing.T) {
	p := look(t, timedOut{newCluster()}, admin, "/jobs")
	rows := p.rows(t, "jobs-table")
	if len(rows) != 2 || !slices.Contains(rows[0], "default clocks; core 945 MHz, memory 877 MHz; "+
		"core 945 MHz, memory 877 MHz, power at most 210 W") ||
		!slices.Contains(rows[1], "core 1110 MHz, memory 877 MHz") {
		t.Errorf("%q", rows)
	}
}

// quiet is a cluster of which no agent reported.
type quiet struct{ *cluster }

func (quiet) Nodes(context.Context) (*epdapi.NodeList, error) {
	return &epdapi.NodeList{
		Nodes: []epdapi.NodeView{{
			Name: "n9", State: "DOWN+DRAIN", Reason: "burnt", GPUs: 4, Partitions: []string{"gpu"},
		}},
	}, nil
}

func (quiet) Overview(context.Context) (*epdapi.Overview, error) {
	return &epdapi.Overview{
		Savings:   epdapi.Savings{GPU: epdapi.Saving{}},
		Decisions: []epdapi.JobDecision{{Decision: record.Decision{JobID: 4711}}},
	}, nil
}

func TestWhatIsntKnownIsntMadeUp(t *testing.T) {
	c := quiet{newCluster()}
	if text := words(look(t, c, admin, "/nodes/n9").root); !strings.Contains(text, "aren't known here") ||
		!strings.Contains(text, "burnt") || strings.Contains(text, "Journal") {
		t.Errorf("the node: %s", text)
	}
	if p := look(t, c, admin, "/jobs/4711"); slices.Contains(p.links(), "/nodes/n1") ||
		!strings.Contains(strings.Join(p.rows(t, "measured-table")[0], "|"), "n1|") {
		t.Errorf("a job links to a node without a page: %v, %v", p.links(), p.rows(t, "measured-table"))
	}
	p := look(t, c, admin, "/nodes")
	rows := p.rows(t, "nodes-table")
	if len(rows) != 1 || strings.Join(rows[0], "|") != "n9|DOWN DRAIN|gpu|4|–|–|–|–|not since epd's start|–" {
		t.Errorf("the nodes: %q", rows)
	}
	text := words(look(t, c, admin, "/").root)
	if !strings.Contains(text, "GPU power now – no agent told lately") || strings.Contains(text, "0 W") {
		t.Errorf("the overview: %s", text)
	}
}

func TestAPageIsFoundAgainByItsRegions(t *testing.T) {
	for _, path := range []string{"/", "/queue", "/jobs/4711", "/nodes/n1"} {
		p, regions := look(t, newCluster(), admin, path), 0
		p.each(func(_ string, a map[string]string, n *html.Node) {
			if _, live := a["data-live"]; !live {
				return
			}
			regions++
			if a["id"] == "" {
				t.Errorf("%s: a region without an id", path)
			}
			for d := range n.Descendants() {
				if d.Data == "input" || d.Data == "select" {
					t.Errorf("%s: what somebody fills in would be replaced", path)
				}
			}
		})
		if regions < 2 {
			t.Errorf("%s has %d regions that are kept up to date", path, regions)
		}
	}
}

func TestTheScriptIsSmall(t *testing.T) {
	p := look(t, newCluster(), admin, "/static/epd.js")
	if p.status != http.StatusOK || len(p.text) > 8<<10 || !strings.HasPrefix(p.kind, "text/javascript") {
		t.Errorf("%d, %s, %d bytes", p.status, p.kind, len(p.text))
	}
	for _, word := range []string{"eval(", "innerHTML = ", "document.write", "http:", "https:"} {
		if strings.Contains(p.text, word) {
			t.Errorf("the script has %q", word)
		}
	}
}
