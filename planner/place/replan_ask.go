package place

import (
	"cmp"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// pendingTask is a task that waits, with what it could have.
type pendingTask struct {
	task          int
	arrival       float64
	due, deadline float64
	defaultEnd    float64 // when it would end at default clocks
	shortest      float64 // run time at the fastest clocks, where it is shortest
	work          float64 // GPU-seconds at default clocks, where it takes fewest
	size          float64 // GPUs, or the share of one, where it takes fewest
	cost          float64 // at default clocks, where it costs most
	planned       float64 // when it ends in the latest plan
	pacing        *pacing
	unpaced       bool // it has a deadline, before which its time has less of a price
	nodes         int  // that it runs on, where these are most
	choices       []classChoice
}

// classChoice is a node class with the clocks that a task may have there.
type classChoice struct {
	class, option int
	nodes         int             // that it runs on
	gpus          int             // of each
	size          float64         // GPUs, or the share of one
	quotes        []planner.Quote // fastest first
	costs         []float64       // of each, by the objective, host power included
}

// clockSteps is how many steps there are from the fastest clocks to those that a task
// wants, equal in the logarithm of its run time.
const clockSteps = 6

// newPending finds out what a task could have, and what it would have at default clocks.
func (p *replan) newPending(task int) *pendingTask {
	t := &p.v.Problem.Tasks[task]
	j := &pendingTask{
		task: task, arrival: t.Arrival, due: t.Due, deadline: t.Deadline,
		shortest: math.Inf(1), work: math.Inf(1), size: math.Inf(1),
		pacing: p.pacingOf(t), unpaced: p.opts.Pace > 0 && !math.IsInf(t.Deadline, 1),
	}
	longest := 0.0
	for class := range p.v.Problem.Cluster.Classes {
		if !p.v.CanRunOn(task, class) {
			continue
		}
		option := p.v.Option(task, class)
		o := &t.Options[option]
		c := classChoice{
			class: class, option: option, nodes: o.NodeCount(), gpus: o.PerNode(),
			size: float64(o.GPUs) * t.Share,
		}
		at, price := o.Response.Default(), p.v.Problem.ClassObjective(class)
		c.quotes = p.quotesFor(task, option, class, p.opts.Stretch*at.Time)
		for q := range c.quotes {
			c.costs = append(c.costs, c.size*linearCost(&price, &c.quotes[q].Point))
		}
		j.choices = append(j.choices, c)
		j.nodes = max(j.nodes, c.nodes)
		j.shortest = min(j.shortest, c.quotes[0].Point.Time)
		j.work, j.size = min(j.work, c.size*at.Time), min(j.size, c.size)
		j.cost, longest = max(j.cost, c.size*linearCost(&price, &at)), max(longest, at.Time)
	}
	if len(j.choices) > 0 {
		j.defaultEnd = p.reference.BookArrival(task)
		j.planned = j.defaultEnd
		p.delays.noteArrival(j, longest)
	}
	return j
}

// linearCost returns what a point costs by weights alone: products of energy and time don't add
// up over tasks.
func linearCost(o *dvfsmodel.Objective, pt *dvfsmodel.Point) float64 {
	return o.EnergyWeight*float64(pt.Energy) + o.TimeWeight*pt.Time
}

// quotesFor returns the quotes from the fastest to what the task wants within a run time and
// its limit.
func (p *replan) quotesFor(task, option, class int, longest float64) []planner.Quote {
	t := &p.v.Problem.Tasks[task]
	limit := p.beliefs.within(t, t.Options[option].Response.Default().Time)
	fastest := p.v.Tuner.Fastest(task, option, class)
	slowest, ok := p.v.Tuner.Want(task, option, class, min(longest, limit))
	if !ok {
		return []planner.Quote{fastest}
	}
	const apart = 1 + 1e-9
	if slowest.Clocks == planner.ClocksDeadline && longest < limit {
		slowest.Clocks = planner.ClocksPaced
	}
	ratio := slowest.Point.Time / fastest.Point.Time
	if ratio <= apart {
		return []planner.Quote{slowest}
	}
	quotes := []planner.Quote{fastest}
	for step := 1; step < clockSteps; step++ {
		room := fastest.Point.Time * math.Pow(ratio, float64(step)/clockSteps)
		q, ok := p.v.Tuner.Want(task, option, class, room)
		if ok && q.Point.Time > quotes[len(quotes)-1].Point.Time*apart &&
			q.Point.Time*apart < slowest.Point.Time {
			quotes = append(quotes, q)
		}
	}
	for q := range quotes {
		quotes[q].Clocks, quotes[q].Want = planner.ClocksPaced, slowest.Want
	}
	return append(quotes, slowest)
}

// latestStart returns when the task must start to be in time, at the fastest clocks.
func (j *pendingTask) latestStart() float64 { return min(j.due, j.deadline) - j.shortest }

// compareLatest orders tasks by when they must start, equal ones by number.
func compareLatest(a, b *pendingTask) int {
	return cmp.Or(cmp.Compare(a.latestStart(), b.latestStart()), cmp.Compare(a.task, b.task))
}

// compareWork orders tasks by what they take, equal ones by number.
func compareWork(a, b *pendingTask) int {
	return cmp.Or(cmp.Compare(a.work, b.work), cmp.Compare(a.task, b.task))
}

func (s *delayAccount) noteArrival(j *pendingTask, time float64) {
	s.cost, s.time, s.tasks = s.cost+j.cost, s.time+time, s.tasks+1
}

func (s *pacing) noteStart(j *pendingTask, end float64) {
	if j.unpaced {
		return
	}
	const fade = 1 - 1/memoryTasks
	s.actualTime, s.defaultTime = s.actualTime*fade+end-j.arrival, s.defaultTime*fade+j.defaultEnd-j.arrival
}

const (
	memoryTasks = 300.0 // tasks after which the time that one spent counts 1/e

	// waitPrice is what a second in the system costs, as a part of what tasks cost a
	// second while they run, where they spend as long as is the goal; gain is how fast that
	// rises with it, up to maxPrice usual prices.
	waitPrice           = 0.3
	priceGain, maxPrice = 8, 10
)

// setPrice sets what a second of a task's time in the system costs now, by what is usual; what the tasks
// that wait will have spent is taken from the latest plan.
func (s *pacing) setPrice(now float64, waiting []*pendingTask, usual float64) {
	ours, theirs := s.actualTime, s.defaultTime
	for _, j := range waiting {
		if !j.unpaced && j.pacing == s {
			ours, theirs = ours+max(now, j.planned)-j.arrival, theirs+j.defaultEnd-j.arrival
		}
	}
	if s.price = usual; theirs > 0 {
		s.price = usual * min(max(math.Exp(priceGain*(ours/theirs-s.goal)), s.least), maxPrice)
	}
}

// usualCost returns a part of what tasks cost a second at default clocks while they run.
func (s *delayAccount) usualCost() float64 { return waitPrice * s.cost / s.time }
