package improve

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
)

// running is what runs on a node at the present.
type running struct {
	node  int       // of the plan
	tasks []int     // that are on it, and perhaps on others
	free  []float64 // by GPU: when what runs there ends, seconds
}

// setRunning lets nodes begin with what runs at the present, where a plan has it.
func (l *listSchedule) setRunning(plan *planner.Plan) {
	if l.p.Snapshot == nil {
		return
	}
	begun := map[int32]*nodeList{}
	for _, r := range l.p.Snapshot.Running {
		a := &plan.Assignments[r.Task]
		if a.Node < 0 {
			continue
		}
		for part := range a.Parts {
			n := begun[part.Node]
			if n == nil {
				n = l.firstFresh(plan.Nodes[part.Node].Class)
				n.runs = &running{
					node: int(part.Node), free: make([]float64, len(l.classes[n.class].clock.free)),
				}
				begun[part.Node] = n
			}
			n.runs.tasks = append(n.runs.tasks, r.Task)
			for _, g := range part.GPUs.Indexes() {
				n.runs.free[g] = a.End
			}
		}
	}
	for n := range l.nodes {
		if r := l.nodes[n].runs; r != nil {
			l.nodes[n].begin = slices.Sorted(slices.Values(r.free))
		}
	}
}

// firstFresh returns the first node of a class on which nothing runs at the present.
func (l *listSchedule) firstFresh(class int) *nodeList {
	return &l.nodes[slices.IndexFunc(l.nodes, func(n nodeList) bool {
		return n.class == class && n.runs == nil
	})]
}

// copyPlan takes the places of a plan, and for each job the clocks that are nearest. ok
// is false where a job can't be at its place by its menu.
func (l *listSchedule) copyPlan(plan *planner.Plan) (ok bool) {
	l.removeAll()
	runs, numbers := l.p.RunningTasks(), l.nodeNumbers(plan)
	for _, task := range byStart(plan) {
		if runs != nil && runs[task] {
			continue
		}
		i, a := int32(task), &plan.Assignments[task]
		m := l.menu(i, plan.Nodes[a.Node].Class)
		if m.gpus == 0 {
			return false
		}
		nodes := make([]int32, 0, m.nodes)
		for part := range a.Parts {
			nodes = append(nodes, numbers[part.Node])
		}
		l.add(i, nodes, nearest(&m.time, a.Point.Time))
	}
	return l.retimeAll()
}

// nodeNumbers are by a plan's nodes those of the schedule: for what runs at the present the
// ones that begin with it, and in each class the first others for nodes with tasks.
func (l *listSchedule) nodeNumbers(plan *planner.Plan) []int32 {
	numbers := make([]int32, len(plan.Nodes))
	others := make([][]int32, len(l.classes)) // nodes on which nothing runs at the present
	for n := range l.nodes {
		if v := &l.nodes[n]; v.runs == nil {
			others[v.class] = append(others[v.class], int32(n))
		}
	}
	for n := range numbers {
		numbers[n] = -1
	}
	for n := range l.nodes {
		if r := l.nodes[n].runs; r != nil {
			numbers[r.node] = int32(n)
		}
	}
	for n, tasks := range byNode(plan) {
		if class := plan.Nodes[n].Class; len(tasks) > 0 && numbers[n] < 0 {
			numbers[n] = others[class][0]
			others[class] = others[class][1:]
		}
	}
	return numbers
}

func nearest(times *[priceCount]float64, want float64) int32 {
	best := freeOptimum
	for g := range times {
		if math.Abs(times[g]-want) < math.Abs(times[best]-want) {
			best = g
		}
	}
	return int32(best)
}

// dualChoice is where the prices of a dual would have a job.
type dualChoice struct {
	job   int32
	class int
	level int32
	key   float64 // those with a low one come first
}

// placeByDual places the jobs of a plan anew: on the class and at the clocks that cost
// least by the prices of the dual, those that must start first before others, each on
// the node of its class where it can start first, or on as many as it needs.
func (l *listSchedule) placeByDual(plan *planner.Plan, d *bound.DueDual) {
	l.removeAll()
	runs := l.p.RunningTasks()
	var all []dualChoice
	for i := range plan.Assignments {
		if plan.Assignments[i].Node >= 0 && (runs == nil || !runs[i]) {
			all = append(all, l.cheapestByDual(int32(i), d))
		}
	}
	slices.SortFunc(all, func(a, b dualChoice) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.job, b.job))
	})
	l.addInOrder(all)
	l.retimeAll()
}

// addInOrder puts jobs last on the nodes of their classes that have enough GPUs free first. It
// looks at GPUs only: where cores or memory run out, jobs start later than it reckons.
func (l *listSchedule) addInOrder(all []dualChoice) {
	clocks, byClass := make([]nodeClock, len(l.nodes)), make([][]int32, len(l.classes))
	for n := range clocks {
		class := l.nodes[n].class
		c := &l.classes[class]
		clocks[n].free = make([]float64, len(c.clock.free))
		clocks[n].restart(c, &l.nodes[n])
		byClass[class] = append(byClass[class], int32(n))
	}
	for _, w := range all {
		m := l.menu(w.job, w.class)
		var nodes []int32
		start := 0.0
		for len(nodes) < m.nodes {
			best, from := int32(-1), math.Inf(1)
			for _, n := range byClass[w.class] {
				at := max(clocks[n].free[m.gpus-1], l.p.Tasks[w.job].Arrival)
				if at < from && !slices.Contains(nodes, n) {
					best, from = n, at
				}
			}
			nodes, start = append(nodes, best), from
		}
		l.add(w.job, nodes, w.level)
		for _, n := range nodes {
			clocks[n].occupy(int32(m.gpus), start+m.time[w.level])
		}
	}
}

// cheapestByDual returns where a job costs least by the prices of the dual.
func (l *listSchedule) cheapestByDual(i int32, d *bound.DueDual) dualChoice {
	due := l.jobs[i].due
	best, w := math.Inf(1), dualChoice{job: i}
	for class := range l.classes {
		c, m := &l.classes[class], l.menu(i, class)
		if m.gpus == 0 || c.count < m.nodes {
			continue
		}
		for g, time := range m.time {
			cost := float64(m.nodes) *
				(m.net[g] + float64(m.gpus)*(c.idle*time+d.Price(class, due-time, due)))
			if c.delay+time > due { // any place is better than none, in time better than late
				cost += l.late.cost(c.delay+time, due)
			}
			if cost < best {
				best, w.class, w.level, w.key = cost, class, int32(g), due-time/2
			}
		}
	}
	return w
}
