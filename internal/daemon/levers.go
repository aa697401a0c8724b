package daemon

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/steer"
)

// undoBound is how long taking back all levers may take at once; what is left
// is taken back step by step.
const undoBound = 10 * time.Second

// leverRoutes adds what may be asked about what is steered in Slurm.
func (d *ControllerServer) leverRoutes(mux *http.ServeMux, who func(*http.Request) int64) {
	mux.Handle("GET "+epdapi.PathLevers, d.Access.serveUsers(who, http.HandlerFunc(d.getLevers)))
	mux.Handle("POST "+epdapi.PathLeversUndo, d.Access.RequireFullAccess(who, http.HandlerFunc(d.undoLevers)))
}

func (d *ControllerServer) getLevers(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, d.leversFor(control.CallerOf(r.Context())))
}

func (d *ControllerServer) undoLevers(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), undoBound)
	defer cancel()
	report, err := d.Steerer.UndoAll(ctx)
	answer := epdapi.UndoLeversAnswer{Undone: report.Undone, Failed: report.Failed, Waiting: report.Waiting}
	if err != nil {
		answer.Error = err.Error()
	}
	reply(w, http.StatusOK, answer)
}

// leversFor are those in force, with the advice that a caller may see.
func (d *ControllerServer) leversFor(to control.Caller) *epdapi.Levers {
	s := d.Steerer.Status()
	if !to.Control && !to.All {
		s.Advice = slices.DeleteFunc(s.Advice, func(a steer.Advice) bool {
			return a.Job == 0 || a.UID != to.UID
		})
		s.Left, s.Notes, s.Trouble, s.Order, s.Shared = nil, nil, "", nil, nil
	}
	return &epdapi.Levers{Status: s}
}
