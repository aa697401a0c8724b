package hours

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/steps"
)

// Room is the GPUs of one kind that runs are expected to have over time, seconds.
type Room struct {
	prices Prices
	gpus   float64
	used   steps.Function[float64]
}

// NewRoom returns a room in which nothing runs.
func NewRoom(prices Prices, gpus float64) *Room {
	return &Room{prices: prices, gpus: gpus, used: steps.Constant(0.0)}
}

// mostUsed is the part of a room's GPUs that runs which wait may be expected to use: who comes later has the
// rest.
const mostUsed = 0.9

// rounding is the part of a cost by which two that are equal may differ: the earlier one is taken.
const rounding = 1e-9

// Run is a run that may begin later.
type Run struct {
	GPUs      float64
	Time      float64 // that it is expected to take, seconds
	Earliest  float64 // time at which it could begin, were there GPUs
	Latest    float64 // time at which it may begin at the latest
	LeastGain float64 // part of what it costs that it must save to begin later
}

// AddUse notes that GPUs are used for a time.
func (r *Room) AddUse(during planner.Interval, gpus float64) { r.used.Add(during, gpus) }

// BestBegin returns when a run begins: as soon as there are GPUs for it, or later, when it costs less.
func (r *Room) BestBegin(run *Run) (begin float64, later bool) {
	begin = r.First(run)
	if run.Latest <= begin {
		return begin, false
	}
	first := math.Abs(r.Cost(run, begin))
	least := r.Cost(run, begin) - run.LeastGain*first
	for _, at := range r.candidates(begin, run) {
		if cost := r.Cost(run, at); cost < least-rounding*(first+math.Abs(least)) && r.fits(run, at) {
			least, begin, later = cost, at, true
		}
	}
	return begin, later
}

// Cost returns what a watt costs over a run that begins at a time.
func (r *Room) Cost(run *Run, begin float64) float64 {
	return r.prices.Integral(planner.Interval{From: begin, To: begin + run.Time})
}

// candidates are the times at which a run may cost least: where it begins or ends with a price, or where GPUs
// come free or are used; ascending.
func (r *Room) candidates(first float64, run *Run) []float64 {
	var all []float64
	add := func(at float64) {
		if at > first && at <= run.Latest {
			all = append(all, at)
		}
	}
	for part := range r.prices.During(planner.Interval{From: first, To: run.Latest + run.Time}) {
		add(part.From)
		add(part.From - run.Time)
	}
	for part := range r.used.During(planner.Interval{From: first, To: run.Latest + run.Time}) {
		add(part.From)
		add(part.From - run.Time)
	}
	add(run.Latest)
	slices.Sort(all)
	return slices.Compact(all)
}

// fits reports whether there are GPUs for a run from a time on, and some are left for who comes later.
func (r *Room) fits(run *Run, at float64) bool {
	_, most := r.used.MeanAndPeak(planner.Interval{From: at, To: at + run.Time})
	return most+run.GPUs <= mostUsed*r.gpus*(1+1e-9)
}

// First returns the first time from which on there are GPUs for a run; its earliest where there never are.
func (r *Room) First(run *Run) float64 {
	begin := r.used.WhenAtMost(run.Earliest, run.Time, r.gpus*(1+1e-9)-run.GPUs)
	if math.IsInf(begin, 1) {
		return run.Earliest
	}
	return begin
}
