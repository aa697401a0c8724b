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
	// GPU-seconds of a usual task; 0: mean of those that arrived, each on its first
	// class.
	Scale float64
	Fairness
}

// New returns the Pick stage of one run.
func (o PostedPrice) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &posted{chooser: newChooser(v, o.Fairness), opts: o}
}

const (
	hour = 3600
	day  = 24 * hour
)

type posted struct {
	chooser
	opts    PostedPrice
	work    float64 // GPU-seconds of the tasks that arrived, each on its first class
	arrived float64
}

func (q *posted) Arrive(tasks []int) {
	q.enqueue(tasks)
	for _, task := range tasks {
		if pairs := q.pairsOf[task]; len(pairs) > 0 {
			q.work += pairs[0].work()
			q.arrived++
		}
	}
	q.unbar()
}

func (q *posted) Next() (int, bool) {
	if task, ok := q.giveUp(); ok {
		return task, true
	}
	best, at := pair{}, noPair
	for i, task := range q.waiting {
		for _, p := range q.pairsOf[task] {
			if !q.mayStart(&p) {
				continue
			}
			surplus := q.surplus(&p, q.v.Now)
			if p.key = surplus / p.work(); surplus > 0 && (at == noPair || p.key > best.key) &&
				!q.isBarred(&p) {
				best, at = p, i
			}
		}
	}
	if at == noPair {
		q.wake = q.nextAffordable()
		return q.nextOverdue(q.wake)
	}
	return q.propose(at, best)
}

// surplus returns what a pair's bid at a time exceeds its price by.
func (q *posted) surplus(p *pair, now float64) float64 {
	q.v.Evaluations++
	least := p.kWh()
	for i := range q.pairsOf[p.task] {
		least = min(least, q.pairsOf[p.task][i].kWh())
	}
	energy := 1.0
	if least > 0 {
		energy = p.kWh() / least
	}
	bid := q.opts.Base + q.opts.PerDay*(now-q.v.Problem.Tasks[p.task].Arrival)/day - energy
	return bid - q.opts.Price*math.Pow(q.usageWith(p), q.opts.Steepness)*p.work()/q.usualWork()
}

// usualWork returns the GPU-seconds of a usual task: see [PostedPrice.Scale].
func (q *posted) usualWork() float64 {
	if q.opts.Scale > 0 {
		return q.opts.Scale
	}
	return q.work / q.arrived
}

// nextAffordable returns the first whole hour from now at which a pair that fits has a
// surplus: hours at which nothing happens are passed over.
func (q *posted) nextAffordable() float64 {
	first := math.Inf(1)
	for _, task := range q.waiting {
		for _, p := range q.pairsOf[task] {
			if q.mayStart(&p) && !q.isBarred(&p) {
				first = min(first, q.hoursToSurplus(&p))
			}
		}
	}
	return q.v.Now + first*hour
}

// hoursToSurplus returns the number of whole hours until a pair has a surplus if nothing
// else changes.
func (q *posted) hoursToSurplus(p *pair) float64 {
	perHour := q.opts.PerDay * hour / day
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
