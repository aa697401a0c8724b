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

// refusals logs requests that were refused, and counts those that are too many.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	since  time.Time
	logged int
	unsaid int
}

// note logs one.
func (r *refusals) note(remote string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) >= refusalsTime {
		if r.unsaid > 0 {
			r.log.Warn("further requests were refused", "count", r.unsaid, "since", r.since)
		}
		r.since, r.logged, r.unsaid = now, 0, 0
	}
	if r.logged >= refusalsLogged {
		r.unsaid++
		return
	}
	r.logged++
	r.log.Warn("a request is refused", "from", remote, "error", slurm.Printable(err.Error(), 400))
}
