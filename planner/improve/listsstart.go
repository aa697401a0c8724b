package improve

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// follow takes the places of a plan, and for each job the clocks that are nearest. ok
// is false where a job can't be at its place by its menu.
func (l *lists) follow(plan *planner.Plan) (ok bool) {
	l.clear()
	first := make([]int, len(l.classes)) // node that comes next, by class
	for n, v := range slices.Backward(l.nodes) {
		first[v.class] = n
	}
	for n, tasks := range byNode(plan) {
		if len(tasks) == 0 {
			continue
		}
		class := plan.Nodes[n].Class
		for _, task := range tasks {
			i := int32(task) //nolint:gosec // few tasks
			m := l.menu(i, class)
			if m.gpus == 0 {
				return false
			}
			l.add(i, first[class], nearest(&m.time, plan.Assignments[task].Point.Time))
		}
		first[class]++
	}
	l.settle()
	return true
}

// nearest is the level whose time is nearest.
func nearest(times *[priceCount]float64, want float64) int32 {
	best := natural
	for g := range times {
		if math.Abs(times[g]-want) < math.Abs(times[best]-want) {
			best = g
		}
	}
	return int32(best)
}

// wish is where the prices of a dual would have a job.
type wish struct {
	job   int32
	class int
	level int32
	key   float64 // those with a low one come first
}

// spread places the jobs of a plan anew: on the class and at the clocks that cost
// least by the prices of the dual, those that must start first before others, each on
// the node of its class where it can start first.
func (l *lists) spread(plan *planner.Plan, d *planner.DueDual) {
	l.clear()
	var all []wish
	for i := range plan.Assignments {
		if plan.Assignments[i].Node >= 0 {
			all = append(all, l.wish(int32(i), d))
		}
	}
	slices.SortFunc(all, func(a, b wish) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.job, b.job)) })
	free := make([][]float64, len(l.nodes))
	for n := range free {
		c := &l.classes[l.nodes[n].class]
		free[n] = slices.Repeat([]float64{c.delay}, len(c.free))
	}
	for _, w := range all {
		gpus := l.menu(w.job, w.class).gpus
		best := -1
		for n := range l.nodes {
			if l.nodes[n].class == w.class && (best < 0 || free[n][gpus-1] < free[best][gpus-1]) {
				best = n
			}
		}
		l.add(w.job, best, w.level)
		occupy(free[best], gpus, l.jobs[w.job].time)
	}
	l.settle()
}

// wish is where a job costs least by the prices of the dual.
func (l *lists) wish(i int32, d *planner.DueDual) wish {
	due := l.jobs[i].due
	best, w := math.Inf(1), wish{job: i}
	for class := range l.classes {
		c, m := &l.classes[class], l.menu(i, class)
		if m.gpus == 0 || !l.opens(class) {
			continue
		}
		for g, time := range m.time {
			cost := m.net[g] + float64(m.gpus)*(c.idle*time+d.Price(class, due-time, due))
			if c.delay+time > due { // any place is better than none, in time better than late
				cost += l.late.fixed + l.late.perSecond*(c.delay+time-due)
			}
			if cost < best {
				best, w.class, w.level, w.key = cost, class, int32(g), due-time/2
			}
		}
	}
	return w
}

// opens tells whether the schedule has nodes of a class.
func (l *lists) opens(class int) bool {
	return slices.ContainsFunc(l.nodes, func(n nodeList) bool { return n.class == class })
}
