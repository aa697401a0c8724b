package place

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// beliefs are how long tasks took, by what was predicted, of the latest ones that ended.
type beliefs struct {
	predicted map[int]float64 // run times of tasks that run, seconds
	ratios    []float64       // of true to predicted run times, the oldest first
	// Usual is the ratio between the fourth and the sixth tenth that is nearest to 1, upper what nearly all
	// are below; 0: nobody knows.
	usual, upper float64
}

// Tasks that count, and how many must have ended before any do.
const (
	mostRatios  = 64
	leastRatios = 8
)

// started notes what is predicted of a task that starts.
func (b *beliefs) started(task int, a *planner.Assignment) {
	if b.predicted == nil {
		b.predicted = make(map[int]float64)
	}
	b.predicted[task] = a.End - a.Start
}

// ended notes a task that ended.
func (b *beliefs) ended(task int, a *planner.Assignment) {
	const rounding = 1e-6
	before := b.predicted[task]
	if before <= 0 {
		return
	}
	delete(b.predicted, task)
	ratio := (a.End - a.Start) / before
	if math.Abs(ratio-1) < rounding {
		ratio = 1
	}
	if b.ratios = append(b.ratios, ratio); len(b.ratios) > mostRatios {
		b.ratios = b.ratios[1:]
	}
	if len(b.ratios) < leastRatios {
		return
	}
	sorted := slices.Sorted(slices.Values(b.ratios))
	n := len(sorted)
	b.usual, b.upper = min(max(1, sorted[n*4/10]), sorted[n*6/10]), sorted[n*19/20]
}

// within returns the run time that a task may be predicted so that it keeps its limit, too, if it takes as
// much longer as nearly all others; at default clocks it may take its limit.
func (b *beliefs) within(t *planner.Task, standard float64) float64 {
	if b.upper <= 1 {
		return t.Limit
	}
	own := t.Limit * (1 + t.LimitMargin)
	return min(t.Limit, max(own/b.upper, standard))
}
