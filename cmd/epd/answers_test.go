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

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/testkit/apidoc"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/slurm/hooks"
)

func submission(p *person) *hooks.Submission {
	return &hooks.Submission{
		Version: hooks.ProtocolVersion, Kind: "batch", UID: p.uid, Name: hooks.Hex(p.mark() + "-train"),
		Partition: "gpu", TRESPerNode: "gres/gpu:1", TimeLimit: 60,
	}
}

func coded(p *person) *epdapi.CodeRequest {
	return &epdapi.CodeRequest{Submission: *submission(p), Code: &epdapi.Code{
		Files: 1, Digest: hooks.Hex(strings.Repeat("d", 32)), Vector: make([]float32, 1024),
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

// of returns what a caller gets, by tier and door.
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
		return toLogin
	case c.door == "private" && c.tier != controls:
		return no403
	case c.self == nil && c.tier == another && want == own:
		return none
	}
	return want
}

// in returns the question's path.
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

// is reports whether an answer is as a cell says.
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
	case toLogin:
		return g.status == http.StatusSeeOther && quiet
	}
	return false
}

// changes reports whether a question changes something where it is allowed.
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
	before := jsonOf(t, h.control.Queries.Status(t.Context(), query.ForEPD()))
	for _, c := range callers {
		h.checkAll(c, func(a *answer) bool { return a.changes() && a.of(c, false) != done })
		h.refusedActions(c)
	}
	after := jsonOf(t, h.control.Queries.Status(t.Context(), query.ForEPD()))
	if after != before || h.steerer.Status().Paused {
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
		"/": none, "/queue": toLogin, "/jobs": toLogin, "/nodes": toLogin, "/whatif": toLogin,
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
	socket := filepath.Join(dir, "epd.sock")
	err = errors.Join(os.Chmod(dir, 0o755), os.Chmod(socket, 0o666))
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
	entry := regexp.MustCompile(
		`(?m)^\t+\{"?(/[^"]*|whatIfPath)"?, ("[^"]*", )?login\.(Anonymous|User|Reader|Admin), \w+\}`)
	found := 0
	for _, path := range sources {
		text, err := os.ReadFile(path)
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
