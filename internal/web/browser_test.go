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

	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

var admin = login.Viewer{UID: 0, Name: "root", Role: login.Admin}

// siteOf serves a cluster's pages to a viewer, and returns their address.
func siteOf(t *testing.T, c *cluster, v login.Viewer) string {
	t.Helper()
	site := web.New(web.Options{
		Source: sourceOf(c), Version: "1.0",
		Now: func() time.Time { return shownAt },
	})
	server := httptest.NewServer(site.Socket(func(*http.Request) login.Viewer { return v }))
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
		{
			"overview", "/", []string{
				"Overview of alpha", "What was saved", "Health",
				"between 197.2 kWh and 325.0 kWh (11.5 % to 18.9 %) in 95 of 100 cases",
				"5 % of the jobs are held out", "epd started 3 days ago",
			},
		},
		{
			"queue", "/queue", []string{
				"Queue", "train-3", "<img src=x", "train-11 (1,200 tasks)", "GPU jobs: 1,217, in 18 rows",
			},
		},
		{
			"jobs", "/jobs", []string{
				"Jobs", "4711", "train-0", "1:23:45 *", "912.0 kJ *", "* epd was restarted while it ran",
			},
		},
		{"job", "/jobs/4711", []string{"Job 4711", "Why these clocks", "Predicted and measured"}},
		{
			"job-adapted", "/jobs/4715", []string{
				"Where its clock stayed", "1380 MHz", "0:28:10", "60 %", "0:18:50", "below 1 %", "514.8 W",
				"at most 1.017 times as long",
			},
		},
		{
			"job-restarted", "/jobs/4719", []string{
				"1:23:45", "912.0 kJ", "epd was restarted while it ran on n1",
			},
		},
		{"nodes", "/nodes", []string{"n1", "n2", "n3"}},
		{"node", "/nodes/n1", []string{"n1", "1110"}},
		{
			"workloads", "/workloads", []string{
				"Workloads", "train-0", "pooled prior", "<img src=x", "finetune-2", "edsger", "beef0002…x4",
			},
		},
		{
			"workload", workloadPath, []string{
				"train-0 (ada, gpu) on V100", workload, "Version in use", "t0", "31.5", "in use",
				"it ended in state TIMEOUT", "by alice (token), 2026-05-04",
			},
		},
		{
			"workload-use", "/workloads/ada%2Ftrain.sh/use?gpu=V100&version=2", []string{
				"Use version 2", "clocks of train-0 (ada, gpu) on V100", "What will happen",
				"How to undo it", "version 3",
			},
		},
		{
			"month", "/month?by=account", []string{
				"Energy of jobs in", "120.0 kWh", "physics", "By account", "Over time", "epplan report --month",
			},
		},
		{
			"whatif", "/whatif?policy=edl&jobs=10", []string{
				"What if", "Policy edl plans all 10 jobs", "turnaround, p95",
				"until they are expected to end",
			},
		},
		{"admin", "/admin", []string{"Administration", "a1b2c3"}},
		{
			"admin-levers", "/admin/levers", []string{
				"Take every lever back", "How to undo it", "by their Nice",
			},
		},
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
	p.Eval(
		`(window.here = true, document.querySelector('main a[href]').focus(), document.querySelector('main input').value = 'gra', true)`, &done,
	)
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

func TestWorkloadsAreFoundByWhatPeopleCallThem(t *testing.T) {
	address := siteOf(t, newCluster(), admin)
	for query, want := range map[string]string{
		"finetune-2": "beef0002…x4", "EDSGER": "beef0003…x8",
		"beef0001": "finetune-1",
	} {
		p := browsertest.Open(t, address+"/workloads?name="+query, browsertest.View{})
		if p.Says(want); strings.Contains(p.Text(), "sweep-03") {
			t.Errorf("%q finds what isn't asked for", query)
		}
	}
	p := browsertest.Open(t, address+"/workloads?name=eve", browsertest.View{})
	if text := p.Text(); strings.Contains(text, strings.Repeat("long", 10)) || !strings.Contains(text, "…") {
		t.Error("a long name isn't cut")
	}
}

func TestListsShowAllColumnsOnADesktopWhateverAJobIsCalled(t *testing.T) {
	c := newCluster()
	for i, name := range []string{
		strings.Repeat("W", 300), strings.Repeat("a word ", 60),
		strings.Repeat("שלום", 40),
	} {
		c.queue.Jobs[i].Name, c.queue.Jobs[i].User = name, strings.Repeat("user", 16)
	}
	address := siteOf(t, c, admin)
	for _, path := range []string{"/queue", "/jobs", "/nodes", "/workloads"} {
		p := browsertest.Open(t, address+path, browsertest.View{})
		var out []string
		p.Eval(
			`[...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > b.clientWidth + 1).map(b => b.ariaLabel + ': ' + b.scrollWidth + ' of ' + b.clientWidth)`, &out,
		)
		if len(out) > 0 {
			t.Errorf("%s: columns out of sight of %q", path, out)
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
	var links []string
	p.Eval(`[...document.querySelectorAll('nav a')].map(a => a.textContent)`, &links)
	if len(links) < 2 || links[0] != "Overview" || links[len(links)-1] != "Administration" {
		t.Errorf("the navigation is %q, want the overview first and the administration last", links)
	}
	want := append([]string{"Skip to the content", "epd"}, links...)
	var names []string //nolint:prealloc // a handful
	for _, stop := range p.TabOrder(len(want)) {
		names = append(names, stop.Name)
	}
	if !slices.Equal(names, want) {
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
	p.Says("train-0 (ada, gpu) on V100", "chosen by hand: the last one was too slow",
		"by alice (token), 2026-05-04")
	if want := []string{`use ada/train.sh V100 2 false "version 3 is too slow"`}; !slices.Equal(c.done,
		want) {
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
	p.Says("All levers were taken back")
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
	for _, v := range []login.Viewer{
		admin,
		{UID: 7, Name: "ada", Role: login.User},
		{UID: 8, Name: "op", Role: login.Reader},
	} {
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
