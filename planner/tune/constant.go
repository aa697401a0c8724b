package tune

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Constant sets one clock pair for all tasks on a GPU model, as `nvidia-smi -lgc` on
// every node does: clocks has the setting by GPU model. Tasks that nobody can say of
// how they would run there, and shares of a GPU, stay at default clocks. No task is
// made faster because it is late.
func Constant(clocks map[string]dvfsmodel.Point) func(*planner.Problem) planner.Tuner {
	return func(p *planner.Problem) planner.Tuner { return constant{p, clocks} }
}

type constant struct {
	p      *planner.Problem
	clocks map[string]dvfsmodel.Point // by GPU model; those it lacks have default clocks
}

func (c constant) Want(task, option, class int, room float64) (planner.Quote, bool) {
	q := c.Fastest(task, option, class)
	return q, q.Point.Time <= room
}

func (c constant) Fit(_, _, _ int, want planner.Quote, room float64) (planner.Quote, bool) {
	return want, want.Point.Time <= room
}

// Fastest returns the only point there is.
func (c constant) Fastest(task, option, _ int) planner.Quote {
	t := &c.p.Tasks[task]
	o := &t.Options[option]
	if at, set := c.clocks[o.Model]; set && t.Share == 1 {
		if pt, ok := dvfsmodel.PointAt(o.Response, at); ok {
			return planner.Quote{Point: pt, Clocks: planner.ClocksConstant, Want: pt.Time}
		}
	}
	return defaultQuote(c.p, task, option)
}

// ConstantByTask is [Constant] where clocks change over time: by task those in force, by GPU model. A task
// that these would take beyond its limit or due time has default clocks.
func ConstantByTask(p *planner.Problem, clocks []map[string]dvfsmodel.Point) planner.Tuner {
	return constantByTask{p, clocks}
}

type constantByTask struct {
	p      *planner.Problem
	clocks []map[string]dvfsmodel.Point
}

func (c constantByTask) Want(task, option, class int, room float64) (planner.Quote, bool) {
	q := constant{c.p, c.clocks[task]}.Fastest(task, option, class)
	if q.Point.Time > min(room, c.p.Tasks[task].Limit) {
		q = defaultQuote(c.p, task, option)
	}
	return q, q.Point.Time <= room
}

func (c constantByTask) Fit(task, option, class int, want planner.Quote, room float64) (planner.Quote, bool) {
	if want.Point.Time > room {
		return c.Want(task, option, class, room)
	}
	return want, true
}

// Fastest returns the quicker of the only two points that there are.
func (c constantByTask) Fastest(task, option, class int) planner.Quote {
	q := constant{c.p, c.clocks[task]}.Fastest(task, option, class)
	if normal := defaultQuote(c.p, task, option); normal.Point.Time < q.Point.Time {
		return normal
	}
	return q
}
