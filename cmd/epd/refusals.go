package main

import (
	"log/slog"
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
	log *slog.Logger

	mu         sync.Mutex
	since      time.Time
	logged     int
	suppressed int
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
	r.logged++
	r.log.Warn("a request is refused", "from", remote, "error", slurm.Printable(err.Error(), 400))
}
