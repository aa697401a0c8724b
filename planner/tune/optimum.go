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
	evict      uint // the way of the next shape, when all are taken
}

// sharedOptimum is the free optimum of a shape that was asked for lately.
type sharedOptimum struct {
	shape   shape
	setting dvfsmodel.Setting
	power   dvfsmodel.Watt
	stretch float64 // seconds that a second of D takes
}

// shape is what the free optimum depends on: the same work repeated more often
// has the same one. The ratio t0/D is rounded, so that rounding in the
// repetition doesn't tell equal shapes apart; the optimum is flat, and such a
// difference changes its energy by less than rounding does.
type shape struct {
	r               *dvfsmodel.Range
	class           int
	p0, gamma, c    dvfsmodel.Watt
	delta, constant float64 // constant is t0/D
}

// shapeSlots is the number of shapes remembered; each may be in one of a few
// slots, and a newer shape takes an older one's.
const (
	shapeBits  = 8
	shapeSlots = 1 << shapeBits
	shapeWays  = 4
)

// slot is the shape's hash: each number counts by an odd factor of its own.
func (s *shape) slot() uint {
	h := uint64(s.class)*0x9e3779b97f4a7c15 +
		math.Float64bits(float64(s.p0))*0xbf58476d1ce4e5b9 +
		math.Float64bits(float64(s.gamma))*0x94d049bb133111eb +
		math.Float64bits(float64(s.c))*0xd6e8feb86659fd93 +
		math.Float64bits(s.delta)*0xa0761d6478bd642f +
		math.Float64bits(s.constant)*0xe7037ed1a0b428db
	return uint((h ^ h>>32) * 0x9e3779b97f4a7c15 >> (64 - shapeBits))
}

func (o *optimum) Want(task, option, class int, room float64) (q planner.Quote, ok bool) {
	t := &o.p.Tasks[task]
	if t.Share < 1 {
		q = defaultQuote(o.p, task, option)
		return q, q.Point.Time <= room
	}
	response := t.Options[option].Response
	c, ok := response.(*dvfsmodel.Continuous)
	if !ok {
		return o.alone(response, class, room)
	}
	free := o.free(c, class)
	if free == nil {
		return q, false
	}
	time := c.Params.T0 + c.Params.D*free.stretch
	if time > room {
		return o.within(c, class, time, room, planner.ClocksDeadline)
	}
	q.Point.Setting, q.Point.Time = free.setting, time
	q.Point.Power, q.Point.Energy = free.power, free.power.Over(time)
	q.Clocks, q.Want = planner.ClocksFree, time
	return q, true
}

// alone is Want for a response that shares its optimum with no other.
func (o *optimum) alone(response dvfsmodel.Response, class int, room float64) (planner.Quote, bool) {
	free, err := response.Optimum(o.objectives[class], math.Inf(1))
	switch {
	case err != nil:
		return planner.Quote{}, false
	case free.Time > room:
		return o.within(response, class, free.Time, room, planner.ClocksDeadline)
	}
	clocks := planner.ClocksFree
	if _, fixed := response.(*dvfsmodel.Fixed); fixed {
		clocks = planner.ClocksNoModel // nobody chose them
	}
	return planner.Quote{Point: free, Clocks: clocks, Want: free.Time}, true
}

// within shortens a task to a room below the run time that it wants.
func (o *optimum) within(response dvfsmodel.Response, class int, want, room float64, why planner.ClockReason) (planner.Quote, bool) {
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
	return planner.Quote{Point: pt, Clocks: why, Want: want}, true
}

// free is the optimum without a limit of a response's shape, computed when it
// isn't among those remembered; nil when there is none.
func (o *optimum) free(c *dvfsmodel.Continuous, class int) *sharedOptimum {
	p := &c.Params
	key := shape{r: c.Range, class: class, p0: p.P0, gamma: p.Gamma, c: p.C, delta: p.Delta, constant: roundRatio(p.T0 / p.D)}
	home, way := key.slot(), o.evict
	for i := range uint(shapeWays) {
		slot := &o.shapes[(home+i)%shapeSlots]
		if slot.shape == key {
			return slot
		}
		if slot.shape.r == nil {
			way = i
			break // it would have been put here
		}
	}
	pt, err := c.Optimum(o.objectives[class], math.Inf(1))
	if err != nil {
		return nil
	}
	o.evict = (o.evict + 1) % shapeWays
	into := &o.shapes[(home+way)%shapeSlots]
	*into = sharedOptimum{
		shape: key, setting: pt.Setting, power: pt.Power,
		stretch: dvfsmodel.Params{D: 1, Delta: p.Delta}.Time(pt.Setting.Fc, pt.Setting.Fm),
	}
	return into
}

// roundRatio drops the bits of a ratio that rounding may have touched.
func roundRatio(x float64) float64 {
	const drop = 6 // of 52: a relative difference below 2e-14
	return math.Float64frombits(math.Float64bits(x) >> drop << drop)
}

func (o *optimum) Fit(task, option, class int, want planner.Quote, room float64) (planner.Quote, bool) {
	if want.Point.Time <= room {
		return want, true
	}
	if o.theta >= 1 || o.p.Tasks[task].Share < 1 || room < o.theta*want.Point.Time {
		return planner.Quote{}, false
	}
	return o.within(o.p.Tasks[task].Options[option].Response, class, want.Want, room, planner.ClocksReadjust)
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
