package improve

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/internal/heap"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
)

// pricedList places jobs at posted prices, however many they are. A second of a GPU has a price by class and
// time ([bound.NewPrices]) at which the jobs fit in a part of the room, each on the class and at the clocks
// that cost it least. Then they start in the order of their latest starts, each on the node that is free
// first.
type pricedList struct {
	l       *listSchedule
	jobs    []int32 // to be placed
	choices []pricedChoice
	hurry   []float64 // by job: seconds that it is due earlier, as it was late before
	ends    float64   // sum over the jobs
	waiting float64   // what a second of a GPU costs those that wait for it

	best     *listSchedule
	bestEnds float64
	chosen   []pricedChoice // of the best one
}

// pricedChoice is the class and the clocks that cost a job least.
type pricedChoice struct {
	job   int32
	class int
	level int32
	time  float64 // of the run, seconds
	work  float64 // part of the class's GPUs that it takes, times the time
	size  float64 // work, or time where each GPU of a job that waits counts
	key   float64 // jobs with a low one start first
	late  bool    // even if it starts at once
}

const (
	dither      = 0.02 // part by which prices differ from job to job, so that like jobs don't all choose alike
	pricedTries = 6    // lists at the same prices, while some jobs are late
	hopeless    = 0.02 // part of the jobs: if more are late, others at the same prices are no better
	hurryFactor = 1.5  // of a job's lateness
)

// filled lists the parts of the room that the jobs may fill, in order. Between the first one at which no job
// is late and the one before, more are tried.
var filled = [...]float64{1, 0.97, 0.94, 0.91, 0.88, 0.84, 0.8, 0.75}

const filledHalves = 2 // of that interval

// margins lists how much later jobs may start than if all GPUs of a class were one machine, as factors. Those
// up to 1 are tried where waiting has a price: some jobs are late by them at first, and due earlier then.
var margins = [...]float64{0.95, 0.96, 0.97, 0.98, 0.99, 1, 1.03, 1.1, 1.25, 1.5}

// sameCost is the part by which plans may cost more to be as good as others.
const sameCost = 0.005

func newPricedList(l *listSchedule, plan *planner.Plan) *pricedList {
	s := &pricedList{l: l, hurry: make([]float64, len(l.jobs))}
	runs := l.p.RunningTasks()
	for i := range plan.Assignments {
		if plan.Assignments[i].Node >= 0 && (runs == nil || !runs[i]) {
			s.jobs = append(s.jobs, int32(i))
		}
	}
	gpus := 0
	for n := range l.nodes {
		gpus += len(l.classes[l.nodes[n].class].clock.free)
	}
	for _, i := range s.jobs {
		for class := range l.classes {
			if m := l.menu(i, class); m.gpus > 0 {
				s.waiting += l.weights.waited * m.gpusUsed() * float64(m.nodes) / float64(2*gpus)
				break
			}
		}
	}
	return s
}

// place makes the schedule the best of the lists at prices for less and less of the room, until no job is
// late, or many are again: there is no room before early due times. Of lists that cost about as much, the one
// with the shortest turnaround is taken.
func (s *pricedList) place() {
	s.best = nil
	least, high := math.MaxInt, filled[0]
	for _, part := range filled {
		late := s.placeAll(part)
		if late == 0 {
			for range filledHalves {
				if mid := (part + high) / 2; s.placeAll(mid) > 0 {
					high = mid
				} else {
					part = mid
				}
			}
			s.shortenTurnaround()
			break
		}
		if most := int(hopeless * float64(len(s.jobs))); late > most && least <= most {
			break
		}
		least, high = min(least, late), part
	}
	s.l.copyFrom(s.best)
}

// shortenTurnaround has shorter jobs start earlier than their latest starts say, as long as no job is late by
// that and the cost hardly rises, or falls where waiting has a price.
func (s *pricedList) shortenTurnaround() {
	l := s.l
	cost, _ := s.best.total()
	most := cost + sameCost*math.Abs(cost)
	chosen := s.chosen
	for _, margin := range margins {
		if margin <= 1 && l.weights.waited == 0 {
			continue
		}
		s.choices = append(s.choices[:0], chosen...)
		s.setSmithOrder(margin)
		clear(s.hurry)
		for range pricedTries {
			late := s.rebuildByLatestStart()
			if late > 0 {
				continue
			}
			if now, _ := l.total(); now < cost || l.weights.waited == 0 && now <= most && s.ends < s.bestEnds {
				s.best = l.clone()
			}
			return
		}
	}
}

// setSmithOrder makes the jobs' keys positions in Smith's order, in which the ends of jobs on one machine have the
// least sum while none is late: from the end backwards, of the jobs that may still start then the one that
// takes most comes last. The machine is all GPUs of a class; starts are later than it reckons by a factor and
// by what a run takes in the mean, until GPUs are free.
func (s *pricedList) setSmithOrder(margin float64) {
	l := s.l
	gpus := make([]float64, len(l.classes))
	for n := range l.nodes {
		gpus[l.nodes[n].class] += float64(len(l.classes[l.nodes[n].class].clock.free))
	}
	mean := 0.0                             // run time
	left := make([]float64, len(l.classes)) // seconds of the machine for jobs without a position
	for k := range s.choices {
		c := &s.choices[k]
		m := l.menu(c.job, c.class)
		c.work = m.gpusUsed() * float64(m.nodes) * c.time / gpus[c.class]
		if c.size = c.work; l.weights.waited > 0 {
			c.size = c.time
		}
		left[c.class] += c.work
		mean += c.time / float64(len(s.choices))
	}
	slices.SortFunc(s.choices, func(a, b pricedChoice) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.key, a.key), cmp.Compare(a.job, b.job))
	})
	var open heap.Heap[pricedChoice] // jobs of a class that may come last
	next := 0
	for k := range s.choices {
		for class := s.choices[k].class; next < len(s.choices) && s.choices[next].class == class &&
			(len(open) == 0 || s.choices[next].key >= margin*left[class]+mean); next++ {
			open.Push(s.choices[next])
		}
		c := open.Pop()
		left[c.class] -= c.work
		c.key = left[c.class]
		s.choices[k] = c
	}
}

// Compare has the largest job come first.
func (a pricedChoice) Compare(b pricedChoice) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.job, b.job))
}

// placeAll places the jobs at the prices for a part of the room, those that are late anew as if they were due
// earlier, and returns how many are late.
func (s *pricedList) placeAll(part float64) (late int) {
	l := s.l
	prices := bound.NewPrices(l.p, l.weights.joule, l.weights.second+s.waiting, part)
	s.choices = s.choices[:0]
	for _, i := range s.jobs {
		s.choices = append(s.choices, s.choose(i, prices))
	}
	clear(s.hurry)
	least := math.MaxInt
	for range pricedTries {
		late = s.rebuildByLatestStart()
		if s.best == nil || l.isBetter(s.best) {
			s.best, s.bestEnds, s.chosen = l.clone(), s.ends, slices.Clone(s.choices)
		}
		if least = min(least, late); late == 0 || float64(late) > hopeless*float64(len(s.jobs)) {
			break
		}
	}
	return least
}

// choose returns the class and clocks that cost a job least at the prices.
func (s *pricedList) choose(i int32, prices *bound.DueDual) (w pricedChoice) {
	l, due := s.l, s.l.jobs[i].due
	best := math.Inf(1)
	w.job, w.late = i, true
	for class := range l.classes {
		c, m := &l.classes[class], l.menu(i, class)
		if m.gpus == 0 {
			continue
		}
		// The golden ratio spreads the factors of successive jobs evenly.
		_, part := math.Modf(float64(i+1) * math.Phi * float64(1+class))
		own := 1 + dither*(2*part-1)
		for g, time := range m.time {
			cost := float64(m.nodes) *
				(m.net[g] + m.gpusUsed()*((c.idle+s.waiting)*time+own*prices.Price(class, due-time, due)))
			late := c.delay+time > due // any place is better than none, in time better than late
			if late {
				cost += l.late.cost(c.delay+time, due)
			}
			if late != w.late && !late || late == w.late && cost < best {
				best, w.class, w.level, w.key, w.late = cost, class, int32(g), due-time, late
				w.time = time
			}
		}
	}
	return w
}

// rebuildByLatestStart puts the jobs into lists in the order of their latest starts, and returns how many
// are late.
func (s *pricedList) rebuildByLatestStart() (late int) {
	l := s.l
	l.removeAll()
	s.ends = 0
	slices.SortFunc(s.choices, func(a, b pricedChoice) int {
		return cmp.Or(cmp.Compare(a.key-s.hurry[a.job], b.key-s.hurry[b.job]), cmp.Compare(a.job, b.job))
	})
	clocks, byClass := make([]nodeClock, len(l.nodes)), make([][]int32, len(l.classes))
	for n := range clocks {
		class := l.nodes[n].class
		clocks[n].free = make([]float64, len(l.classes[class].clock.free))
		clocks[n].restart(&l.classes[class], &l.nodes[n])
		byClass[class] = append(byClass[class], int32(n))
	}
	for _, w := range s.choices {
		m := l.menu(w.job, w.class)
		nodes, start := l.firstFree(clocks, byClass[w.class], w.job, m)
		end := start + m.time[w.level]
		s.ends += end
		l.add(w.job, nodes, w.level)
		for _, n := range nodes {
			l.start(&clocks[n], w.class, w.job, int32(m.gpus), start, end)
		}
		if by := end - l.jobs[w.job].due; by > 0 {
			s.hurry[w.job] += hurryFactor * by
			late++
		}
	}
	l.retimeAll()
	return late
}

// firstFree returns the nodes, of some of a class, on which a job can start first, and when.
func (l *listSchedule) firstFree(
	clocks []nodeClock, from []int32, i int32, m *clockMenu,
) (nodes []int32, start float64) {
	for range m.nodes {
		best, first := int32(-1), math.Inf(1)
		for _, n := range from {
			at := l.earliest(&clocks[n], l.nodes[n].class, i, int32(m.gpus))
			if at < first && !slices.Contains(nodes, n) {
				best, first = n, at
			}
		}
		nodes, start = append(nodes, best), max(start, first)
	}
	return nodes, start
}
