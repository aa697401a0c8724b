package daemon

import (
	"errors"
	"math"
	"net/http"
	"os/user"
	"strconv"
	"time"

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
			mux.ServeHTTP(w, r.WithContext(query.WithCaller(r.Context(), c)))
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

// User returns the uid of a name, and the name by which the system knows that user; ok is
// false if it knows none. That the system can't say now isn't remembered.
func (a *Access) User(name string) (uid uint32, canonical string, ok bool) {
	a.mu.Lock()
	known, cached := a.uids[name]
	a.mu.Unlock()
	if !cached || time.Since(known.at) >= nameLifetime {
		fresh, certain := lookUpUID(name)
		if certain {
			known = fresh
			a.mu.Lock()
			if a.uids == nil || len(a.uids) >= maxNames {
				a.uids = make(map[string]cachedUID)
			}
			a.uids[name] = fresh
			a.mu.Unlock()
		}
	}
	if !known.known {
		return 0, "", false
	}
	canonical = a.name(known.uid)
	return known.uid, canonical, canonical != ""
}

// lookUpUID asks the system for a user; certain is false if it can't say now.
func lookUpUID(name string) (found cachedUID, certain bool) {
	found.at = time.Now()
	u, err := user.Lookup(name)
	if err != nil {
		_, stranger := errors.AsType[user.UnknownUserError](err)
		return found, stranger
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	found.uid, found.known = uint32(uid), err == nil && uid != math.MaxUint32
	return found, true
}
