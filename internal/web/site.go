package web

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/epplan/epplan/config"
)

// New makes a site.
func New(o Options) *Site {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
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

// allPages are all of them, in the order of the navigation.
func allPages() []pageRoute {
	return []pageRoute{
		{"/{$}", "Overview", Anonymous, overviewPage},
		{"/queue", "Queue", User, queuePage},
		{"/jobs", "Jobs", User, jobsPage},
		{"/jobs/{id}", "", User, jobPage},
		{"/nodes", "Nodes", User, nodesPage},
		{"/nodes/{name}", "", User, nodePage},
		{"/workloads", "Workloads", Reader, workloadsPage},
		{"/workloads/{name}", "", Reader, workloadPage},
		{"/workloads/{name}/use", "", Admin, useModelPage},
		{whatIfPath, "What if", User, whatIfPage},
		{"/admin", "Administration", Admin, adminPage},
		{"/admin/levers", "", Admin, leversPage},
		{"/admin/reload", "", Admin, reloadPage},
	}
}

// allActions are all of them.
func allActions() []actionRoute {
	return []actionRoute{
		{"/workloads/{name}/use", Admin, useModel},
		{"/admin/levers", Admin, undoLevers},
		{"/admin/reload", Admin, reload},
	}
}
