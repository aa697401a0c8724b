package dvfsmodel

import (
	"math"
	"math/bits"
)

// Shape is what the setting of a response's optimum without a limit depends on, beside
// the objective: the same work repeated more often has the same one. Shapes can be
// compared.
type Shape struct {
	r *Range
	p Params // of the work that takes a second of D
}

// ShapeOf returns the shape of a response in a range; others share their optima with none.
// Seconds that no clock changes are rounded, relative to those that clocks change, so that
// rounding in the repetition doesn't tell equal shapes apart; the optimum is flat, and such
// a difference changes its energy by less than rounding does.
func ShapeOf(r Response) (s Shape, ok bool) {
	c, ok := r.(*Continuous)
	if !ok || !(c.Params.D > 0) {
		return s, false
	}
	s = Shape{r: c.Range, p: c.Params}
	s.p.repeatForSecond()
	return s, true
}

func (s *Shape) hash(n uint64) uint64 {
	h := n + 1
	for i, v := range s.p.values() {
		h ^= bits.RotateLeft64(math.Float64bits(*v), 11*i)
	}
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// Optima finds the optima of many responses under a few objectives, and remembers those of
// shapes that it was asked for lately. It isn't safe for concurrent use.
type Optima struct {
	objectives []Objective
	slots      [shapeSlots]cachedOptimum
	evict      uint // the way of the next shape, when all are taken
}

// cachedOptimum is a shape's optimum: what it has in common whatever D is.
type cachedOptimum struct {
	shape     Shape
	objective int
	setting   Scaling
	stretch   float64
	power     Watt
}

// shapeSlots is the number of shapes remembered; each may be in one of a few
// slots, and a newer shape takes an older one's.
const (
	shapeSlots = 256
	shapeWays  = 4
)

// NewOptima is for objectives that are then known by their index.
func NewOptima(objectives []Objective) *Optima { return &Optima{objectives: objectives} }

// Unlimited is [Response.Optimum] without a limit under the i-th objective; false where there
// is none.
func (o *Optima) Unlimited(r Response, i int) (Point, bool) {
	c, ok := r.(*Continuous)
	if !ok {
		pt, err := r.Optimum(o.objectives[i], math.Inf(1))
		return pt, err == nil
	}
	cached := o.cached(c, i)
	if cached == nil {
		return Point{}, false
	}
	time := c.Params.timeAtStretch(cached.stretch)
	return Point{
		Scaling: cached.setting, Time: time, Power: cached.power, Energy: cached.power.Over(time),
	}, true
}

// Within is [Response.Optimum] within a limit that is shorter than the run time of
// [Optima.Unlimited], seconds; false where no setting meets it.
func (o *Optima) Within(r Response, i int, limit float64) (Point, bool) {
	if c, ok := r.(*Continuous); ok {
		if !MeetsLimit(c.MinTime(), limit) {
			return Point{}, false
		}
		return c.Range.AtLimit(c.Params, limit), true
	}
	pt, err := r.Optimum(o.objectives[i], limit)
	return pt, err == nil
}

// cached returns the optimum without a limit, computed when its shape isn't among those
// remembered; nil when there is none.
func (o *Optima) cached(c *Continuous, objective int) *cachedOptimum {
	key := Shape{r: c.Range, p: c.Params}
	key.p.repeatForSecond()
	home, way := uint(key.hash(uint64(objective))%shapeSlots), o.evict
	for i := range uint(shapeWays) {
		slot := &o.slots[(home+i)%shapeSlots]
		if slot.shape == key && slot.objective == objective {
			return slot
		}
		if slot.shape.r == nil {
			way = i
			break // it would have been put here
		}
	}
	pt, err := c.Optimum(o.objectives[objective], math.Inf(1))
	if err != nil {
		return nil
	}
	o.evict = (o.evict + 1) % shapeWays
	into := &o.slots[(home+way)%shapeSlots]
	*into = cachedOptimum{
		shape: key, objective: objective, setting: pt.Scaling, power: pt.Power,
		stretch: c.Params.stretch(pt.Scaling.Fc, pt.Scaling.Fm),
	}
	return into
}
