package planner

import (
	"slices"
	"sync"
)

// workspace is the memory that a run needs for as long as it lasts. One run leaves it to
// the next: with a few thousand tasks, getting and clearing fresh memory would take a
// good part of the planning.
type workspace struct {
	wants          []wanted    // of the view's quotes
	nodes          []nodeState // of its calendar, as are
	free           []float64
	owner          []int32
	spare          []nodeState // for the nodes that single GPUs are mapped to
	order          []int       // tasks by arrival
	ready          []int       // by place in order: tasks handed to Pick, batch after batch
	mappedTo       []Part      // by single GPU: where it was mapped to
	byLatestFinish []int32     // single GPUs by falling finish time
}

var workspaces sync.Pool

// takeWorkspace has room for a problem, and no nodes. Nothing of it is cleared: nothing has
// been asked yet, and no task has arrived.
func takeWorkspace(p *Problem) workspace {
	w, ok := workspaces.Get().(*workspace)
	if !ok {
		w = &workspace{}
	}
	tasks, wants := len(p.Tasks), len(p.Tasks)*len(p.Cluster.Classes)
	w.wants = slices.Grow(w.wants[:0], wants)[:wants]
	w.order, w.ready = slices.Grow(w.order[:0], tasks)[:tasks], slices.Grow(w.ready[:0], tasks)[:tasks]
	w.nodes, w.free, w.owner = w.nodes[:0], w.free[:0], w.owner[:0]
	return *w
}

// intervalPool hands out room for single intervals; most nodes are on once.
type intervalPool []Interval

func (s *intervalPool) reserve(intervals int) {
	if len(*s) < intervals {
		*s = make([]Interval, intervals)
	}
}

// newList returns an empty slice with room for one interval.
func (s *intervalPool) newList() []Interval {
	const more = 256 // in one allocation, when what was reserved is used up
	if len(*s) == 0 {
		*s = make([]Interval, more)
	}
	iv := (*s)[:0:1]
	*s = (*s)[1:]
	return iv
}
