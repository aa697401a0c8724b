package main

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Of requests that are refused so many are logged in such a time: anybody on the
// network may send them.
const (
	refusalsLogged = 10
	refusalsTime   = time.Minute
)

// refusalLog logs requests that were refused, and counts those that are too many.
type refusalLog struct {
	log   *slog.Logger
	count func(kind string) // nil: nobody counts them

	mu         sync.Mutex
	since      time.Time
	logged     int
	suppressed int
	told       map[string]time.Time // what was logged, by machine and reason
}

// One reason of one machine is logged once in such a time.
const (
	refusalTold = time.Hour
	maxTold     = 1000
)

// isNew reports whether a refusal hasn't been logged lately.
func (r *refusalLog) isNew(remote, reason string, now time.Time) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	key := host + " " + reason
	if at, told := r.told[key]; told && now.Sub(at) < refusalTold {
		return false
	}
	if r.told == nil || len(r.told) >= maxTold {
		r.told = make(map[string]time.Time)
	}
	r.told[key] = now
	return true
}

// note logs one.
func (r *refusalLog) note(remote string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) >= refusalsTime {
		if r.suppressed > 0 {
			r.log.Warn("further requests were refused", "count", r.suppressed, "since", r.since)
		}
		r.since, r.logged, r.suppressed = now, 0, 0
	}
	if r.logged >= refusalsLogged {
		r.suppressed++
		return
	}
	reason := slurm.Printable(err.Error(), 400)
	if !r.isNew(remote, reason, time.Now()) {
		r.suppressed++
		return
	}
	r.logged++
	r.log.Warn("a request is refused", "from", remote, "error", reason)
}

// refused counts one and logs it.
func (r *refusalLog) refused(kind, remote string, err error) {
	if r.count != nil {
		r.count(kind)
	}
	r.note(remote, err)
}

// request is one that nobody proved.
func (r *refusalLog) request(remote string, err error) { r.refused("refused-request", remote, err) }

// caller is somebody who is known and may not ask that.
func (r *refusalLog) caller(remote string, err error) { r.refused("refused-caller", remote, err) }

var (
	errTooManyConnections = errors.New("too many connections are open: one more isn't let in")
	errMadeRoom           = errors.New("too many connections are open: one that proved nothing made room")
)

// connection is one of too many.
func (r *refusalLog) connection(remote string, madeRoom bool) {
	if madeRoom {
		r.refused("evicted-connection", remote, errMadeRoom)
		return
	}
	r.refused("refused-connection", remote, errTooManyConnections)
}
