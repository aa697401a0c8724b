package daemon

import (
	"net/http"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
)

// InternalHandler returns the JSON interface for those who ask through the pages' port: what a
// caller gets is what it would get at a socket.
func (d *ControllerServer) InternalHandler() func(query.Caller) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", d.Control.Handler())
	mux.HandleFunc("GET "+epdapi.PathStatus, d.status)
	if d.Steerer != nil {
		mux.HandleFunc("GET "+epdapi.PathLevers, d.getLevers)
		mux.HandleFunc("POST "+epdapi.PathLeversUndo, func(w http.ResponseWriter, r *http.Request) {
			if !query.CallerOf(r.Context()).Admin {
				reply(w, http.StatusForbidden, epdapi.ErrorAnswer{Error: "only root and Slurm's user may ask"})
				return
			}
			d.undoLevers(w, r)
		})
	}
	return func(c query.Caller) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mux.ServeHTTP(w, r.WithContext(query.As(r.Context(), c)))
		})
	}
}

// Name returns the name of a user, as it was a while ago at most; "" if the system knows
// none.
func (a *Access) Name(uid uint32) string { return a.name(uid) }

// ServeUsers has users' requests answered under their names, as those of the JSON
// interface are: the handler finds who asks by [query.CallerOf].
func (a *Access) ServeUsers(who func(*http.Request) int64, h http.Handler) http.Handler {
	return a.serveUsers(who, h)
}
