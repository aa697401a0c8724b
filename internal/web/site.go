package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/slurm"
)

// New makes a site.
func New(o Options) *Site {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Proved == nil {
		o.Proved = func(*http.Request) {}
	}
	if o.Terms == nil {
		o.Terms = defaultTerms
	}
	if o.Settings == nil {
		o.Settings = func() config.Web { return config.Default().Web }
	}
	s := &Site{
		options: o, forms: newFormKeys(), pageSlots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)/2)),
		planWaitlist: newPlanWaitlist(), mux: http.NewServeMux(), pages: allPages(),
	}
	s.register()
	return s
}

// register has the pages and actions answer at their paths.
func (s *Site) register() {
	s.mux.HandleFunc("GET /static/{file}", s.static)
	s.mux.HandleFunc("GET /healthz", s.health)
	s.mux.HandleFunc("GET /login", s.loginPage)
	s.mux.HandleFunc("POST /login", s.login)
	s.mux.HandleFunc("POST /logout", s.logout)
	for _, p := range s.pages {
		s.mux.HandleFunc("GET "+p.path, func(w http.ResponseWriter, r *http.Request) {
			s.servePage(w, r, &p)
		})
	}
	for _, a := range allActions() {
		s.mux.HandleFunc("POST "+a.path, func(w http.ResponseWriter, r *http.Request) {
			s.serveAction(w, r, &a)
		})
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &pageError{status: http.StatusNotFound, text: "There is no such page."})
	})
}

// allPages returns all of them, in the order of the navigation.
func allPages() []pageRoute {
	return []pageRoute{
		{"/{$}", "Overview", login.Anonymous, overviewPage},
		{"/queue", "Queue", login.User, queuePage},
		{"/jobs", "Jobs", login.User, jobsPage},
		{"/jobs/{id}", "", login.User, jobPage},
		{"/nodes", "Nodes", login.User, nodesPage},
		{"/nodes/{name}", "", login.User, nodePage},
		{"/workloads", "Workloads", login.Reader, workloadsPage},
		{"/workloads/{name}", "", login.Reader, workloadPage},
		{"/workloads/{name}/use", "", login.Admin, useModelPage},
		{whatIfPath, "What if", login.User, whatIfPage},
		{"/admin", "Administration", login.Admin, adminPage},
		{"/admin/levers", "", login.Admin, leversPage},
		{"/admin/reload", "", login.Admin, reloadPage},
	}
}

func allActions() []actionRoute {
	return []actionRoute{
		{"/workloads/{name}/use", login.Admin, useModel},
		{"/admin/levers", login.Admin, undoLevers},
		{"/admin/reload", login.Admin, reload},
	}
}

// Source answers for one viewer what pages show, and says nothing that the viewer may
// not see: [epdapi.Client] is one. What isn't there, or not for this viewer, is an
// [epdapi.RefusedError].
type Source interface {
	Overview(ctx context.Context) (*epdapi.Overview, error)
	Queue(ctx context.Context) (*epdapi.Queue, error)
	Jobs(ctx context.Context, query url.Values) (*epdapi.JobPage, error)
	// Job takes a job as people name it: by its number, or as a task of an array, 4_3.
	Job(ctx context.Context, job string) (*epdapi.JobView, error)
	Series(ctx context.Context, id slurm.JobID) (*epdapi.JobSeries, error)
	Nodes(ctx context.Context) (*epdapi.NodeList, error)
	Levers(ctx context.Context) (*epdapi.Levers, error)
	Models(ctx context.Context) (*epdapi.ModelList, error)
	ModelVersions(ctx context.Context, workload, gpuModel string) (*epdapi.ModelVersions, error)
	Fit(ctx context.Context, workload, gpuModel string) (*epdapi.ModelFit, error)
}

// Administration is what the pages of administrators ask, and do for one viewer, if the
// viewer may; its errors are a [Source]'s.
type Administration interface {
	Status(ctx context.Context) (*epdapi.Status, error)
	UseModel(ctx context.Context, m *epdapi.ModelChoice) (*epdapi.ModelStatus, error)
	UndoLevers(ctx context.Context) (*epdapi.UndoLeversAnswer, error)
	Reload(ctx context.Context) (*epdapi.ReloadAnswer, error)
}
