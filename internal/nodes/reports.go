// Package nodes keeps what the agents of nodes reported last: of GPUs, of runs, and of
// what went wrong.
//
// [Reports] owns the last report of each node, in memory, since after a restart all come
// again by themselves; and what the GPUs that jobs share did over the last minutes. It
// takes bounded memory whatever agents send, and says how far apart reports are to be,
// so that those of very many nodes cost no more.
package nodes

import (
	"maps"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// Bounds of what agents report and of what is kept of it.
const (
	maxReports  = 20_000           // nodes
	reportEvery = 15 * time.Second // at least
	// reportRate is how many reports a second all agents together are asked for at
	// most: those of more nodes are further apart.
	reportRate  = 100.0
	freshFor    = 3 // times as old as reports are apart, they still count
	freshSlack  = 5 * time.Second
	reportsKept = 24 * time.Hour
)

// Reports are what agents reported last. Its methods may be called by several
// goroutines.
type Reports struct {
	mu       sync.RWMutex
	byNode   map[string]*Report
	bySize   bySize               // the same reports
	lately   map[string][]*lately // by node: the GPUs that jobs share, of which there are
	followed int                  // so many
	swept    time.Time            // when old ones were looked for last
	bytes    int                  // that the reports take together
	most     int                  // that they may take
}

// New keeps no report yet.
func New() *Reports {
	return &Reports{
		most: maxBytes, byNode: make(map[string]*Report), lately: make(map[string][]*lately),
	}
}

// Of returns a node's last report; nil: there is none.
func (r *Reports) Of(node string) *Report {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byNode[node]
}

// All returns all reports, by node.
func (r *Reports) All() map[string]*Report {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.byNode)
}

// Put keeps a report that came at a time in place of the node's last one, if there is
// room, with what it adds to what GPUs did that jobs share: shares reports whether a job
// has a part of a GPU. It returns when the next one is wanted.
func (r *Reports) Put(
	at time.Time, m *epdapi.NodeReport, shares func(slurm.JobID) bool,
) (every time.Duration) {
	h, on := newReport(at, m), jobsOn(m, shares)
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.Received.Sub(r.swept) > reportEvery {
		r.swept = h.Received
		for node, old := range r.byNode {
			if h.Received.Sub(old.Received) > reportsKept {
				r.set(node, nil)
			}
		}
		r.forgetUnknown()
	}
	if _, known := r.byNode[h.Message.Node]; known || len(r.byNode) < maxReports {
		r.set(h.Message.Node, h)
		r.follow(h, on)
	}
	return reportInterval(len(r.byNode))
}

// reportInterval returns how far apart the reports of so many nodes are to be.
func reportInterval(nodes int) time.Duration {
	return max(reportEvery, time.Duration(float64(nodes)/reportRate*float64(time.Second)))
}

// Run returns a run that was reported; nil: it wasn't.
func (h *Report) Run(id string) *epdapi.NodeRun {
	for i := range h.Message.Runs {
		if r := &h.Message.Runs[i]; id != "" && r.ID == id {
			return r
		}
	}
	return nil
}

// FreshAge returns how old a report may be that still counts, where so many nodes report.
func FreshAge(nodes int) time.Duration { return freshFor*reportInterval(nodes) + freshSlack }
