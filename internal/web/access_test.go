package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
)

// Who may log in.
const (
	adminToken  = "0123456789abcdef0123"
	readerToken = "fedcba98765432100000"
	tokenLines  = "# who may log in\n\nadmin alice " + adminToken + "\n\treader  bob\t" + readerToken + "\r\n"
)

// owned is a cluster as one viewer gets to see it: all jobs are ada's.
type owned struct {
	*cluster
	viewer login.Viewer
}

func ownedBy(c *cluster) func(login.Viewer) (web.Source, web.Administration) {
	return func(v login.Viewer) (web.Source, web.Administration) { return owned{c, v}, c }
}

func (o owned) Job(ctx context.Context, job string) (*epdapi.JobView, error) {
	if !o.viewer.SeesAll() && o.viewer.Name != "ada" {
		return nil, refused(http.StatusNotFound, "there is no such job")
	}
	return o.cluster.Job(ctx, job)
}

// port is a site at a port, with a clock that stands still.
type port struct {
	*httptest.Server
	cluster  *cluster
	now      time.Time
	settings config.Web
	tokens   string
	asked    []login.Viewer // whom the JSON interface was asked for
	log      bytes.Buffer
}

func openPort(t *testing.T) *port {
	t.Helper()
	p := &port{cluster: newCluster(), now: shownAt, settings: config.Default().Web, tokens: tokenLines}
	site := web.New(web.Options{
		Source: ownedBy(p.cluster), Version: "1.0",
		Now:      func() time.Time { return p.now },
		Settings: func() config.Web { return p.settings },
		Log:      slog.New(slog.NewTextHandler(&p.log, nil)),
		Accounts: func(name string) (uint32, string, bool) {
			uid, ok := map[string]uint32{"ada": 1000, "bob": 1001}[name]
			return uid, name, ok
		},
		Tokens: func() (*login.Tokens, error) {
			return login.ReadTokens(strings.NewReader(p.tokens), "tokens")
		},
		API: func(v login.Viewer) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				p.asked = append(p.asked, v)
				_, _ = io.WriteString(w, "{}")
			})
		},
	})
	p.Server = httptest.NewServer(site.Network())
	t.Cleanup(p.Close)
	return p
}

// browser is somebody who keeps cookies and follows no redirect.
type browser struct {
	t       *testing.T
	address string
	cookies []*http.Cookie
	headers map[string]string
	host    string
}

// answered is what a browser got.
type answered struct {
	status int
	body   string
	header http.Header
}

func (b *browser) ask(method, path string, form url.Values) answered {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.address+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for key, value := range b.headers {
		r.Header.Set(key, value)
	}
	if b.host != "" {
		r.Host = b.host
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range response.Cookies() {
		b.cookies = nil
		if c.MaxAge >= 0 {
			b.cookies = []*http.Cookie{c}
		}
	}
	return answered{response.StatusCode, string(body), response.Header}
}

func (b *browser) get(path string) answered { b.t.Helper(); return b.ask(http.MethodGet, path, nil) }

var tokenOfForm = regexp.MustCompile(`name="form_token" value="([0-9a-f]{64})"`)

// formToken is that of the first form of a page.
func (b *browser) formToken(path string) string {
	b.t.Helper()
	found := tokenOfForm.FindStringSubmatch(b.get(path).body)
	if found == nil {
		b.t.Fatalf("%s has no form", path)
	}
	return found[1]
}

func (b *browser) login(token string) answered {
	b.t.Helper()
	return b.ask(http.MethodPost, "/login", url.Values{
		"form_token": {b.formToken("/login")}, "token": {token}, "next": {"/queue?sort=age"},
	})
}

func (p *port) browser(t *testing.T) *browser { t.Helper(); return &browser{t: t, address: p.URL} }

func TestWhoSeesWhat(t *testing.T) {
	viewers := map[string]login.Viewer{
		"nobody": {UID: -1}, "ada": {UID: 1000, Name: "ada", Role: login.User},
		"bob":    {UID: 1001, Name: "bob", Role: login.User},
		"reader": {UID: 1002, Name: "oper", Role: login.Reader}, "admin": admin,
	}
	for path, want := range map[string]map[string]int{
		"/":             {"nobody": 403, "ada": 200, "bob": 200, "reader": 200, "admin": 200},
		"/queue":        {"nobody": 403, "ada": 200, "bob": 200, "reader": 200, "admin": 200},
		"/jobs":         {"nobody": 403, "ada": 200, "bob": 200, "reader": 200, "admin": 200},
		"/jobs/4711":    {"nobody": 403, "ada": 200, "bob": 404, "reader": 200, "admin": 200},
		"/jobs/none":    {"nobody": 403, "ada": 404, "bob": 404, "reader": 404, "admin": 404},
		"/nodes":        {"nobody": 403, "ada": 200, "bob": 200, "reader": 200, "admin": 200},
		"/nodes/n1":     {"nobody": 403, "ada": 200, "bob": 200, "reader": 200, "admin": 200},
		"/nodes/none":   {"nobody": 403, "ada": 404, "bob": 404, "reader": 404, "admin": 404},
		"/month":        {"nobody": 403, "ada": 403, "bob": 403, "reader": 200, "admin": 200},
		"/workloads":    {"nobody": 403, "ada": 403, "bob": 403, "reader": 200, "admin": 200},
		"/admin":        {"nobody": 403, "ada": 403, "bob": 403, "reader": 403, "admin": 200},
		"/admin/levers": {"nobody": 403, "ada": 403, "bob": 403, "reader": 403, "admin": 200},
		"/nowhere":      {"nobody": 404, "ada": 404, "bob": 404, "reader": 404, "admin": 404},
		"/healthz":      {"nobody": 200, "ada": 200, "bob": 200, "reader": 200, "admin": 200},
	} {
		for name, v := range viewers {
			site := web.New(web.Options{
				Source: ownedBy(newCluster()),
				Now:    func() time.Time { return shownAt },
			})
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = "localhost:8080"
			site.Socket(func(*http.Request) login.Viewer { return v }).ServeHTTP(w, r)
			if w.Code != want[name] {
				t.Errorf("%s gets %d for %s, want %d", name, w.Code, path, want[name])
			}
			if strings.Contains(w.Body.String(), "train-") && (w.Code != http.StatusOK || name == "nobody") {
				t.Errorf("%s sees jobs' names at %s", name, path)
			}
		}
	}
}

// What a page leaves out, it says.
func TestEachPageSaysWhatItsReaderSees(t *testing.T) {
	const own = "You see your own jobs only. Nodes, counts and savings are of the whole cluster."
	users := login.Viewer{UID: 1000, Name: "ada", Role: login.User}
	for _, path := range []string{"/", "/queue", "/jobs", "/jobs/4711", "/nodes", "/nodes/n1"} {
		for said, v := range map[bool]login.Viewer{true: users, false: admin} {
			if p := look(t, newCluster(), v, path); p.status != http.StatusOK ||
				strings.Contains(words(p.root), own) != said {
				t.Errorf("%s at %s, status %d: said %v, want %v", v.Role, path, p.status, !said, said)
			}
		}
	}
	queue := words(look(t, newCluster(), users, "/queue").root)
	if !strings.Contains(queue, "Your GPU jobs that wait or run") {
		t.Error("the queue doesn't say whose jobs it lists")
	}
	if p := look(t, newCluster(), users, "/nowhere"); strings.Contains(words(p.root), own) {
		t.Error("said of a page that isn't there")
	}
}

func TestWithoutALoginAPortShowsNothingOrAggregates(t *testing.T) {
	p := openPort(t)
	b := p.browser(t)
	if a := b.get("/queue?user=ada"); a.status != http.StatusSeeOther ||
		a.header.Get("Location") != "/login?next=%2Fqueue%3Fuser%3Dada" {
		t.Errorf("%d to %s", a.status, a.header.Get("Location"))
	}
	if a := b.get("/healthz"); a.status != http.StatusOK || a.body != "ok\n" {
		t.Errorf("health: %d %q", a.status, a.body)
	}
	if a := b.get("/v1/jobs"); a.status != http.StatusForbidden || len(p.asked) > 0 {
		t.Errorf("the JSON interface answers %d", a.status)
	}
	p.settings.Anonymous = config.AnonymousAggregates
	a := b.get("/")
	if a.status != http.StatusOK || !strings.Contains(a.body, "What was saved") ||
		!strings.Contains(a.body, "logged in: no job, user or workload is shown.") {
		t.Errorf("%d", a.status)
	}
	for _, word := range []string{"train-", "ada", "grace", "n1", "/jobs", workload, "&lt;b&gt;"} {
		if strings.Contains(a.body, word) {
			t.Errorf("the overview for everybody says %q", word)
		}
	}
	if a := b.get("/nodes"); a.status != http.StatusSeeOther {
		t.Errorf("nodes: %d", a.status)
	}
}

func TestATokenBeginsASessionThatLogoutEnds(t *testing.T) {
	p := openPort(t)
	b := p.browser(t)
	a := b.login(readerToken)
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/queue?sort=age" {
		t.Fatalf("%d to %s\n%s", a.status, a.header.Get("Location"), a.body)
	}
	cookie := a.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %s, want %s", cookie, want)
		}
	}
	if a := b.get("/"); a.status != http.StatusOK || !strings.Contains(a.body, "You are bob, reader.") {
		t.Errorf("%d", a.status)
	}
	if a := b.get("/v1/jobs"); a.status != http.StatusOK || len(p.asked) != 1 ||
		p.asked[0].Role != login.Reader {
		t.Errorf("the JSON interface: %d, %+v", a.status, p.asked)
	}
	if a := b.ask(http.MethodPost, "/v1/reload", url.Values{}); a.status != http.StatusMethodNotAllowed ||
		len(p.asked) != 1 {
		t.Errorf("something was changed by the JSON interface at a port: %d", a.status)
	}
	if a := b.get("/admin"); a.status != http.StatusForbidden {
		t.Errorf("a reader administers: %d", a.status)
	}
	if a := b.ask(http.MethodPost, "/logout", url.Values{"form_token": {b.formToken("/")}}); a.status !=
		http.StatusSeeOther {
		t.Errorf("logout: %d", a.status)
	}
	if a := b.get("/"); a.status != http.StatusSeeOther {
		t.Errorf("after the logout: %d", a.status)
	}
}

func TestASessionEndsByItselfOrWithItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*port)
		open   bool
	}{
		"an hour":                      {func(p *port) { p.now = p.now.Add(time.Hour) }, true},
		"two idle hours":               {func(p *port) { p.now = p.now.Add(2 * time.Hour) }, false},
		"the token is gone":            {func(p *port) { p.tokens = "admin alice " + adminToken }, false},
		"the token file can't be used": {func(p *port) { p.tokens = "what" }, false},
	} {
		p := openPort(t)
		b := p.browser(t)
		b.login(readerToken)
		c.change(p)
		if a := b.get("/"); (a.status == http.StatusOK) != c.open {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	p := openPort(t)
	b := p.browser(t)
	b.login(readerToken)
	for hour := range 12 { // a page that asks by itself keeps no session alive, a reader does
		p.now = p.now.Add(time.Hour)
		if a := b.get("/"); a.status != http.StatusOK {
			t.Errorf("after %d h: %d", hour+1, a.status)
		}
	}
	p.now = p.now.Add(time.Minute)
	if a := b.get("/"); a.status != http.StatusSeeOther {
		t.Errorf("after half a day: %d", a.status)
	}
}

func TestAPageThatAsksByItselfKeepsNoSessionAlive(t *testing.T) {
	p := openPort(t)
	b := p.browser(t)
	b.login(readerToken)
	b.headers = map[string]string{"X-Epd-Live": "1"}
	var last answered
	for range 100 {
		p.now = p.now.Add(time.Minute)
		last = b.get("/")
	}
	if last.status != http.StatusForbidden {
		t.Errorf("after 100 minutes nobody looked: %d", last.status)
	}
}

func TestWhatAnotherSiteSendsIsRefused(t *testing.T) {
	for name, headers := range map[string]map[string]string{
		"fetch metadata": {"Sec-Fetch-Site": "cross-site"},
		"same site":      {"Sec-Fetch-Site": "same-site"},
		"origin":         {"Origin": "https://evil.example"},
		"no origin":      {"Origin": "null"},
		"another port":   {"Origin": "http://localhost:1"},
		"said by a proxy": {
			"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https",
		},
	} {
		p := openPort(t)
		b := p.browser(t)
		b.login(adminToken)
		form := url.Values{"form_token": {b.formToken("/admin/levers")}}
		b.headers = headers
		if a := b.ask(http.MethodPost, "/admin/levers", form); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, a.status)
		}
		if len(p.cluster.done) > 0 {
			t.Errorf("%s: done was %q", name, p.cluster.done)
		}
		b.headers = map[string]string{"Sec-Fetch-Site": "same-origin"}
		if a := b.ask(http.MethodPost, "/admin/levers", form); a.status != http.StatusSeeOther ||
			len(p.cluster.done) != 1 {
			t.Errorf("from its own page: %d, done was %q", a.status, p.cluster.done)
		}
	}
}

func TestAFormWithoutItsTokenIsRefused(t *testing.T) {
	p := openPort(t)
	alice, bob := p.browser(t), p.browser(t)
	alice.login(adminToken)
	bob.login(readerToken)
	others := bob.formToken("/")
	for name, form := range map[string]url.Values{
		"none": {}, "empty": {"form_token": {""}},
		"another viewer's": {"form_token": {others}}, "in the address": nil,
	} {
		path := "/admin/levers"
		if form == nil {
			path += "?form_token=" + alice.formToken("/")
			form = url.Values{}
		}
		if a := alice.ask(http.MethodPost, path, form); a.status != http.StatusForbidden ||
			len(p.cluster.done) > 0 {
			t.Errorf("%s: %d, done was %q", name, a.status, p.cluster.done)
		}
	}
	if a := bob.ask(http.MethodPost, "/admin/levers", url.Values{"form_token": {others}}); a.status !=
		http.StatusForbidden || len(p.cluster.done) > 0 {
		t.Errorf("a reader: %d, done was %q", a.status, p.cluster.done)
	}
}

func TestNobodyIsToldThatLeversAreTakenBackWhereOneIsnt(t *testing.T) {
	for _, stuck := range []int{0, 2} {
		for _, wrong := range []string{"", "Slurm doesn't answer"} {
			p := openPort(t)
			p.cluster.stuck, p.cluster.wrong = stuck, wrong
			b := p.browser(t)
			b.login(adminToken)
			form := url.Values{"form_token": {b.formToken("/admin/levers")}}
			a := b.ask(http.MethodPost, "/admin/levers", form)
			if stuck == 0 && wrong == "" {
				if a.status != http.StatusSeeOther {
					t.Errorf("all were taken back: %d, %s", a.status, a.body)
				}
				continue
			}
			said := html.UnescapeString(a.body)
			if a.status != http.StatusServiceUnavailable || !strings.Contains(said, wrong) ||
				!strings.Contains(said, fmt.Sprintf("5 levers were taken back, %d couldn't be", stuck)) {
				t.Errorf("%d can't be taken back, %q: %d, %s", stuck, wrong, a.status, said)
			}
		}
	}
}

func TestOnlyNamesOfThisMachineAreAnswered(t *testing.T) {
	for host, ok := range map[string]bool{
		"localhost": true, "localhost:8080": true, "x.localhost:1": true, "127.0.0.1:8080": true,
		"[::1]:8080": true, "epd.example.org": true, "EPD.example.org:443": true,
		"head:8443": true, "head": false, "head:80": false, "evil.example": false,
		"127.0.0.1.evil.example": false, "localhost.evil.example": false, "10.0.0.1": false,
		"epd:80": false, "epd": true, "LOCALHOST.:8080": true, "epd.example.org.": true,
		"[::ffff:127.0.0.1]:80": true, "[::]:80": false, "0.0.0.0:8080": false, "2130706433": false,
		"localhost:80:80":    false,
		"[::1].evil.example": false, "[evil.example]": false, "localhost,evil.example": false,
		"xlocalhost": false, "epd.example.org.evil.example": false,
	} {
		p := openPort(t)
		p.settings.Hosts = []string{"epd.example.org", "head:8443"}
		b := p.browser(t)
		b.host = host
		b.headers = map[string]string{"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
		if a := b.get("/healthz"); (a.status == http.StatusOK) != ok ||
			!ok && a.status != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d", host, a.status)
		}
	}
}

func TestASocketIsGuardedFromOtherSitesPages(t *testing.T) {
	reached := 0
	guarded := web.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }),
		func() []string { return nil })
	for _, c := range []struct {
		method, host, origin string
		want                 int
	}{
		{http.MethodPost, "epplan", "", 200},
		{http.MethodPost, "epd", "", 200},
		{http.MethodGet, "localhost:8080", "", 200},
		{http.MethodPost, "localhost:8080", "http://localhost:8080", 200},
		{http.MethodPost, "localhost:8080", "https://evil.example", 403},
		{http.MethodGet, "evil.example", "", 421},
		{http.MethodGet, "evil.example:8080", "", 421},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/v1/levers/undo", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		before := reached
		guarded.ServeHTTP(w, r)
		if w.Code != c.want || (reached > before) != (c.want == 200) {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
}

func TestEveryAnswerHasTheHeadersThatKeepABrowserSafe(t *testing.T) {
	p := openPort(t)
	b := p.browser(t)
	b.login(adminToken)
	for _, path := range []string{
		"/", "/queue", "/jobs/1", "/nowhere", "/login", "/v1/jobs", "/healthz",
		"/static/epd.js", "/static/none",
	} {
		h := b.get(path).header
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'",
			"img-src 'self' data:", "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'",
			"base-uri 'none'",
		} {
			if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: the policy is %q, want %s", path, policy, want)
			}
		}
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff",
			"Referrer-Policy":        "no-referrer",
		} {
			if h.Get(key) != want {
				t.Errorf("%s: %s is %q", path, key, h.Get(key))
			}
		}
		if h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be stored: %s", path, h.Get("Cache-Control"))
		}
	}
	if h := b.get("/static/epd.js?v=000000").header; h.Get("Cache-Control") != "no-store" {
		t.Errorf("another version may be stored: %s", h.Get("Cache-Control"))
	}
}

// slowReader is an answer that somebody doesn't fetch before they are told to.
type slowReader struct {
	*httptest.ResponseRecorder
	sent    chan<- struct{}
	fetched <-chan struct{}
}

func (w *slowReader) Write(p []byte) (int, error) {
	w.sent <- struct{}{}
	<-w.fetched
	return w.ResponseRecorder.Write(p)
}

func TestAnswersThatAreNotFetchedHoldUpNobodyElse(t *testing.T) {
	reader := login.Viewer{UID: 1002, Name: "oper", Role: login.Reader}
	site := web.New(web.Options{
		Source: ownedBy(newCluster()),
		Now:    func() time.Time { return shownAt },
		Tokens: func() (*login.Tokens, error) {
			return login.ReadTokens(strings.NewReader(tokenLines), "tokens")
		},
		API: func(login.Viewer) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "{}")
			})
		},
	})
	server := httptest.NewServer(site.Network())
	defer server.Close()
	b := &browser{t: t, address: server.URL}
	b.login(readerToken)
	pages := site.Socket(func(*http.Request) login.Viewer { return reader })
	ask := func(path string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = "localhost"
		for _, c := range b.cookies {
			r.AddCookie(c)
		}
		return r
	}
	sent, fetched := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	defer group.Wait()
	defer close(fetched)
	slow := func(h http.Handler, path string) {
		for range 2 + runtime.GOMAXPROCS(0) {
			group.Go(func() { h.ServeHTTP(&slowReader{httptest.NewRecorder(), sent, fetched}, ask(path)) })
			select {
			case <-sent:
			case <-time.After(2 * time.Minute):
				t.Fatalf("%s waits for those who don't fetch theirs", path)
			}
		}
	}
	slow(pages, "/queue")
	slow(site.Network(), "/v1/jobs")
	w := httptest.NewRecorder()
	if pages.ServeHTTP(w, ask("/queue")); w.Code != http.StatusOK {
		t.Errorf("the next page is answered with %d", w.Code)
	}
}

func TestAnAddressOrAFormThatIsTooLongIsRefused(t *testing.T) {
	p := openPort(t)
	b := p.browser(t)
	if a := b.get("/queue?user=" + strings.Repeat("a", 5000)); a.status != http.StatusRequestURITooLong {
		t.Errorf("%d", a.status)
	}
	if a := b.ask(http.MethodPost, "/login", url.Values{"token": {strings.Repeat("a", 100<<10)}}); a.status !=
		http.StatusBadRequest {
		t.Errorf("%d", a.status)
	}
}

func TestWhatEPDAnswersBecomesAPageThatSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{refused(http.StatusForbidden, "not allowed"), http.StatusForbidden, "Operators are named"},
		{refused(http.StatusBadRequest, "bad <b>request</b>"), http.StatusBadRequest, "bad &lt;b&gt;request"},
		{
			errors.New("a secret of the store"), http.StatusInternalServerError,
			"epd&#39;s log says what it was",
		},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "took too long"},
	} {
		site := web.New(web.Options{
			Source: sourceOf(failing{newCluster(), c.err}),
			Now:    func() time.Time { return shownAt },
		})
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/nodes", nil)
		site.Socket(func(*http.Request) login.Viewer { return admin }).ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) ||
			strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: %d, want %d and %q in\n%s", c.err, w.Code, c.status, c.says, w.Body)
		}
	}
}

// failing is a cluster of which the nodes can't be told.
type failing struct {
	*cluster
	err error
}

func (f failing) Nodes(context.Context) (*epdapi.NodeList, error) { return nil, f.err }
