package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/query"
)

// Access tells what a uid may do. Root, epd's own user and those that were
// added are administrators and may do anything; operators may read everything; other users may ask
// about their own jobs.
type Access struct {
	// Operators are names of users; nil: there are none.
	Operators func() []string
	// Machines tell for whom administrators speak who ask over a network; nil: for everybody.
	Machines *Machines
	// Refused hears of what somebody may not ask, and of messages of machines elsewhere that make no sense,
	// with the status that was answered. It must not block, and may be nil.
	Refused func(from string, status int, err error)

	limiter userLimiter // of users who ask

	mu     sync.Mutex
	admins []uint32
	names  map[uint32]cachedName
	uids   map[string]cachedUID
}

// cachedUID is the uid of a name, as it was at a time.
type cachedUID struct {
	uid   uint32
	known bool
	at    time.Time
}

// cachedName is a user's name, as it was at a time.
type cachedName struct {
	name string
	at   time.Time
}

// What is kept of users' names.
const (
	maxNames     = 10_000
	nameLifetime = 10 * time.Minute
)

// AddAdmins lets users do anything from now on.
func (a *Access) AddAdmins(uids ...uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.admins = append(a.admins, uids...)
}

// IsAdmin reports whether a uid may do anything.
func (a *Access) IsAdmin(uid int64) bool {
	if uid == 0 || uid == int64(os.Geteuid()) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.admins, func(u uint32) bool { return int64(u) == uid })
}

// userCaller returns a user who is no administrator.
func (a *Access) userCaller(uid uint32) query.Caller {
	c := query.Caller{UID: uid, Name: a.name(uid)}
	if a.Operators != nil && c.Name != "" {
		c.Operator = slices.Contains(a.Operators(), c.Name)
	}
	return c
}

// name returns a user's name; "" if the system knows none. That the system can't
// say now isn't remembered.
func (a *Access) name(uid uint32) string {
	a.mu.Lock()
	known, ok := a.names[uid]
	a.mu.Unlock()
	if ok && time.Since(known.at) < nameLifetime {
		return known.name
	}
	fresh := cachedName{at: time.Now()}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err == nil {
		fresh.name = u.Username
	} else if _, stranger := errors.AsType[user.UnknownUserIdError](err); !stranger {
		return known.name
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil || len(a.names) >= maxNames {
		a.names = make(map[uint32]cachedName)
	}
	a.names[uid] = fresh
	return fresh.name
}

// adminCaller returns an administrator, as far as that is one where a request comes from.
func (a *Access) adminCaller(uid uint32, r *http.Request) query.Caller {
	c := query.Caller{UID: uid, Admin: true}
	peer, remote := munge.PeerOf(r.Context())
	from := addressOf(r.RemoteAddr)
	if !remote || a.Machines == nil || a.Machines.MayAdminister(r.Context(), from) {
		return c
	}
	c.Machine = &machineAsking{a.Machines, r, from, peer.Origin}
	return c
}

// RequireAdmin lets those pass who may do anything.
func (a *Access) RequireAdmin(who func(*http.Request) int64, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid := who(r)
		if uid < 0 || uid > math.MaxUint32 || !a.IsAdmin(uid) {
			why := epdapi.ErrorAnswer{Error: "only root and Slurm's user may ask"}
			reply(a.refusalWriterFor(w, r, uid), http.StatusForbidden, why)
			return
		}
		if err := query.Administrators.Admits(a.adminCaller(uint32(uid), r)); err != nil {
			reply(a.refusalWriterFor(w, r, uid), http.StatusForbidden, epdapi.ErrorAnswer{Error: err.Error()})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refusalWriterFor returns a response that tells [Access.Refused] if it refuses a request of a user, or of
// a machine.
func (a *Access) refusalWriterFor(w http.ResponseWriter, r *http.Request, uid int64) http.ResponseWriter {
	if a.Refused == nil {
		return w
	}
	from := r.RemoteAddr
	if !addressOf(from).IsValid() {
		from = "nobody"
		if uid >= 0 && uid <= math.MaxUint32 {
			from = a.limiter.uids.owner(uint32(uid))
		}
	}
	return &refusalWriter{ResponseWriter: w, told: func(status int, why string) {
		a.Refused(from, status, fmt.Errorf("%s %s by uid %d: %s", r.Method, r.URL.Path, uid, why))
	}}
}

// serveUsers lets users pass under their names, and agents with keys of their own under those of their
// nodes, to a handler that knows what they may ask. What administrators ask comes first, see [userLimiter].
func (a *Access) serveUsers(who func(*http.Request) int64, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, _ := munge.PeerOf(r.Context()); peer.Node != "" {
			w = a.refusalWriterFor(w, r, 0)
			h.ServeHTTP(w, r.WithContext(query.WithCaller(r.Context(), query.Caller{Node: peer.Node})))
			return
		}
		uid := who(r)
		if uid < 0 || uid > math.MaxUint32 {
			reply(a.refusalWriterFor(w, r, uid), http.StatusForbidden, epdapi.ErrorAnswer{Error: "who asks isn't known"})
			return
		}
		user := uint32(uid)
		if a.IsAdmin(uid) {
			admin := a.adminCaller(user, r)
			if admin.Machine != nil {
				w = a.refusalWriterFor(w, r, uid)
			}
			h.ServeHTTP(w, r.WithContext(query.WithCaller(r.Context(), admin)))
			return
		}
		a.limiter.serve(a.refusalWriterFor(w, r, uid), r, user, h, func(r *http.Request) *http.Request {
			return r.WithContext(query.WithCaller(r.Context(), a.userCaller(user)))
		})
	})
}

// refusalWriter tells of an answer that somebody isn't allowed something, or said what can't be.
type refusalWriter struct {
	http.ResponseWriter
	told   func(status int, why string)
	status int // that is to be told, once it is known why
}

// WriteHeader writes the status.
func (w *refusalWriter) WriteHeader(status int) {
	switch status {
	case http.StatusForbidden, http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusTooManyRequests:
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes the body, which says why.
func (w *refusalWriter) Write(body []byte) (int, error) {
	if w.status != 0 {
		var fault epdapi.ErrorAnswer
		if json.Unmarshal(body, &fault) != nil || fault.Error == "" {
			fault.Error = http.StatusText(w.status)
		}
		w.told(w.status, fault.Error)
		w.status = 0
	}
	return w.ResponseWriter.Write(body)
}

// Unwrap is for [http.ResponseController].
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
