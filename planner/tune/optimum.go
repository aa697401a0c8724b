package tune

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Optimum gives each task the setting that costs least within its room (EDL
// algorithm 1). A shorter room is answered by θ-readjustment (EDL algorithm 2,
// lines 15–19): a task may be shortened to θ times what it wants. With θ = 1
// nothing is ever shortened.
func Optimum(theta float64) func(*planner.Problem) planner.Tuner {
	return func(p *planner.Problem) planner.Tuner {
		o := &optimum{p: p, theta: theta, objectives: make([]dvfsmodel.Objective, len(p.Cluster.Classes))}
		for class := range o.objectives {
			o.objectives[class] = p.Price(class)
		}
		return o
	}
}

type optimum struct {
	p          *planner.Problem
	theta      float64
	objectives []dvfsmodel.Objective // by class
	shapes     [shapeSlots]sharedOptimum
	evict      int
}

// sharedOptimum is the free optimum of a shape that was asked for lately.
type sharedOptimum struct {
	shape   shape
	setting dvfsmodel.Setting
}

// shape is what the free optimum depends on: the same work repeated more often
// has the same one. The ratio t0/D is rounded, so that rounding in the
// repetition doesn't tell equal shapes apart; the optimum is flat, and such a
// difference changes its energy by less than rounding does.
type shape struct {
	r               *dvfsmodel.Range
	class           int
	p0, gamma, c    dvfsmodel.Watt
	delta, constant float64
}

// shapeSlots is the number of shapes remembered; each may be in one of a few
// slots, and a newer shape takes an older one's.
const (
	shapeSlots = 1 << 8
	shapeWays  = 4
)

// slot is the shape's hash.
func (s *shape) slot() int {
	h := uint64(s.class) //nolint:gosec // any bits will do
	for _, x := range [...]float64{float64(s.p0), float64(s.gamma), float64(s.c), s.delta, s.constant} {
		h = (h ^ math.Float64bits(x)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return int(h % shapeSlots)
}

func (o *optimum) Want(task, option, class int, room float64) (planner.Quote, bool) {
	t := &o.p.Tasks[task]
	if t.Share < 1 {
		q := defaultQuote(o.p, task, option)
		return q, q.Point.Time <= room
	}
	response := t.Options[option].Response
	free, ok := o.free(response, class)
	if !ok {
		return planner.Quote{}, false
	}
	q := planner.Quote{Point: free, Clocks: planner.ClocksFree, Want: free.Time}
	if free.Time <= room {
		return noModel(response, q), true
	}
	return o.within(response, class, q, room, planner.ClocksDeadline)
}

// noModel corrects the reason of a task whose clocks nobody chose.
func noModel(response dvfsmodel.Response, q planner.Quote) planner.Quote {
	if _, fixed := response.(*dvfsmodel.Fixed); fixed {
		q.Clocks = planner.ClocksNoModel
	}
	return q
}

// within shortens a quote to a room below its run time.
func (o *optimum) within(response dvfsmodel.Response, class int, q planner.Quote, room float64, why planner.ClockReason) (planner.Quote, bool) {
	var pt dvfsmodel.Point
	if c, ok := response.(*dvfsmodel.Continuous); ok {
		if !dvfsmodel.Fits(c.MinTime(), room) {
			return planner.Quote{}, false
		}
		pt = c.Range.Within(c.Params, room) // the free optimum is known to be too slow
	} else {
		var err error
		if pt, err = response.Optimum(o.objectives[class], room); err != nil {
			return planner.Quote{}, false
		}
	}
	return planner.Quote{Point: pt, Clocks: why, Want: q.Want}, true
}

// free is the optimum without a limit, shared among equal shapes.
func (o *optimum) free(response dvfsmodel.Response, class int) (dvfsmodel.Point, bool) {
	c, ok := response.(*dvfsmodel.Continuous)
	if !ok {
		pt, err := response.Optimum(o.objectives[class], math.Inf(1))
		return pt, err == nil
	}
	p := &c.Params
	key := shape{r: c.Range, class: class, p0: p.P0, gamma: p.Gamma, c: p.C, delta: p.Delta, constant: roundRatio(p.T0 / p.D)}
	setting, ok := o.sharedSetting(&key, c)
	return p.At(setting), ok
}

// sharedSetting is the free optimum of a shape, computed when it isn't among
// those remembered.
func (o *optimum) sharedSetting(key *shape, c *dvfsmodel.Continuous) (dvfsmodel.Setting, bool) {
	home := key.slot()
	for i := range shapeWays {
		if slot := &o.shapes[(home+i)%shapeSlots]; slot.shape == *key {
			return slot.setting, true
		}
	}
	pt, err := c.Optimum(o.objectives[key.class], math.Inf(1))
	if err != nil {
		return pt.Setting, false
	}
	o.evict++
	o.shapes[(home+o.evict%shapeWays)%shapeSlots] = sharedOptimum{shape: *key, setting: pt.Setting}
	return pt.Setting, true
}

// roundRatio drops the bits of a ratio that rounding may have touched.
func roundRatio(x float64) float64 {
	const drop = 6
	return math.Float64frombits(math.Float64bits(x) >> drop << drop)
}

func (o *optimum) Fit(task, option, class int, want planner.Quote, room float64) (planner.Quote, bool) {
	if want.Point.Time <= room {
		return want, true
	}
	if o.theta >= 1 || o.p.Tasks[task].Share < 1 || room < o.theta*want.Point.Time {
		return planner.Quote{}, false
	}
	return o.within(o.p.Tasks[task].Options[option].Response, class, want, room, planner.ClocksReadjust)
}

func (o *optimum) Fastest(task, option, _ int) planner.Quote {
	q := defaultQuote(o.p, task, option)
	if o.p.Tasks[task].Share < 1 {
		return q
	}
	pt, err := o.p.Tasks[task].Options[option].Response.Optimum(dvfsmodel.Objective{TimeWeight: 1}, math.Inf(1))
	if err != nil {
		return q
	}
	return planner.Quote{Point: pt, Clocks: planner.ClocksLate, Want: q.Want}
}
