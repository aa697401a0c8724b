package improve

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// priceCount is the number of prices at which every task's answer is tabulated.
const priceCount = 24

// priceSteps are those prices in units of the idle power, ascending: from
// nearly the fastest clocks to where running on costs as much as idling. They are
// denser where run times change more from one price to the next.
var priceSteps = [priceCount]float64{
	-1000, -160, -90, -56, -36, -22, -13, -8, -5, -3, -1.7, -0.9, -0.4, -0.15,
	0, 0.08, 0.16, 0.25, 0.35, 0.46, 0.58, 0.71, 0.85, 1,
}

// freeOptimum is the index of price 0 in priceSteps: each task at its own optimum.
const freeOptimum = 14

// timeCurve is how run time answers to the price λ of time, watts: at step g of
// priceSteps it is the time that minimises cost − λ·time, and what that costs above
// the task's own optimum. The curve of several tasks on one GPU is their sum.
type timeCurve struct {
	time [priceCount]float64 // seconds
	cost [priceCount]float64 // joules
}

func (c *timeCurve) plus(o *timeCurve, sign float64) {
	for g := range c.time {
		c.time[g] += sign * o.time[g]
		c.cost[g] += sign * o.cost[g]
	}
}

// between returns the run time at a price between two steps.
func (c *timeCurve) between(n int, frac float64) float64 {
	if frac == 0 {
		return c.time[n]
	}
	return c.time[n] + frac*(c.time[n+1]-c.time[n])
}

// pricing is what time costs on a class of nodes.
type pricing struct {
	objective dvfsmodel.Objective // of a task by itself, host power included
	idle      float64             // one idle GPU, host included, watts
	retune    bool                // idling costs something: clocks may leave the objective's optimum
}

// pricingOf returns what time costs on a class.
func pricingOf(p *planner.Problem, class int) pricing {
	k := &p.Cluster.Classes[class]
	pr := pricing{objective: p.ClassObjective(class), idle: float64(k.IdleW + k.HostW)}
	pr.retune = pr.idle > 0
	return pr
}

// optimum returns the best point within the room when time is worth λ watts: the one
// of least cost − λ·time. Where any time can be had, what it is worth is capped at the most
// that can be taken off the power, beyond which there is no optimum in closed form.
func (pr *pricing) optimum(r dvfsmodel.Response, lambda, room float64) (dvfsmodel.Point, error) {
	o := pr.objective
	if !isStepped(r) {
		lambda = min(lambda, float64(dvfsmodel.MaxDiscount(r))+o.TimeWeight/o.EnergyWeight)
	}
	o.TimeWeight -= o.EnergyWeight * lambda
	return r.Optimum(o, room)
}

// cost returns what running to a point costs, in joules.
func (pr *pricing) cost(pt *dvfsmodel.Point) float64 {
	return pr.objective.Cost(*pt) / pr.objective.EnergyWeight
}

// point returns the best point within the room at step g. Where the model gives
// none that moves in the direction of the price, it is last, that of the step
// before.
func (pr *pricing) point(r dvfsmodel.Response, room float64, g int, last *dvfsmodel.Point) dvfsmodel.Point {
	direction := 1.0
	if g < freeOptimum {
		direction = -1
	}
	pt, err := pr.optimum(r, priceSteps[g]*pr.idle, room)
	if err != nil || (pt.Time-last.Time)*direction <= 0 {
		return *last
	}
	return pt
}

// points returns the whole curve of a response as points.
func (pr *pricing) points(r dvfsmodel.Response, room float64) (all [priceCount]dvfsmodel.Point, ok bool) {
	if pr.retune && isStepped(r) && pr.objective.DelayPower == 0 && pr.objective.EnergyWeight > 0 {
		var goals [priceCount]dvfsmodel.Objective
		for g := range goals {
			goals[g] = pr.objective
			goals[g].TimeWeight -= pr.objective.EnergyWeight * priceSteps[g] * pr.idle
		}
		return all, len(dvfsmodel.AppendOptima(all[:0], r, goals[:], room)) == priceCount
	}
	own, err := r.Optimum(pr.objective, room)
	if err != nil {
		return all, false
	}
	for g := range all {
		all[g] = own
	}
	if !pr.retune {
		return all, true
	}
	for g := freeOptimum + 1; g < priceCount; g++ {
		all[g] = pr.point(r, room, g, &all[g-1])
	}
	for g := freeOptimum - 1; g >= 0; g-- {
		all[g] = pr.point(r, room, g, &all[g+1])
	}
	return all, true
}

// pointsOf is points of a task on a GPU model. On a part of a GPU it has its default clocks, as others there.
func (pr *pricing) pointsOf(t *planner.Task, option int) (all [priceCount]dvfsmodel.Point, ok bool) {
	r := t.Options[option].Response
	if t.Share == 1 {
		return pr.points(r, t.Limit)
	}
	at := r.Default()
	for g := range all {
		all[g] = at
	}
	return all, dvfsmodel.MeetsLimit(at.Time, t.Limit)
}

// isStepped reports whether a response has no times between those at two prices.
func isStepped(r dvfsmodel.Response) bool {
	_, exact := dvfsmodel.MaxTime(r)
	return !exact && dvfsmodel.HasModel(r)
}

// curveTable makes curves. Equal shapes share the settings at the prices: the same
// work repeated more often has the same ones.
type curveTable struct {
	pricing
	shapes map[dvfsmodel.Shape]*[priceCount]dvfsmodel.Scaling
}

// maxShapes bounds the memory for shared settings.
const maxShapes = 1 << 10

func newCurveTable(pr pricing) *curveTable {
	return &curveTable{pricing: pr, shapes: map[dvfsmodel.Shape]*[priceCount]dvfsmodel.Scaling{}}
}

// curveOf tabulates a response. ok is false when it cannot meet the room.
func (tr *curveTable) curveOf(r dvfsmodel.Response, room float64) (c timeCurve, ok bool) {
	if shape, shared := dvfsmodel.ShapeOf(r); shared && tr.retune {
		return tr.scaledCurve(r, shape, room)
	}
	all, ok := tr.points(r, room)
	if ok {
		c.fill(&all, &tr.pricing)
	}
	return c, ok
}

// scaledCurve is trace by the settings of the response's shape. At the prices where
// the free optimum takes too long, the room is the best time.
func (tr *curveTable) scaledCurve(
	r dvfsmodel.Response, shape dvfsmodel.Shape, room float64,
) (c timeCurve, ok bool) {
	shortest := r.MinTime()
	if !dvfsmodel.MeetsLimit(shortest, room) {
		return c, false
	}
	settings := tr.settings(r, shape)
	if settings == nil {
		return c, false
	}
	var all [priceCount]dvfsmodel.Point
	limited := false
	for g := range all {
		if limited { // never at the first
			all[g] = all[max(g, 1)-1]
			continue
		}
		all[g] = dvfsmodel.PointAtScaling(r, settings[g])
		if all[g].Time > room {
			all[g], ok = dvfsmodel.ForTime(r, max(room, shortest))
			if !ok {
				return c, false
			}
			limited = true
		}
	}
	c.fill(&all, &tr.pricing)
	return c, true
}

// settings returns the free optima of the response's shape by price; nil when it has
// none.
func (tr *curveTable) settings(r dvfsmodel.Response, shape dvfsmodel.Shape) *[priceCount]dvfsmodel.Scaling {
	if known := tr.shapes[shape]; known != nil {
		return known
	}
	all, ok := tr.points(r, math.Inf(1))
	if !ok {
		return nil
	}
	s := new([priceCount]dvfsmodel.Scaling)
	for g := range s {
		s[g] = all[g].Scaling
	}
	if len(tr.shapes) < maxShapes {
		tr.shapes[shape] = s
	}
	return s
}

// fill takes times and costs from points.
func (c *timeCurve) fill(all *[priceCount]dvfsmodel.Point, pr *pricing) {
	base := pr.cost(&all[freeOptimum])
	for g := range all {
		c.time[g], c.cost[g] = all[g].Time, pr.cost(&all[g])-base
	}
}
