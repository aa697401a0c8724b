package daemon

import (
	"context"
	"net/http"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/steer"
)

// ControllerServer answers what agents, job_submit and people ask of a controller.
type ControllerServer struct {
	Version, Role, Node string

	Control *control.Controller
	Steerer *steer.Steerer // nil: nothing is steered
	Access  *Access
	Started time.Time
	Health  *epdapi.Health // what the status tells of this epd; nil: nothing
	// Problems are what went wrong while epd began. They are for administrators.
	Problems []epdapi.Problem
}

// Routes adds what may be asked, by whoever finds out who asks.
func (d *ControllerServer) Routes(mux *http.ServeMux, who func(*http.Request) int64) {
	mux.Handle("/v1/", d.Access.serveUsers(who, d.Control.Handler()))
	if d.Steerer != nil {
		d.leverRoutes(mux, who)
	}
}

// Status adds how the controller fares, where no agent does.
func (d *ControllerServer) Status(mux *http.ServeMux, who func(*http.Request) int64) {
	mux.Handle("GET "+epdapi.PathStatus, d.Access.serveUsers(who, http.HandlerFunc(d.status)))
}

func (d *ControllerServer) status(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, d.StatusFor(r.Context(), query.CallerOf(r.Context())))
}

// StatusFor returns how the controller fares, as far as a caller may know.
func (d *ControllerServer) StatusFor(ctx context.Context, who query.Caller) *epdapi.Status {
	s := d.Control.Queries.Status(ctx, who)
	status := &epdapi.Status{
		Version: d.Version, Role: d.Role, Node: d.Node, Started: d.Started,
		GPUs: []epdapi.GPU{}, Runs: []epdapi.Run{}, Troubles: []epdapi.Problem{}, Totals: totalsOf(&s),
		Controller: &s,
	}
	if who.Admin {
		status.Health, status.Troubles = d.Health, append(status.Troubles, d.Problems...)
	}
	return status
}
