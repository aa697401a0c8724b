package planner

import (
	"slices"
	"sync"
)

// workspace is the memory that a [View] needs for as long as a run lasts. One
// run leaves it to the next: with a few thousand tasks, getting and clearing
// fresh memory would take a good part of the planning.
type workspace struct {
	wants          []wanted    // by task and class, once asked for
	asked          []wantState // as wants
	nodes          []nodeState
	free           []float64   // by GPU: when its last task ends
	owner          []int32     // by GPU: its node
	spare          []nodeState // for the nodes that single GPUs are mapped to
	order          []int       // tasks by arrival
	taken          []bool      // by task: whether it is placed
	ready          []int       // by place in order: tasks handed to Pick, batch after batch
	mappedTo       []gpuPlace  // by single GPU: where it was mapped to
	byLatestFinish []int32     // single GPUs by falling finish time
}

var workspaces sync.Pool

// takeWorkspace has room for so many tasks and wants and no nodes. Most
// of it isn't cleared: nothing has been asked yet, and no task has arrived.
func takeWorkspace(tasks, wants int) workspace {
	r, ok := workspaces.Get().(*workspace)
	if !ok {
		r = &workspace{}
	}
	return workspace{
		wants:          slices.Grow(r.wants[:0], wants)[:wants],
		asked:          make([]wantState, wants),
		nodes:          r.nodes[:0],
		free:           r.free[:0],
		owner:          r.owner[:0],
		spare:          r.spare[:0],
		taken:          make([]bool, tasks),
		order:          slices.Grow(r.order[:0], tasks)[:tasks],
		ready:          slices.Grow(r.ready[:0], tasks)[:tasks],
		mappedTo:       r.mappedTo[:0],
		byLatestFinish: r.byLatestFinish[:0],
	}
}

// release leaves the memory to other runs; the view is of no use any more.
func (w *workspace) release() {
	left := *w
	*w = workspace{}
	workspaces.Put(&left)
}

// reserve makes sure of the room for so many nodes of one GPU.
func (w *workspace) reserve(nodes int) {
	w.nodes = slices.Grow(w.nodes, nodes)
	w.free = slices.Grow(w.free, nodes)
	w.owner = slices.Grow(w.owner, nodes)
}

// renew drops all nodes and returns them; they stay as they are until the run
// ends.
func (w *workspace) renew() (old []nodeState) {
	old = w.nodes
	w.nodes, w.spare = slices.Grow(w.spare[:0], len(old)), old
	w.free, w.owner = w.free[:0], w.owner[:0]
	return old
}

// intervalPool hands out room for single intervals; most nodes are on once.
type intervalPool []Interval

// reserve makes sure of the room for as many.
func (s *intervalPool) reserve(intervals int) {
	if len(*s) < intervals {
		*s = make([]Interval, intervals)
	}
}

// newList is an empty slice with room for one interval.
func (s *intervalPool) newList() []Interval {
	const more = 256 // in one allocation, when what was reserved is used up
	if len(*s) == 0 {
		*s = make([]Interval, more)
	}
	iv := (*s)[:0:1]
	*s = (*s)[1:]
	return iv
}
