package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
)

// pageViewers are who may look, by a number.
var pageViewers = []login.Viewer{
	admin, {UID: 1000, Name: "ada", Role: login.User}, {UID: 2000, Name: "otto", Role: login.Reader}, {UID: -1},
}

// pagesOf returns the pages of a cluster, at a socket or a port, whose clock stands still.
func pagesOf(c *cluster, v login.Viewer, port bool) http.Handler {
	site := web.New(web.Options{
		Source: ownedBy(c), Version: "1.0", Now: func() time.Time { return shownAt },
		Tokens: func() (*login.Tokens, error) {
			return login.ReadTokens(strings.NewReader(tokenLines), "tokens")
		},
	})
	if port {
		return site.Network()
	}
	return site.Socket(func(*http.Request) login.Viewer { return v })
}

// fewJobs returns a cluster whose pages are short.
func fewJobs() *cluster { return &cluster{queue: waiting(3), version: 3} }

// askSite sends a request. Where a form says FORM_TOKEN, it has the one of the viewer's own forms.
func askSite(
	tb testing.TB, site http.Handler, method string, target *url.URL, form string,
) *httptest.ResponseRecorder {
	tb.Helper()
	r := (&http.Request{
		Method: method, URL: target, Host: "localhost", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, RemoteAddr: "127.0.0.1:1",
		Body: io.NopCloser(strings.NewReader(form)), RequestURI: target.RequestURI(),
	}).WithContext(tb.Context())
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	return w
}

// ownToken returns the token of a viewer's forms; empty: no page has a form for the viewer.
func ownToken(tb testing.TB, site http.Handler) string {
	tb.Helper()
	for _, path := range []string{"/admin/reload", "/login"} {
		w := askSite(tb, site, http.MethodGet, &url.URL{Path: path}, "")
		if found := tokenOfForm.FindStringSubmatch(w.Body.String()); found != nil {
			return found[1]
		}
	}
	return ""
}

// Whoever asks for whatever, with whatever in addresses and forms: what comes is a page in which nothing of
// it is markup, and that leads nowhere else.
func FuzzPages(f *testing.F) {
	for i, target := range []string{
		"/", "/queue", "/queue?user=ada&partition=gpu&state=PENDING&model=V100", "/jobs?user=ada&state=COMPLETED",
		"/jobs?before=9&limit=3&since=2026-01-01&mode=enforce&partition=a%2Cb", "/jobs/4711", "/jobs/4711_3",
		"/nodes", "/nodes?partition=gpu&state=IDLE", "/nodes/n1", "/month?month=2026-02&by=account",
		"/workloads?user=ada",
		"/workloads/ada%2Ftrain.sh?gpu=V100", "/workloads/ada%2Ftrain.sh/use?gpu=V100&version=2", "/admin",
		"/whatif", "/whatif?policy=edl&policy=fcfs&jobs=5&clocks=optimum", "/login?next=%2Fjobs", "/healthz",
		"/static/epd.js", "/jobs/%3Cscript%3E?x=%22%3E%3Cimg", "/login?next=//evil.example", "/admin/levers",
	} {
		f.Add(false, target, "", uint8(i%8))
		f.Add(false, target, "", uint8(0))
	}
	for _, form := range []string{
		"form_token=FORM_TOKEN", "form_token=x", "form_token=FORM_TOKEN&version=2&gpu=V100&note=why",
		"form_token=FORM_TOKEN&token=" + readerToken + "&next=/jobs", "form_token=FORM_TOKEN&token=x&next=//evil",
	} {
		f.Add(true, "/workloads/ada%2Ftrain.sh/use", form, uint8(0))
		f.Add(true, "/admin/reload", form, uint8(1))
		f.Add(true, "/login", form, uint8(7))
		f.Add(true, "/logout", form, uint8(4))
	}
	var asked [2][]http.Handler
	for i := range asked {
		for _, v := range pageViewers {
			asked[i] = append(asked[i], pagesOf(fewJobs(), v, i == 1))
		}
	}
	f.Fuzz(func(t *testing.T, post bool, target, form string, who uint8) {
		to, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		viewer, port := int(who)%len(pageViewers), int(who)/len(pageViewers)%2
		site, method := asked[port][viewer], http.MethodGet
		if post {
			site, method = pagesOf(fewJobs(), pageViewers[viewer], port == 1), http.MethodPost
			if strings.Contains(form, "FORM_TOKEN") {
				form = strings.ReplaceAll(form, "FORM_TOKEN", ownToken(t, site))
			}
		}
		w := askSite(t, site, method, to, form)
		checkAnswer(t, target, w)
	})
}

// checkAnswer wants an answer that a browser may be shown.
func checkAnswer(t *testing.T, target string, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code >= http.StatusInternalServerError {
		t.Fatalf("%s: status %d: %s", target, w.Code, w.Body)
	}
	if next := w.Header().Get("Location"); next != "" {
		u, err := url.Parse(next)
		if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(next, "/") ||
			strings.HasPrefix(next, "//") || strings.HasPrefix(next, `/\`) {
			t.Fatalf("%s leads to %q", target, next)
		}
	}
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		return
	}
	root, err := html.Parse(strings.NewReader(w.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	p := shownPage{status: w.Code, text: w.Body.String(), root: root}
	if strings.Contains(p.text, "<nav") { // the login has none
		wellMade(t, target, &p)
	}
	p.each(func(tag string, a map[string]string, n *html.Node) {
		if tag == "img" || tag == "iframe" || tag == "script" && !strings.HasPrefix(a["src"], "/static/epd.js") {
			t.Fatalf("%s: what was sent became an element: %s", target, words(n.Parent))
		}
		for _, key := range []string{"href", "src", "action", "formaction"} {
			if u, err := url.Parse(a[key]); err != nil || u.Host != "" || u.Scheme != "" && u.Scheme != "data" {
				t.Fatalf("%s: <%s %s=%q> leads elsewhere", target, tag, key, a[key])
			}
		}
	})
	if strings.ContainsAny(p.text, "\u202e\u200b\x1b\x00") {
		t.Fatalf("%s: control characters reach the page", target)
	}
}
