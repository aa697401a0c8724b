package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/browsertest"
	"github.com/epplan/epplan/internal/web"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

var admin = web.Viewer{UID: 0, Name: "root", Role: web.Admin}

// siteOf serves a cluster's pages to a viewer, and returns their address.
func siteOf(t *testing.T, c *cluster, v web.Viewer) string {
	t.Helper()
	site := web.New(web.Options{Source: func(web.Viewer) web.Source { return c }, Version: "1.0", Now: func() time.Time { return shownAt }})
	server := httptest.NewServer(site.Socket(func(*http.Request) web.Viewer { return v }))
	t.Cleanup(server.Close)
	return server.URL
}

const workloadPath = "/workloads/ada%2Ftrain.sh?gpu=V100"

func TestPagesAreReadableInABrowser(t *testing.T) {
	address := siteOf(t, newCluster(), admin)
	for _, c := range []struct {
		name, path string
		says       []string
	}{
		{"overview", "/", []string{"Overview of alpha", "What was saved", "Health"}},
		{"queue", "/queue", []string{"Queue", "train-3", "<img src=x"}},
		{"jobs", "/jobs", []string{"Jobs", "4711", "train-0"}},
		{"job", "/jobs/4711", []string{"Job 4711", "Why these clocks", "Predicted and measured"}},
		{"nodes", "/nodes", []string{"n1", "n2", "n3"}},
		{"node", "/nodes/n1", []string{"n1", "1110"}},
		{"workloads", "/workloads", []string{"Workloads", workload, "pooled prior", "<img src=x"}},
		{"workload", workloadPath, []string{workload + " on V100", "Version in use", "t0", "31.5", "in use", "it ended in state TIMEOUT"}},
		{"workload-use", "/workloads/ada%2Ftrain.sh/use?gpu=V100&version=2", []string{"Use version 2", "What will happen", "How to undo it", "version 3"}},
		{"whatif", "/whatif?policy=edl&jobs=10", []string{"What if", "Policy edl plans all 10 jobs", "begins as if they were free"}},
		{"admin", "/admin", []string{"Administration", "a1b2c3"}},
		{"admin-levers", "/admin/levers", []string{"Take every lever back", "How to undo it", "Jobs with another nice"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			browsertest.Inspect(t, "web-"+c.name, address+c.path, c.says...)
		})
	}
}

func TestAPageIsBroughtUpToDateWhereItIsLookedAt(t *testing.T) {
	c := newCluster()
	p := browsertest.Open(t, siteOf(t, c, admin)+"/queue", browsertest.View{})
	var done bool
	p.Eval(`(window.here = true, document.querySelector('main a[href]').focus(), document.querySelector('main input').value = 'gra', true)`, &done)
	before := p.Focused()
	if before.Kind != "a" {
		t.Fatalf("the focus is on %+v", before)
	}
	c.change(func() { c.queue.Jobs[3].Name = "renamed-meanwhile" })
	p.WaitFor(`document.body.innerText.includes('renamed-meanwhile')`)
	var kept bool
	if p.Eval(`window.here === true && document.querySelector('main input').value === 'gra'`, &kept); !kept {
		t.Error("the page was loaded anew, or a field that somebody fills in was emptied")
	}
	if after := p.Focused(); after.Name != before.Name || after.Kind != "a" {
		t.Errorf("the focus went from %+v to %+v", before, after)
	}
}

func TestAFilterIsFilledInWithTheKeyboardAlone(t *testing.T) {
	for _, view := range []browsertest.View{{}, {NoScript: true}} {
		p := browsertest.Open(t, siteOf(t, newCluster(), admin)+"/workloads", view)
		for range 30 {
			if p.Focused().Kind == "input" {
				break
			}
			p.Press("\t")
		}
		p.Type("sweep-07")
		p.Press("\r")
		p.WaitFor(`location.search === '?name=sweep-07' && document.readyState === 'complete'`)
		if p.Says("grace/sweep-07.sh"); strings.Contains(p.Text(), "grace/sweep-03.sh") {
			t.Error("what isn't asked for is still there")
		}
	}
}

func TestAnErrorIsAPageToo(t *testing.T) {
	p := browsertest.Open(t, siteOf(t, newCluster(), admin)+"/jobs/1", browsertest.View{})
	p.Says("Not found", "Overview")
	p.NoBarriers()
}

func TestTheNavigationIsReachedByTheKeyboardFirst(t *testing.T) {
	p := browsertest.Open(t, siteOf(t, newCluster(), admin)+"/", browsertest.View{})
	p.SkipsToMain()
	var names []string //nolint:prealloc // a handful
	for _, stop := range p.TabOrder(9) {
		names = append(names, stop.Name)
	}
	if want := []string{"Skip to the content", "epd", "Overview", "Queue", "Jobs", "Nodes", "Workloads", "What if", "Administration"}; !slices.Equal(names, want) {
		t.Errorf("the keyboard comes to %q, want %q", names, want)
	}
}

func TestAnAdministratorChoosesAVersionAndUndoesIt(t *testing.T) {
	c := newCluster()
	p := browsertest.Open(t, siteOf(t, c, admin)+workloadPath, browsertest.View{NoScript: true})
	p.Follow(`a[href*="version=2"]`)
	p.Says("Use version 2", "Now in use: version 3")
	p.Fill("input[name=reason]", "version 3 is too slow")
	p.Follow("main form button")
	p.Says(workload+" on V100", "chosen by hand")
	if want := []string{`use ada/train.sh V100 2 false "version 3 is too slow (root)"`}; !slices.Equal(c.done, want) {
		t.Errorf("done was %q, want %q", c.done, want)
	}
	p.Follow(`a[href*="version=3"]`)
	p.Follow("main form button")
	if c.version != 3 {
		t.Errorf("version %d is in use", c.version)
	}
}

func TestLeversAreTakenBackAndTheConfigurationReadOnceConfirmed(t *testing.T) {
	c := newCluster()
	p := browsertest.Open(t, siteOf(t, c, admin)+"/admin", browsertest.View{NoScript: true})
	p.Follow(`a[href="/admin/levers"]`)
	if len(c.done) > 0 {
		t.Fatalf("before anything was confirmed %q was done", c.done)
	}
	p.Follow("main form button")
	p.Says("The levers were taken back")
	p.Follow(`a[href="/admin/levers"]`)
	p.Says("The levers are taken back already")
	p.Follow("a.button")
	p.Follow(`a[href="/admin/reload"]`)
	p.Follow("main form button")
	p.Says("The configuration was read again")
	if want := []string{"levers", "reload"}; !slices.Equal(c.done, want) {
		t.Errorf("done was %q, want %q", c.done, want)
	}
	c.wrong = "epd.toml:3:8: unknown key \"mod\""
	p.Follow(`a[href="/admin/reload"]`)
	p.Follow("main form button")
	p.Says("Not understood", "epd.toml:3:8", "unknown key")
}

func TestFormsOfOthersDoNothing(t *testing.T) {
	c := newCluster()
	for _, v := range []web.Viewer{admin, {UID: 7, Name: "ada", Role: web.User}, {UID: 8, Name: "op", Role: web.Reader}} {
		address := siteOf(t, c, v)
		for _, path := range []string{"/admin/levers", "/admin/reload", "/workloads/ada%2Ftrain.sh/use"} {
			form := url.Values{"gpu": {"V100"}, "version": {"2"}, "form_token": {"of somebody else"}}
			answer, err := http.PostForm(address+path, form) //nolint:noctx // the test's own server
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s of a %s: status %d", path, v.Role, answer.StatusCode)
			}
		}
	}
	if len(c.done) > 0 {
		t.Errorf("%q was done", c.done)
	}
}
