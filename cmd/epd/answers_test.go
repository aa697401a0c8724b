package main

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/apidoc"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/shareddata"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// cell is what somebody gets.
type cell string

const (
	both   cell = "both"   // an answer with what is of either person with jobs
	herOwn cell = "hers"   // one with what is of her alone: she is the owner
	own    cell = "own"    // one with what is the caller's own, and of nobody else
	none   cell = "none"   // one that names nobody
	any200 cell = "any"    // one that may name anybody
	done   cell = "done"   // it is carried out, or refused for what it says
	no403  cell = "403"    // who may not ask
	no404  cell = "404"    // what isn't there, or isn't theirs
	no401  cell = "401"    // whom nobody vouches for
	no405  cell = "405"    // what isn't possible at that door
	login  cell = "log in" // led to the login
)

// answer is a row: one question, and what each tier gets.
type answer struct {
	operation string // pattern of the API, or of a page
	path      string // with its query; empty: the pattern's own
	body      any
	control   cell
	operator  cell
	owner     cell // whose job is asked for
	another   cell // a user with jobs of their own; who has none gets none of them
}

// answers are what docs/reference/api.md says of who may ask for what. A tilde stands
// for her first job, an exclamation mark for her workload.
var answers = []answer{
	{"GET /v1/status", "", nil, any200, none, none, none},
	{"GET /v1/overview", "", nil, both, both, own, own},
	{"GET /v1/jobs", "", nil, both, both, own, own},
	{"GET /v1/jobs", "/v1/jobs?user=uucp", nil, herOwn, herOwn, herOwn, none},
	{"GET /v1/jobs", "/v1/jobs?account=zzuucp-account", nil, herOwn, herOwn, herOwn, none},
	{"GET /v1/jobs", "/v1/jobs?workload=!", nil, herOwn, herOwn, herOwn, none},
	{"GET /v1/jobs/{id}", "/v1/jobs/~", nil, herOwn, herOwn, herOwn, no404},
	{"GET /v1/jobs/{id}", "/v1/jobs/771900", nil, herOwn, herOwn, herOwn, no404}, // it waits
	{"GET /v1/jobs/{id}", "/v1/jobs/999999", nil, no404, no404, no404, no404},
	{"GET /v1/jobs/{id}/series", "/v1/jobs/~/series", nil, herOwn, herOwn, herOwn, no404},
	{"GET /v1/decisions", "", nil, both, both, own, own},
	{"GET /v1/nodes", "", nil, both, both, own, own},
	{"GET /v1/models", "", nil, both, both, no403, no403},
	{"GET /v1/models", "/v1/models?workload=!&gpu_model=V100", nil, herOwn, herOwn, no403, no403},
	{"GET /v1/models/fit", "/v1/models/fit?workload=!&gpu_model=V100", nil, herOwn, herOwn, no403, no403},
	{"GET /v1/profiles", "", nil, any200, any200, no403, no403},
	{"GET /v1/savings", "", nil, any200, any200, none, none},
	{"GET /v1/queue", "", nil, both, both, own, own},
	{"GET /v1/history", "", nil, both, both, own, own},
	{"GET /v1/runs", "/v1/runs?node=zznode-u", nil, herOwn, no403, no403, no403},
	{"GET /v1/levers", "", nil, both, both, own, own},
	{"POST /v1/estimate", "", submission(&hers), none, none, none, none},
	{"POST /v1/code", "", coded(&hers), none, none, none, none},
	{"POST /v1/submit", "", submission(&hers), done, no403, no403, no403},
	{"POST /v1/decide", "", decideRequest(&hers, 900), done, no403, no403, no403},
	{"POST /v1/outcome", "", &record.Outcome{RunID: "r", JobID: 1}, done, no403, no403, no403},
	{"POST /v1/outlook", "", map[string]any{"job_id": hers.first, "run_id": "r"}, done, no403, no403, no403},
	{"POST /v1/report", "", &epdapi.NodeReport{Node: "n3"}, done, no403, no403, no403},
	{
		"POST /v1/models/use", "", &epdapi.ModelChoice{Workload: "!", GPUModel: "V100"},
		done, no403, no403, no403,
	},
	{"POST /v1/history", "", &epdapi.History{Jobs: []record.Past{}}, done, no403, no403, no403},
	{"POST /v1/reload", "", nil, done, no403, no403, no403},
	{
		"POST /v1/power", "", &epdapi.PowerNews{What: "suspend", Nodes: []string{"n3"}},
		done, no403, no403, no403,
	},
	{"POST /v1/runs/forget", "", &epdapi.RunIDs{}, done, no403, no403, no403},
	{"POST /v1/runs/remember", "", &epdapi.RunList{}, done, no403, no403, no403},
	{"POST /v1/levers/undo", "", struct{}{}, done, no403, no403, no403},
	// The agent's are answered at its own socket alone, see below.
	{"POST /v1/prolog", "", struct{}{}, no404, no404, no404, no404},
	{"POST /v1/epilog", "", struct{}{}, no404, no404, no404, no404},
	{"POST /v1/restore", "", struct{}{}, no404, no404, no404, no404},
}

// shown is a page, and the operations that answer what it shows.
type shown struct {
	answer
	by []string
}

// pages are what docs/web.md says of who sees what, with the operations that answer
// the same: no page shows what none of them does.
var pages = []shown{
	{
		answer{"/{$}", "/", nil, any200, any200, own, own},
		[]string{"GET /v1/overview", "GET /v1/status", "GET /v1/queue", "GET /v1/levers", "GET /v1/nodes"},
	},
	{answer{"/queue", "", nil, both, both, own, own}, []string{"GET /v1/queue", "GET /v1/levers"}},
	{answer{"/jobs", "", nil, both, both, own, own}, []string{"GET /v1/jobs"}},
	{answer{"/jobs", "/jobs?user=uucp", nil, herOwn, herOwn, herOwn, none}, []string{"GET /v1/jobs"}},
	{
		answer{"/jobs/{id}", "/jobs/~", nil, herOwn, herOwn, herOwn, no404},
		[]string{"GET /v1/jobs/{id}", "GET /v1/jobs"},
	},
	{answer{"/jobs/{id}", "/jobs/999999", nil, no404, no404, no404, no404}, nil},
	{answer{"/nodes", "", nil, none, none, none, none}, []string{"GET /v1/nodes"}},
	{
		answer{"/nodes/{name}", "/nodes/zznode-u", nil, herOwn, herOwn, herOwn, none},
		[]string{"GET /v1/nodes"},
	},
	{answer{"/workloads", "", nil, both, both, no403, no403}, []string{"GET /v1/models"}},
	{
		answer{"/workloads/{name}", "/workloads/!?gpu=V100", nil, herOwn, herOwn, no403, no403},
		[]string{"GET /v1/models", "GET /v1/models/fit"},
	},
	{
		answer{"/workloads/{name}/use", "/workloads/!/use?gpu=V100&version=1", nil, any200, no403, no403, no403},
		[]string{"GET /v1/models"},
	},
	{answer{"whatIfPath", "/whatif?policy=edl", nil, any200, any200, own, own}, []string{"GET /v1/queue"}},
	{
		answer{"/admin", "", nil, any200, no403, no403, no403},
		[]string{"GET /v1/status", "GET /v1/levers", "GET /v1/models"},
	},
	{answer{"/admin/levers", "", nil, any200, no403, no403, no403}, []string{"GET /v1/levers"}},
	{answer{"/admin/reload", "", nil, any200, no403, no403, no403}, nil},
}

// actions are what pages do, by POST.
var actions = []string{"/workloads/{name}/use", "/admin/levers", "/admin/reload"}

// private is what Slurm's PrivateData hides from users of each other. What users get
// doesn't depend on it: they get what the strictest setting leaves, but for what
// stands here. Nodes are everybody's to see, see docs/web.md.
var private = map[string]struct{ hides, shown []string }{
	"none":  {},
	"jobs":  {[]string{"jobs"}, nil},
	"usage": {[]string{"usage"}, nil},
	"nodes": {[]string{"nodes"}, shownNodes},
	"all":   {[]string{"jobs", "usage", "nodes"}, shownNodes},
}

var shownNodes = []string{"/nodes", "/nodes/{name}", "GET /v1/nodes"}

func submission(p *person) *slurm.Submission {
	return &slurm.Submission{
		Version: slurm.ProtocolVersion, Kind: "batch", UID: p.uid, Name: slurm.Hex(p.mark() + "-train"),
		Partition: "gpu", TRESPerNode: "gres/gpu:1", TimeLimit: 60,
	}
}

func coded(p *person) *epdapi.CodeRequest {
	return &epdapi.CodeRequest{Submission: *submission(p), Code: &epdapi.Code{
		Files: 1, Digest: slurm.Hex(strings.Repeat("d", 32)), Vector: make([]float32, 1024),
	}}
}

func jsonOf(tb testing.TB, v any) string {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// of is what a caller gets, by tier and door.
func (a *answer) of(c *caller, page bool) cell {
	method, _, api := strings.Cut(a.operation, " ")
	want := [...]cell{a.control, a.operator, a.owner, a.another}[min(c.tier, another)]
	switch {
	case c.door == "munge" && !c.proof:
		return no401
	case c.door == "munge" && page:
		return no404
	case c.door == "port" && api && method != http.MethodGet:
		return no405
	case c.door == "port" && c.tier == nobody && !page:
		return no403
	case c.door == "port" && c.tier == nobody:
		return login
	case c.door == "private" && c.tier != controls:
		return no403
	case c.self == nil && c.tier == another && want == own:
		return none
	}
	return want
}

// in is the question's path.
func (a *answer) in(h *house) string {
	path := a.path
	if path == "" {
		_, path, _ = strings.Cut(a.operation, " ")
	}
	if path == "" {
		path = a.operation
	}
	return strings.NewReplacer("~", hers.first.String(), "!",
		url.PathEscape(h.models[hers.name])).Replace(path)
}

// got is what an answer says.
type got struct {
	status    int
	hers, his bool // it names them
	nodes     bool // a node on which the caller has nothing
}

// see looks for names in an answer. A refusal may say again what was asked for.
func see(c *caller, path string, status int, text string) got {
	text = yourName.ReplaceAllString(text, "")
	if id := jobInPath.FindStringSubmatch(path); id != nil && status != http.StatusOK {
		text = strings.ReplaceAll(text, id[1], "")
	}
	if status == http.StatusSeeOther { // where to go on after the login
		text = strings.ReplaceAll(text, url.QueryEscape(path), "")
	}
	other := his.node
	if c.self == &his {
		other = hers.node
	}
	return got{
		status: status, nodes: strings.Contains(text, other),
		hers: hers.marks().MatchString(text), his: his.marks().MatchString(text),
	}
}

// yourName is where pages tell viewers who they are.
var yourName = regexp.MustCompile(`You are [^<]*`)

var (
	jobInPath = regexp.MustCompile(`/jobs/([0-9]+)`)
	formField = regexp.MustCompile(`name="([a-z_]+)" value="([^"]*)"`)
)

// is tells whether an answer is as a cell says.
func (g got) is(want cell, c *caller) bool {
	quiet := !g.hers && !g.his
	switch want {
	case both:
		return g.status == http.StatusOK && g.hers && g.his
	case herOwn:
		return g.status == http.StatusOK && g.hers && !g.his
	case own:
		return g.status == http.StatusOK && g.hers == (c.self == &hers) && g.his == (c.self == &his)
	case none:
		return g.status == http.StatusOK && quiet
	case any200:
		return g.status == http.StatusOK
	case done:
		refused := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}
		return !slices.Contains(refused, g.status) && g.status < http.StatusInternalServerError
	case no403:
		return g.status == http.StatusForbidden && quiet
	case no404:
		return g.status == http.StatusNotFound && quiet
	case no401:
		return g.status == http.StatusUnauthorized && quiet
	case no405:
		return g.status == http.StatusMethodNotAllowed && quiet
	case login:
		return g.status == http.StatusSeeOther && quiet
	}
	return false
}

// changes tells whether a question changes something where it is allowed.
func (a *answer) changes() bool { return a.control == done }

func TestEveryOperationAnswersEachCallerAsDocumentedAndPagesTellNoMore(t *testing.T) {
	h := openHouse(t, "")
	callers := h.callers()
	for _, c := range callers {
		h.checkAll(c, func(a *answer) bool { return !a.changes() })
		for i := range pages {
			h.checkPage(c, &pages[i].answer, pages[i].by)
		}
	}
	before := jsonOf(t, h.control.Status(t.Context()))
	for _, c := range callers {
		h.checkAll(c, func(a *answer) bool { return a.changes() && a.of(c, false) != done })
		h.refusedActions(c)
	}
	if after := jsonOf(t, h.control.Status(t.Context())); after != before || h.steerer.Status().Paused {
		t.Errorf("what was refused was done:\n%s\n%s", before, after)
	}
	h.checkPrivate()
	for _, c := range callers {
		h.checkAll(c, func(a *answer) bool { return a.changes() && a.of(c, false) == done })
	}
	for _, c := range callers {
		if c.tier == controls && c.door != "munge" {
			h.doneActions(c)
		}
	}
}

// checkPrivate compares what users were told of others with what Slurm would hide.
func (h *house) checkPrivate() {
	h.t.Helper()
	for setting, p := range private {
		for _, kind := range p.hides {
			rows := slices.Compact(slices.Sorted(slices.Values(h.told[kind])))
			shown := p.shown
			if kind != "nodes" {
				shown = nil
			}
			if !slices.Equal(rows, shown) {
				h.t.Errorf("with PrivateData=%s users are told of others' %s by %q, want %q", setting, kind,
					rows, shown)
			}
		}
	}
}

// checkAll asks for those rows that are chosen.
func (h *house) checkAll(c *caller, chosen func(*answer) bool) {
	h.t.Helper()
	for i := range answers {
		if chosen(&answers[i]) {
			h.check(c, &answers[i])
		}
	}
}

// check asks for a row as a caller.
func (h *house) check(c *caller, a *answer) {
	h.t.Helper()
	method, _, _ := strings.Cut(a.operation, " ")
	body := ""
	if a.body != nil {
		body = strings.ReplaceAll(jsonOf(h.t, a.body), `"!"`, `"`+h.models[hers.name]+`"`)
	}
	path := a.in(h)
	status, text := h.ask(c, method, path, body, nil)
	g := see(c, path, status, text)
	if want := a.of(c, false); !g.is(want, c) {
		h.t.Errorf("%s (%s) as %s: %+v, want %s\n%.300s", a.operation, path, c, g, want, text)
	}
	all := c.told[a.operation]
	c.told[a.operation] = got{status, all.hers || g.hers, all.his || g.his, all.nodes || g.nodes}
	h.note(c, a, g)
}

// note notes what a user was told of others.
func (h *house) note(c *caller, a *answer, g got) {
	if c.tier != owns && c.tier != another {
		return
	}
	if c.self != &hers && g.hers || c.self != &his && g.his {
		h.told["jobs"], h.told["usage"] = append(h.told["jobs"], a.operation),
			append(h.told["usage"], a.operation)
	}
	if g.nodes {
		h.told["nodes"] = append(h.told["nodes"], a.operation)
	}
}

// checkPage asks for a page as a caller, and compares it with what the API told.
func (h *house) checkPage(c *caller, p *answer, by []string) {
	h.t.Helper()
	path := p.in(h)
	status, text := h.ask(c, http.MethodGet, path, "", nil)
	g := see(c, path, status, text)
	if want := p.of(c, true); !g.is(want, c) {
		h.t.Errorf("page %s (%s) as %s: %+v, want %s\n%.300s", p.operation, path, c, g, want, text)
	}
	h.note(c, p, g)
	var may got
	allowed := len(by) == 0
	for _, operation := range by {
		one, asked := c.told[operation]
		if !asked {
			h.t.Fatalf("page %s is compared with %s, which nobody asked for", p.operation, operation)
		}
		allowed = allowed || one.status == http.StatusOK
		may.hers, may.his = may.hers || one.hers, may.his || one.his
	}
	if g.status == http.StatusOK && !allowed || g.hers && !may.hers || g.his && !may.his {
		h.t.Errorf("page %s as %s shows %+v, the API %+v", p.operation, c, g, may)
	}
}

// refusedActions sends the forms of pages that a caller may not use.
func (h *house) refusedActions(c *caller) {
	h.t.Helper()
	for _, path := range actions {
		a := answer{
			operation: path, path: strings.Replace(path, "{name}", "!", 1),
			control: done, operator: no403, owner: no403, another: no403,
		}
		want := a.of(c, true)
		if want == done {
			want = no403 // the form has no token
		}
		status, text := h.ask(c, http.MethodPost, a.in(h), "", url.Values{"version": {"0"}, "gpu": {"V100"}})
		if g := see(c, path, status, text); !g.is(want, c) {
			h.t.Errorf("action %s as %s: %+v, want %s", path, c, g, want)
		}
	}
}

// doneActions sends an administrator's forms.
func (h *house) doneActions(c *caller) {
	h.t.Helper()
	for _, path := range actions {
		a := answer{path: strings.Replace(path, "{name}", "!", 1) + "?gpu=V100&version=0"}
		status, page := h.ask(c, http.MethodGet, a.in(h), "", nil)
		form := url.Values{}
		for _, field := range formField.FindAllStringSubmatch(page, -1) {
			form.Set(field[1], field[2])
		}
		if form.Get("form_token") == "" {
			h.t.Errorf("%s as %s has no form: %d", path, c, status)
			continue
		}
		target, _, _ := strings.Cut(a.in(h), "?")
		if status, text := h.ask(c, http.MethodPost, target, "", form); status != http.StatusSeeOther {
			h.t.Errorf("action %s as %s: %d\n%.400s", path, c, status, text)
		}
	}
}

func TestTheOverviewForEverybodyNamesNobody(t *testing.T) {
	h := openHouse(t, "anonymous = \"aggregates\"\n")
	c := &caller{door: "port", tier: nobody}
	h.connect(c)
	for path, want := range map[string]cell{
		"/": none, "/queue": login, "/jobs": login, "/nodes": login, "/whatif": login,
		"/v1/overview": no403, "/v1/jobs": no403,
	} {
		status, text := h.ask(c, http.MethodGet, path, "", nil)
		if g := see(c, path, status, text); !g.is(want, c) || g.nodes {
			t.Errorf("%s: %+v, want %s\n%.300s", path, g, want, text)
		}
	}
}

// An agent answers root at its own socket, and nobody else there, whatever the
// socket's permissions are.
func TestAnAgentAnswersRootAlone(t *testing.T) {
	shareddata.Need(t, os.Geteuid() == 0, "only root can ask as another user")
	dir, err := os.MkdirTemp("", "epd") //nolint:usetesting // t.TempDir's folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	submit := filepath.Join(dir, "submit.sock")
	agent := launch(t, dir, "--submit-socket", submit)
	err = errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "epd.sock"), 0o666)) //nolint:gosec // on purpose
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, doors: map[string]string{"private": filepath.Join(dir, "epd.sock"), "public": submit}}
	for _, o := range apidoc.Operations() {
		if o.Server != apidoc.Agent {
			continue
		}
		for _, uid := range []uint32{0, operatorUID, hers.uid, strangerUID} {
			for _, door := range []string{"private", "public"} {
				c := &caller{door: door, uid: uid}
				h.connect(c)
				status, text := h.ask(c, o.Method, o.Path, "{}", nil)
				want := map[bool][]int{
					true:  {http.StatusOK, http.StatusBadRequest},
					false: {http.StatusForbidden},
				}[uid == 0]
				switch {
				case door == "public" && o.Path == epdapi.PathStatus:
					want = []int{http.StatusOK} // the controller's
				case door == "public":
					want = []int{http.StatusNotFound}
				}
				if !slices.Contains(want, status) {
					t.Errorf("%s as uid %d by the %s door: %d, want %d\n%s", o.Pattern(), uid, door, status,
						want, text)
				}
			}
		}
	}
	if s := agent.status(); len(s.Runs) != 0 {
		t.Errorf("something was done: %+v", s)
	}
}

func TestTheTableOfAnswersHasEveryOperationAndEveryPage(t *testing.T) {
	have, want := make(map[string]bool), make(map[string]bool)
	for i := range answers {
		have[answers[i].operation] = true
	}
	for _, o := range apidoc.Operations() {
		want[o.Pattern()] = true
	}
	if !maps.Equal(have, want) {
		t.Errorf("the table answers is about %q, the operations are %q: say there who gets what",
			slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
	}
	sources, err := filepath.Glob("../../internal/web/*.go")
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`(?m)^\t+\{"?(/[^"]*|whatIfPath)"?, ("[^"]*", )?(Anonymous|User|Reader|Admin), s\.`)
	found := 0
	for _, path := range sources {
		text, err := os.ReadFile(path) //nolint:gosec // the project's own
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entry.FindAllStringSubmatch(string(text), -1) {
			found++
			page := slices.ContainsFunc(pages, func(p shown) bool { return p.operation == e[1] })
			if !page && !slices.Contains(actions, e[1]) {
				t.Errorf("%s: who sees %s isn't said in the table pages", path, e[1])
			}
		}
	}
	if want := len(actions) + 13; found < want {
		t.Errorf("%d pages and actions found, want %d", found, want)
	}
}
