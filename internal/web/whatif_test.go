package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
)

// got returns the page of a path, for an operator.
func got(tb testing.TB, address, path string) (status int, text string) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, address+path, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

var operator = login.Viewer{UID: 8, Name: "op", Role: login.Reader}

func TestWhatIfSaysWhatItCannotPlan(t *testing.T) {
	for _, c := range []struct {
		name, query string
		change      func(c *cluster)
		status      int
		says        string
	}{
		{"nothing was asked yet", "", nil, http.StatusOK, "Plan the queue"},
		{"the best policy", "?policy=&jobs=5", nil, http.StatusOK, "plans all 5 jobs"},
		{"default clocks", "?policy=edl&clocks=default&jobs=3", nil, http.StatusOK, "edl,clocks=default"},
		{
			"no deadline", "?policy=edl&relaxed=1&jobs=3", nil, http.StatusOK,
			"name=\"relaxed\" value=\"1\" checked",
		},
		{
			"a policy of one's own", "?policy=&text=edl,theta=0.9&jobs=4", nil, http.StatusOK,
			"plans all 4 jobs",
		},
		{
			"a policy that isn't one", "?policy=&text=edl,thetta=0.9", nil, http.StatusOK,
			"The policy can&#39;t be read",
		},
		{"a name that isn't one", "?policy=<b>", nil, http.StatusBadRequest, "no policy of that name"},
		{"clocks that aren't any", "?policy=&clocks=fast", nil, http.StatusBadRequest, "Clocks are"},
		{"too many jobs", "?policy=&jobs=1001", nil, http.StatusBadRequest, "from 1 to 1000"},
		{"nothing waits", "?policy=edl", func(c *cluster) {
			c.queue.Jobs = nil
		}, http.StatusOK, "No job with GPUs waits"},
		{"nothing to plan on", "?policy=edl", func(c *cluster) {
			c.queue.Nodes = nil
		}, http.StatusOK, "No node of Slurm"},
		{"no queue", "?policy=edl", func(c *cluster) {
			c.silent = true
		}, http.StatusOK, "There is no queue to plan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newCluster()
			if c.change != nil {
				c.change(cluster)
			}
			status, text := got(t, siteOf(t, cluster, operator), "/whatif"+c.query)
			if status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("status %d, want %d with %q:\n%.3000s", status, c.status, c.says, text)
			}
		})
	}
}

func TestAPlanEndsWithThePageThatAskedForIt(t *testing.T) {
	c := newCluster()
	c.slow = make(chan struct{})
	c.asked = make(chan struct{}, 9)
	site := web.New(web.Options{Source: sourceOf(c)})
	handler := site.Socket(func(*http.Request) login.Viewer { return operator })
	ask := func(ctx context.Context) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/whatif?policy=edl&jobs=5", http.NoBody)
		r.Host = "localhost"
		handler.ServeHTTP(w, r)
		return w
	}
	leaving, leave := context.WithCancel(t.Context())
	gone := make(chan *httptest.ResponseRecorder)
	go func() { gone <- ask(leaving) }()
	<-c.asked
	leave()
	<-gone
	close(c.slow)
	if w := ask(t.Context()); !strings.Contains(w.Body.String(), "The plan is of") {
		t.Errorf("once the first page was left, a plan is answered with %d:\n%.2000s", w.Code, w.Body)
	}
}

// A fit reads 64 runs, and fits a model to them.
func TestThePageThatConfirmsAVersionNamesTheWorkloadWithoutAFit(t *testing.T) {
	c := newCluster()
	status, text := got(t, siteOf(t, c, login.Viewer{UID: 9, Name: "x", Role: login.Admin}),
		"/workloads/ada%2Ftrain.sh/use?gpu=V100&version=2")
	if status != http.StatusOK || !strings.Contains(text, "clocks of train-0 (ada, gpu) on V100") {
		t.Errorf("status %d:\n%.2000s", status, text)
	}
	if c.fits != 0 {
		t.Errorf("%d fits were asked for", c.fits)
	}
}

func TestOnlyOperatorsSeeModelsAndOnlyAdministratorsAct(t *testing.T) {
	c := newCluster()
	for path, least := range map[string]login.Role{
		"/whatif": login.User, "/workloads": login.Reader, "/month": login.Reader, workloadPath: login.Reader,
		"/admin": login.Admin, "/admin/levers": login.Admin, "/admin/reload": login.Admin,
		"/workloads/ada%2Ftrain.sh/use?gpu=V100&version=2": login.Admin,
	} {
		for role := login.User; role <= login.Admin; role++ {
			status, text := got(t, siteOf(t, c, login.Viewer{UID: 9, Name: "x", Role: role}), path)
			if allowed := status == http.StatusOK; allowed != (role >= least) {
				t.Errorf("%s for a %s: status %d", path, role, status)
			}
			if strings.Contains(text, "use version") && path == workloadPath && role < login.Admin {
				t.Errorf("%s offers a %s to choose a version", path, role)
			}
		}
	}
}
