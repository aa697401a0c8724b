package main

import (
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/slurm"
)

// Of requests that are refused so many are logged: anybody on the network may send them. What one source, as
// [daemon.SourceOf] has it, is refused leaves room for what others are.
const (
	refusalsLogged = 100 // reasons of one source, in such a time
	refusalWindow  = time.Hour
	refusalsOfAll  = 300 // in such a time
	refusalsTime   = time.Minute
	maxSources     = 1000 // sources
)

// refusalLog logs requests that were refused, and counts those that are too many.
type refusalLog struct {
	log   *slog.Logger
	count func(kind string) // nil: nobody counts them

	mu         sync.Mutex
	since      time.Time
	logged     int
	suppressed int
	sources    map[string]*loggedReasons
}

// loggedReasons are the reasons that were logged of one source.
type loggedReasons struct {
	since time.Time
	told  map[string]struct{}
}

// isNew reports whether a refusal hasn't been logged lately, and there is room for it.
func (r *refusalLog) isNew(from, reason string, now time.Time) bool {
	m := r.sources[from]
	if m == nil || now.Sub(m.since) >= refusalWindow {
		if r.sources == nil {
			r.sources = make(map[string]*loggedReasons)
		}
		if m == nil && len(r.sources) >= maxSources {
			delete(r.sources, r.oldest())
		}
		m = &loggedReasons{now, make(map[string]struct{})}
		r.sources[from] = m
	}
	if _, told := m.told[reason]; told || len(m.told) >= refusalsLogged {
		return false
	}
	m.told[reason] = struct{}{}
	return true
}

// oldest returns the source that is known for longest.
func (r *refusalLog) oldest() (first string) {
	for from, m := range r.sources {
		if first == "" || m.since.Before(r.sources[first].since) {
			first = from
		}
	}
	return first
}

var seconds = regexp.MustCompile(`\d+(\.\d+)? s\b`)

// note logs one.
func (r *refusalLog) note(remote string, err error) {
	reason := slurm.Printable(err.Error(), 400)
	// A clock that is 595 s ahead is 594 s ahead in the next second.
	same := seconds.ReplaceAllString(reason, "some s")
	r.logOnce(daemon.SourceOf(remote), same, "a request is refused", "from", remote, "error", reason)
}

// logOnce logs a message for a reason of a source, or of a node.
func (r *refusalLog) logOnce(from, reason, message string, attrs ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.since) >= refusalsTime {
		if r.suppressed > 0 {
			r.log.Warn("further requests were refused", "count", r.suppressed, "since", r.since)
		}
		r.since, r.logged, r.suppressed = now, 0, 0
	}
	if r.logged >= refusalsOfAll || !r.isNew(from, reason, now) {
		r.suppressed++
		return
	}
	r.logged++
	r.log.Warn(message, attrs...)
}

// logRefusal counts one and logs it.
func (r *refusalLog) logRefusal(kind, remote string, err error) {
	if r.count != nil {
		r.count(kind)
	}
	r.note(remote, err)
}

// logUnprovenRequest is one that nobody proved.
func (r *refusalLog) logUnprovenRequest(remote string, err error) {
	r.logRefusal("refused-request", remote, err)
}

// logCallerRefusal is somebody who is known, and may not ask that, or not so much, or says what can't be.
func (r *refusalLog) logCallerRefusal(from string, status int, err error) {
	kind := "refused-caller"
	if status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge {
		kind = "refused-message"
	}
	r.logRefusal(kind, from, err)
}

// logImplausible is what a node's agent says and can't be. Most kinds are counted where they are found.
func (r *refusalLog) logImplausible(s *control.ImplausibleReport) {
	if s.Kind == control.StrangeAgain && r.count != nil {
		r.count(s.Kind)
	}
	r.logOnce("node "+s.Node, s.What, s.What, s.Attrs()...)
}

var (
	errTooManyConnections = errors.New("too many connections are open: one more isn't let in")
	errMadeRoom           = errors.New("too many connections are open: one that proved nothing made room")
)

// logDroppedConnection is one of too many.
func (r *refusalLog) logDroppedConnection(remote string, madeRoom bool) {
	if madeRoom {
		r.logRefusal("evicted-connection", remote, errMadeRoom)
		return
	}
	r.logRefusal("refused-connection", remote, errTooManyConnections)
}
