package daemon_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

func TestPagesGetWhatTheirViewerWouldGetAtASocket(t *testing.T) {
	storetest.NeedSQLite(t)
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	job := record.Job{
		Cluster: "alpha", ID: 7, Submitted: time.Unix(1_700_000_000, 0), User: "ada", Partition: "gpu",
		Name: []byte("secret"), GPUs: 1, Nodes: 1,
	}
	if err := records.PutJob(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	c, err := control.New(t.Context(), control.Options{Records: control.RecordsIn(records), Cluster: "alpha"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	inner := (&daemon.ControllerServer{
		Version: "1.0", Control: c, Access: &daemon.Access{}, Started: time.Now(),
		Health: &epdapi.Health{State: "/state"},
	}).InternalHandler()
	for name, c := range map[string]struct {
		caller                          query.Caller
		job, models, reload, undo, jobs int
	}{
		"nobody": {query.Caller{UID: math.MaxUint32}, 404, 403, 403, 404, 0},
		"ada":    {query.Caller{UID: 1000, Name: "ada"}, 200, 403, 403, 404, 1},
		"bob":    {query.Caller{UID: 1001, Name: "bob"}, 404, 403, 403, 404, 0},
		"reader": {query.Caller{UID: math.MaxUint32, Name: "bob", Operator: true}, 200, 200, 403, 404, 1},
		// There is no configuration to read.
		"admin": {query.Caller{UID: 0, Operator: true, Admin: true}, 200, 200, 400, 404, 1},
	} {
		ask := func(method, path string) (int, string) {
			w := httptest.NewRecorder()
			inner(c.caller).ServeHTTP(w,
				httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}")))
			return w.Code, w.Body.String()
		}
		for path, want := range map[string]int{
			"GET /v1/jobs/7": c.job, "GET /v1/models": c.models,
			"POST /v1/reload": c.reload, "POST /v1/levers/undo": c.undo, "GET /v1/overview": 200,
		} {
			method, path, _ := strings.Cut(path, " ")
			status, body := ask(method, path)
			if status != want || c.job == http.StatusNotFound && strings.Contains(body, "secret") {
				t.Errorf("%s: %s %s is %d, want %d: %s", name, method, path, status, want, body)
			}
		}
		if _, body := ask(http.MethodGet, "/v1/jobs"); strings.Count(body, `"job_id":7`) != c.jobs {
			t.Errorf("%s lists %s", name, body)
		}
		if _, body := ask(http.MethodGet, "/v1/status"); strings.Contains(body, "/state") !=
			c.caller.Admin || !strings.Contains(body, `"version":"1.0"`) {
			t.Errorf("%s: status %s", name, body)
		}
	}
}
