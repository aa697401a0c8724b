package web

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/web/login"
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
	s.mux.HandleFunc("GET "+issuerPath, atIssuer{s}.begin)
	s.mux.HandleFunc("GET "+config.OIDCCallback, atIssuer{s}.finish)
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
		s.showError(w, r, &pageError{status: http.StatusNotFound, text: "There is no such page."})
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
		{"/month", "Month", login.Reader, monthPage},
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
