package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

// page returns a page without faults, around a body.
func page(body string) string {
	//nolint:lll // markup
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>body{margin:1rem;color:#111;background:#fff} .skip{position:absolute;left:-99rem} .skip:focus{left:0}
@media(prefers-color-scheme:dark){body{color:#eee;background:#111} a{color:#9cf}}</style></head>
<body><a class="skip" href="#main">Skip to the content</a><nav><a href="#one">One</a> <a href="#two">Two</a></nav>
<main id="main" tabindex="-1"><h1>A page</h1>` + body + `</main></body></html>`
}

// serve serves pages by their paths, and returns the server's address.
func serve(t *testing.T, pages map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAPageWithoutFaultsPasses(t *testing.T) {
	url := serve(t, map[string]string{"/": page(`<p>Forty-two   joules.</p><button>Save</button>`)})
	p := browsertest.Inspect(t, "faultless", url+"/", "forty-two joules.")
	p.SkipsToMain()
	want := []string{"Skip to the content", "One", "Two", "Save"}
	names := make([]string, 0, len(want))
	for _, stop := range p.TabOrder(10) {
		names = append(names, stop.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("the keyboard comes to %q, want %q", names, want)
	}
}

func TestAFileIsAPageToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page("<p>From a file</p>")), 0o600); err != nil {
		t.Fatal(err)
	}
	browsertest.Open(t, "file://"+file, browsertest.View{}).Says("From a file")
}

func TestWhatGoesWrongOnAPageIsNamed(t *testing.T) {
	beside := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(beside, []byte(page(`<img src="beside.png" alt="A picture">`)),
		0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, map[string]string{
		"/error":     page(`<script>console.error("alas", 7)</script>`),
		"/warning":   page(`<script>console.warn("hm")</script>`),
		"/exception": page(`<script>throw new Error("thrown")</script>`),
		"/missing":   page(`<img src="/nowhere.png" alt="A picture">`),
		"/elsewhere": page(`<img src="https://example.org/a.png" alt="A picture">`),
		"/neighbour": page(`<script>fetch("http://localhost:1/").catch(() => 0)</script>`),
		"/socket":    page(`<script>try { new WebSocket("ws://example.org/s") } catch (e) {}</script>`),
	})
	for address, want := range map[string]string{
		url + "/error":     `console.error: "alas" 7`,
		url + "/warning":   `console.warning: "hm"`,
		url + "/exception": "thrown",
		url + "/missing":   "/nowhere.png: status 404",
		url + "/elsewhere": "somebody else: https://example.org/a.png",
		url + "/neighbour": "somebody else: http://localhost:1/",
		url + "/socket":    "somebody else: ws://example.org/s",
		"file://" + beside: "somebody else: file://" + filepath.Dir(beside) + "/beside.png",
	} {
		t.Run(filepath.Base(address), func(t *testing.T) {
			p := browsertest.OpenQuietly(t, address, browsertest.View{})
			p.WaitFor(`document.readyState === 'complete'`)
			if got := strings.Join(p.Problems(), "\n"); !strings.Contains(got, want) {
				t.Errorf("the problems are %q, without %q", got, want)
			}
		})
	}
}

// failures counts what a test would have failed with.
type failures struct {
	testing.TB

	said []string
}

func (f *failures) Error(args ...any) { f.said = append(f.said, fmt.Sprint(args...)) }

func (f *failures) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func TestFaultsOfAPageFailTheTest(t *testing.T) {
	const unlabelled = `<input type="text">`
	for _, c := range []struct {
		name, body string
		view       browsertest.View
		look       func(p *browsertest.Page)
		want       string
	}{
		{"words that aren't there", `<p>this</p>`, browsertest.View{}, func(p *browsertest.Page) {
			p.Says("that")
		}, `"that"`},
		{
			"hidden words", `<p hidden>this</p>`,
			browsertest.View{},
			func(p *browsertest.Page) { p.Says("this") }, `"this"`,
		},
		{
			"a table wider than a telephone", `<table style="width:500px"><tr><td>x</td></tr></table>`,
			browsertest.View{Width: browsertest.Phone},
			(*browsertest.Page).FitsWidth, "wider than its window",
		},
		{
			"a box that scrolls", `<details><summary>x</summary>` +
				`<div style="overflow-x:auto"><p style="width:500px">x</p></div></details>`,
			browsertest.View{Width: browsertest.Phone},
			(*browsertest.Page).ScrollsNowhere, "parts of the page scroll sideways: 500",
		},
		{"a field without a label", unlabelled, browsertest.View{}, noBarriers, "label (critical)"},
		{
			"grey on black", `<p style="color:#333">dim</p>`,
			browsertest.View{Dark: true},
			noBarriers, "color-contrast (serious)",
		},
		{
			"a button that hides its focus", `<button style="outline:none">Go</button>`,
			browsertest.View{},
			func(p *browsertest.Page) { p.TabOrder(9) }, `"Go" (button) doesn't show`,
		},
		{
			"a button off the screen", `<button style="position:fixed;left:-99em">Go</button>`,
			browsertest.View{},
			func(p *browsertest.Page) { p.TabOrder(9) }, `"Go" (button), which isn't on the screen`,
		},
		{
			"a stop without a name", unlabelled,
			browsertest.View{},
			func(p *browsertest.Page) { p.TabOrder(9) }, "input without a name",
		},
		{
			"no way past the navigation", `<script>document.querySelector('.skip').remove()</script>`,
			browsertest.View{},
			(*browsertest.Page).SkipsToMain, "not a link that skips",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := serve(t, map[string]string{"/": page(c.body)})
			p := browsertest.Open(t, url+"/", c.view)
			said := &failures{TB: t}
			p.TB = said
			c.look(p)
			if got := strings.Join(said.said, "\n"); !strings.Contains(got, c.want) {
				t.Errorf("the test says %q, want %q", got, c.want)
			}
		})
	}
}

func TestAViewIsWhatThePageSees(t *testing.T) {
	url := serve(t, map[string]string{"/": page(`<p id="by">without script</p>
<script>document.querySelector('#by').textContent = 'by script'</script>`)})
	for _, c := range []struct {
		name, sees string
		view       browsertest.View
	}{
		{
			"light", `matchMedia('(prefers-color-scheme: light)').matches && innerWidth === 1280`,
			browsertest.View{},
		},
		{"dark", `matchMedia('(prefers-color-scheme: dark)').matches`, browsertest.View{Dark: true}},
		{"print", `matchMedia('print').matches`, browsertest.View{Print: true}},
		{"telephone", `innerWidth === 375`, browsertest.View{Width: browsertest.Phone}},
		{
			"still", `matchMedia('(prefers-reduced-motion: reduce)').matches`,
			browsertest.View{ReducedMotion: true},
		},
		{"script", `document.querySelector('#by').textContent === 'by script'`, browsertest.View{}},
		{
			"no script", `document.querySelector('#by').textContent === 'without script'`,
			browsertest.View{NoScript: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen bool
			browsertest.Open(t, url+"/", c.view).Eval(c.sees, &seen)
			if !seen {
				t.Errorf("the page doesn't see %s", c.sees)
			}
		})
	}
}

func TestFormsAreFilledAndFollowed(t *testing.T) {
	url := serve(t, map[string]string{
		"/":     page(`<form action="/done"><label>Name <input name="n"></label><button>Go</button></form>`),
		"/done": page(`<p>Thank you</p>`),
	})
	p := browsertest.Open(t, url+"/", browsertest.View{})
	p.Fill("input", "Ada")
	p.Follow("button")
	p.Says("Thank you")
	var query string
	if p.Eval(`location.search`, &query); query != "?n=Ada" {
		t.Errorf("the form was sent as %q", query)
	}
	if n := p.Count("nav a"); n != 2 {
		t.Errorf("%d links, want 2", n)
	}
}

func noBarriers(p *browsertest.Page) { p.NoBarriers() }

func TestOnlyTheNamedRulesAreLookedAt(t *testing.T) {
	url := serve(t, map[string]string{"/": page(`<input type="text"><p style="color:#ddd">dim</p>`)})
	p := browsertest.Open(t, url+"/", browsertest.View{})
	if found := p.Barriers("color-contrast"); len(found) != 1 || found[0].Rule != "color-contrast" ||
		!found[0].Serious() {
		t.Errorf("%v", found)
	}
	if all := p.Barriers(); len(all) < 2 {
		t.Errorf("%v", all)
	}
}
