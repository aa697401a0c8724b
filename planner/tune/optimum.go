package tune

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Optimum gives each task the setting that costs least within its room (EDL
// algorithm 1). A shorter room is answered by θ-readjustment (EDL algorithm 2,
// lines 15–19): a task may be shortened to θ times what it wants, 0 < θ ≤ 1. With
// θ = 1 nothing is ever shortened.
func Optimum(theta float64) func(*planner.Problem) planner.Tuner {
	return func(p *planner.Problem) planner.Tuner {
		objectives := make([]dvfsmodel.Objective, len(p.Cluster.Classes))
		for class := range objectives {
			objectives[class] = p.ClassObjective(class)
		}
		return &optimum{p: p, theta: theta, optima: dvfsmodel.NewOptima(objectives)}
	}
}

type optimum struct {
	p      *planner.Problem
	theta  float64
	optima *dvfsmodel.Optima // by class
}

func (o *optimum) Want(task, option, class int, room float64) (q planner.Quote, ok bool) {
	t := &o.p.Tasks[task]
	if t.Share < 1 {
		q = defaultQuote(o.p, task, option)
		return q, q.Point.Time <= room
	}
	response := t.Options[option].Response
	free, ok := o.optima.Unlimited(response, class)
	switch {
	case !ok:
		return q, false
	case free.Time > room:
		return o.shortenTo(response, class, free.Time, room, planner.ClocksDeadline)
	}
	q.Point, q.Clocks, q.Want = free, planner.ClocksFree, free.Time
	if !dvfsmodel.HasModel(response) {
		q.Clocks = planner.ClocksNoModel // nobody chose them
	}
	return q, true
}

// shortenTo shortens a task to a room below the run time that it wants.
func (o *optimum) shortenTo(
	response dvfsmodel.Response, class int, want, room float64, why planner.ClockReason,
) (planner.Quote, bool) {
	pt, ok := o.optima.Within(response, class, room)
	if !ok {
		return planner.Quote{}, false
	}
	return planner.Quote{Point: pt, Clocks: why, Want: want}, true
}

func (o *optimum) Fit(task, option, class int, want planner.Quote, room float64) (planner.Quote, bool) {
	if want.Point.Time <= room {
		return want, true
	}
	if o.theta >= 1 || o.p.Tasks[task].Share < 1 || room < o.theta*want.Point.Time {
		return planner.Quote{}, false
	}
	return o.shortenTo(o.p.Tasks[task].Options[option].Response, class, want.Want, room,
		planner.ClocksReadjust)
}

func (o *optimum) Fastest(task, option, _ int) planner.Quote {
	q := defaultQuote(o.p, task, option)
	if o.p.Tasks[task].Share < 1 {
		return q
	}
	pt, err := o.p.Tasks[task].Options[option].Response.Optimum(dvfsmodel.Objective{TimeWeight: 1},
		math.Inf(1))
	if err != nil {
		return q
	}
	return planner.Quote{Point: pt, Clocks: planner.ClocksLate, Want: q.Want}
}
