package daemon

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/store"
)

// undoBound is how long taking back all levers may take at once; what is left
// is taken back step by step.
const undoBound = 10 * time.Second

// leverRoutes adds what may be asked about what is steered in Slurm.
func (d *ControllerServer) leverRoutes(mux *http.ServeMux, who func(*http.Request) int64) {
	mux.Handle("GET "+epdapi.PathLevers, d.Access.serveUsers(who, http.HandlerFunc(d.getLevers)))
	mux.Handle("POST "+epdapi.PathLeversUndo, d.Access.RequireAdmin(who, http.HandlerFunc(d.undoLevers)))
}

// getLevers and undoLevers are served where something is steered.
func (d *ControllerServer) getLevers(w http.ResponseWriter, r *http.Request) {
	levers, _ := d.Levers(r.Context(), query.CallerOf(r.Context()))
	reply(w, http.StatusOK, levers)
}

func (d *ControllerServer) undoLevers(w http.ResponseWriter, r *http.Request) {
	answer, _ := d.UndoLevers(r.Context(), query.ForEPD()) // whoever serves this has looked who asks
	reply(w, http.StatusOK, answer)
}

// Levers returns those in force, with the advice that a caller may see. The error is
// [store.ErrNotFound] where nothing is steered.
func (d *ControllerServer) Levers(ctx context.Context, who query.Caller) (*epdapi.Levers, error) {
	if d.Steerer == nil {
		return nil, fmt.Errorf("levers: %w", store.ErrNotFound)
	}
	s := d.Steerer.Status()
	if !who.Admin && !who.Operator {
		s.Advice = slices.DeleteFunc(s.Advice, func(a steer.Advice) bool {
			return a.Job == 0 || a.UID != who.UID
		})
		s.Left, s.Notes, s.Trouble, s.Order, s.Shared = nil, nil, "", nil, nil
	}
	levers := &epdapi.Levers{Status: s}
	if d.Control != nil {
		levers.Plan = d.Control.Queries.Plan(ctx, who)
	}
	return levers, nil
}

// UndoLevers takes back all of them, or as many as can be in a time, whoever still waits.
// The error is [store.ErrNotFound] where nothing is steered, and [query.ErrForbidden] for
// callers that are no administrators.
func (d *ControllerServer) UndoLevers(
	ctx context.Context, who query.Caller,
) (*epdapi.UndoLeversAnswer, error) {
	if d.Steerer == nil {
		return nil, fmt.Errorf("levers: %w", store.ErrNotFound)
	}
	if err := query.Administrators.Admits(who); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoBound)
	defer cancel()
	report, err := d.Steerer.UndoAll(ctx)
	answer := &epdapi.UndoLeversAnswer{Undone: report.Undone, Failed: report.Failed, Waiting: report.Waiting}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer, nil
}
