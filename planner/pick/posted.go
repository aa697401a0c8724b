package pick

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// PostedPrice lets tasks bid for GPUs whose price rises with their use. A task
// bids Base + PerDay·days waited − energy there / its least energy for a node
// class, and pays Price·(use of the class after its start)^Steepness·GPU-seconds
// / Scale. Pairs with a positive surplus start, the best by GPU-second first. So
// a task may wait for the frugal class, but, as bids rise, not for ever.
//
// Prices change with each start and end; while tasks wait they are looked at
// every hour.
type PostedPrice struct {
	Base, PerDay     float64
	Price, Steepness float64
	Scale            float64 // GPU-seconds of a usual task; 0: mean of those that arrived, each on its first class
	Fairness
}

// New is the Pick stage of one run.
func (o PostedPrice) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &posted{chooser: newChooser(v, o.Fairness), how: o}
}

const (
	hour = 3600
	day  = 24 * hour
)

type posted struct {
	chooser
	how     PostedPrice
	work    float64 // GPU-seconds of the tasks that arrived, each on its first class
	arrived float64
}

func (q *posted) Arrive(tasks []int) {
	q.join(tasks)
	for _, task := range tasks {
		if pairs := q.known[task]; len(pairs) > 0 {
			q.work += pairs[0].work()
			q.arrived++
		}
	}
	q.unbar()
}

func (q *posted) Next() (int, bool) {
	q.settle()
	if task, ok := q.giveUp(); ok {
		return task, true
	}
	best, at := pair{}, none
	for i, task := range q.waiting {
		for _, p := range q.known[task] {
			if !q.open(&p) {
				continue
			}
			surplus := q.surplus(&p, q.v.Now)
			if p.key = surplus / p.work(); surplus > 0 && (at == none || p.key > best.key) && !q.isBarred(&p) {
				best, at = p, i
			}
		}
	}
	if at == none {
		q.wake = q.nextSale()
		return q.overdue(q.wake)
	}
	return q.propose(at, best)
}

// surplus is what a pair's bid at a time exceeds its price by.
func (q *posted) surplus(p *pair, now float64) float64 {
	q.v.Evaluated(1)
	least := p.kWh()
	for i := range q.known[p.task] {
		least = min(least, q.known[p.task][i].kWh())
	}
	energy := 1.0
	if least > 0 {
		energy = p.kWh() / least
	}
	bid := q.how.Base + q.how.PerDay*(now-q.v.Problem.Tasks[p.task].Arrival)/day - energy
	return bid - q.how.Price*math.Pow(q.after(p), q.how.Steepness)*p.work()/q.scale()
}

// scale is the GPU-seconds of a usual task: see [PostedPrice.Scale].
func (q *posted) scale() float64 {
	if q.how.Scale > 0 {
		return q.how.Scale
	}
	return q.work / q.arrived
}

// nextSale is the first whole hour from now at which a pair that fits has a
// surplus: hours at which nothing happens are passed over.
func (q *posted) nextSale() float64 {
	first := math.Inf(1)
	for _, task := range q.waiting {
		for _, p := range q.known[task] {
			if q.open(&p) && !q.isBarred(&p) {
				first = min(first, q.hoursToSale(&p))
			}
		}
	}
	return q.v.Now + first*hour
}

// hoursToSale is the number of whole hours until a pair has a surplus if nothing
// else changes.
func (q *posted) hoursToSale(p *pair) float64 {
	perHour := q.how.PerDay * hour / day
	if perHour == 0 {
		return math.Inf(1)
	}
	lacks := -q.surplus(p, q.v.Now) / perHour
	hours := max(1, math.Floor(lacks))
	for hours < lacks+2 && q.surplus(p, q.v.Now+hours*hour) <= 0 {
		hours++
	}
	return hours
}
