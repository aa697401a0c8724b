package powerbudget

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// nodeRun is when a task is on a node, and on which GPUs.
type nodeRun struct {
	planner.Interval

	task   int
	gpus   planner.GPUSet
	latest float64 // end of this run and of those before it
}

// nodeRuns are the runs on a node by their starts.
type nodeRuns []nodeRun

// add adds a run.
func (r *nodeRuns) add(run nodeRun) {
	at, _ := slices.BinarySearchFunc(*r, run.From, func(other nodeRun, from float64) int {
		return cmp.Compare(other.From, from)
	})
	*r = slices.Insert(*r, at, run)
	latest := math.Inf(-1)
	if at > 0 {
		latest = (*r)[at-1].latest
	}
	for i := at; i < len(*r); i++ {
		latest = max(latest, (*r)[i].To)
		(*r)[i].latest = latest
	}
}

// during yields the runs that are on the node at some time of an interval.
func (r nodeRuns) during(interval planner.Interval) iter.Seq[*nodeRun] {
	return func(yield func(*nodeRun) bool) {
		first, _ := slices.BinarySearchFunc(r, interval.From, func(run nodeRun, from float64) int {
			if run.latest <= from {
				return -1
			}
			return 1
		})
		for i := first; i < len(r) && r[i].From < interval.To; i++ {
			if r[i].To > interval.From && !yield(&r[i]) {
				return
			}
		}
	}
}
