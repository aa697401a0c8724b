package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// lists is a schedule under work: each node runs a list of jobs in its order, each on
// the GPUs of the node that are free first. Costs are in units of the objective.
type lists struct {
	p       *planner.Problem
	weights weights
	late    lateness
	classes []listClass
	menus   []menu // by job and class
	jobs    []job
	nodes   []nodeList
	steps   int // work done: jobs timed
}

// weights are those of a joule and of a second of a GPU in the objective.
type weights struct{ joule, second float64 }

// lateness is what a job that ends after its due time costs beside its energy.
type lateness struct{ fixed, perSecond float64 }

// listClass is a class of nodes.
type listClass struct {
	delay float64   // until a node can be used, seconds
	idle  float64   // cost of a second of a GPU that is on and runs nothing
	sleep float64   // cost of a second of a node that is off
	used  float64   // cost of a node that runs something
	free  []float64 // buffer of timing: when each GPU of a node is free, ascending
}

// menu is what a job can do on a class: points from the fastest to the slowest, each
// the best one for a price of a second of a GPU.
type menu struct {
	gpus int // 0: it can't run there
	time [priceCount]float64
	net  [priceCount]float64 // cost of all its GPUs, less what they would cost idle
	at   *[priceCount]dvfsmodel.Point
}

// job is where a task is, and what follows from its clocks there.
type job struct {
	due   float64
	time  float64 // of the run, seconds
	net   float64 // as in menu
	gpus  int32
	level int32 // index of a menu's points
	node  int32 // -1: it isn't planned
}

// nodeList is one node.
type nodeList struct {
	class int
	jobs  []int32
	net   float64 // sum over its jobs
	busy  float64 // seconds of its GPUs with jobs
	cost  float64 // above sleeping, lateness included
	late  int     // jobs that end after their due times
}

// newLists makes a schedule with so many nodes of each class and no job on any.
func newLists(p *planner.Problem, w weights, open []int) *lists {
	l := &lists{p: p, weights: w, jobs: make([]job, len(p.Tasks)), menus: make([]menu, len(p.Tasks)*len(p.Cluster.Classes))}
	for class := range p.Cluster.Classes {
		k := &p.Cluster.Classes[class]
		c := listClass{
			delay: k.TurnOnDelay, idle: w.joule * float64(k.IdleW+k.HostW), sleep: w.joule * float64(k.SleepW),
			free: make([]float64, k.GPUs),
		}
		if p.Cluster.OfflineTurnOn {
			c.used = w.joule * float64(k.TurnOn) * float64(k.GPUs)
		}
		l.classes = append(l.classes, c)
		for range open[class] {
			l.nodes = append(l.nodes, nodeList{class: class})
		}
	}
	for i := range l.jobs {
		l.jobs[i] = job{due: p.Tasks[i].Due, node: -1}
		for class := range l.classes {
			l.tabulate(i, class)
		}
	}
	return l
}

// tabulate finds what a job can do on a class.
func (l *lists) tabulate(i, class int) {
	t, k := &l.p.Tasks[i], &l.p.Cluster.Classes[class]
	o := t.Option(k.Model)
	if o < 0 || t.Options[o].GPUs > k.GPUs || t.Options[o].GPUs == 0 {
		return
	}
	w := l.weights
	pr := pricing{
		objective: dvfsmodel.Objective{EnergyWeight: w.joule, TimeWeight: w.second + w.joule*float64(k.HostW)},
		idle:      float64(k.IdleW + k.HostW), retune: k.IdleW+k.HostW > 0,
	}
	all, ok := pr.points(t.Options[o].Response, t.Limit)
	if !ok {
		return
	}
	m := l.menu(int32(i), class) //nolint:gosec // few tasks
	m.gpus, m.at = t.Options[o].GPUs, &all
	for g := range all {
		m.time[g] = all[g].Time
		m.net[g] = float64(m.gpus) * (pr.objective.Cost(all[g]) - l.classes[class].idle*all[g].Time)
	}
}

// menu is what a job can do on a class.
func (l *lists) menu(i int32, class int) *menu { return &l.menus[int(i)*len(l.classes)+class] }

// set gives a job a node and a level there; lists are left alone.
func (l *lists) set(i, node, level int32) {
	j := &l.jobs[i]
	if j.node >= 0 {
		l.nodes[j.node].count(j, -1)
	}
	n := &l.nodes[node]
	m := l.menu(i, n.class)
	j.node, j.level, j.time, j.net, j.gpus = node, level, m.time[level], m.net[level], int32(m.gpus) //nolint:gosec // at most MaxGPUs
	n.count(j, 1)
}

// count adds a job to the node's sums, or takes it out.
func (n *nodeList) count(j *job, sign float64) {
	n.net += sign * j.net
	n.busy += sign * float64(j.gpus) * j.time
}

// fits tells whether all of some jobs can run on a class.
func (l *lists) fits(jobs []int32, class int) bool {
	return !slices.ContainsFunc(jobs, func(i int32) bool { return l.menu(i, class).gpus == 0 })
}

// timing plays a node's list. It stops where the node costs more than most: the cost
// is then a lower bound.
func (l *lists) timing(n *nodeList, most float64) (cost float64, late int) {
	if len(n.jobs) == 0 {
		return 0, 0
	}
	c := &l.classes[n.class]
	on := c.idle*float64(len(c.free)) - c.sleep // cost of a second of the node being on
	cost = n.net + c.used
	if least := cost + on*n.busy/float64(len(c.free)); least > most {
		return least, 0
	}
	l.steps += len(n.jobs)
	for g := range c.free {
		c.free[g] = c.delay
	}
	for _, i := range n.jobs {
		j := &l.jobs[i]
		if end := occupy(c.free, int(j.gpus), j.time); end > j.due*(1+roundOff) {
			late++
			if cost += l.late.fixed + l.late.perSecond*(end-j.due); cost > most {
				return cost, late
			}
		}
	}
	return cost + on*c.free[len(c.free)-1], late
}

// occupy runs a job on the GPUs that are free first, and says when it ends. The times
// stay in order.
func occupy(free []float64, gpus int, time float64) (end float64) {
	end = free[gpus-1] + time
	at := gpus
	for ; at < len(free) && free[at] < end; at++ {
		free[at-gpus] = free[at]
	}
	for g := at - gpus; g < at; g++ {
		free[g] = end
	}
	return end
}

// settle counts and times all nodes anew.
func (l *lists) settle() {
	for k := range l.nodes {
		n := &l.nodes[k]
		n.net, n.busy = 0, 0
		for _, i := range n.jobs {
			n.count(&l.jobs[i], 1)
		}
		n.cost, n.late = l.timing(n, math.Inf(1))
	}
}

// total is what all nodes cost, and how many jobs are late.
func (l *lists) total() (cost float64, late int) {
	for n := range l.nodes {
		cost += l.nodes[n].cost
		late += l.nodes[n].late
	}
	return cost, late
}

// better tells whether the schedule is to be preferred to another one.
func (l *lists) better(o *lists) bool {
	a, lateA := l.total()
	b, lateB := o.total()
	return lateA < lateB || lateA == lateB && a < b
}

// clone is a copy that can be changed apart.
func (l *lists) clone() *lists {
	o := *l
	o.jobs, o.nodes = slices.Clone(l.jobs), slices.Clone(l.nodes)
	for n := range o.nodes {
		o.nodes[n].jobs = slices.Clone(o.nodes[n].jobs)
	}
	return &o
}

// become takes over the places and clocks of another schedule of the same jobs and nodes.
func (l *lists) become(o *lists) {
	copy(l.jobs, o.jobs)
	for n := range l.nodes {
		v, u := &l.nodes[n], &o.nodes[n]
		v.jobs = append(v.jobs[:0], u.jobs...)
		v.net, v.busy, v.cost, v.late = u.net, u.busy, u.cost, u.late
	}
}

// clear takes all jobs off.
func (l *lists) clear() {
	for i := range l.jobs {
		l.jobs[i].node = -1
	}
	for n := range l.nodes {
		l.nodes[n] = nodeList{class: l.nodes[n].class, jobs: l.nodes[n].jobs[:0]}
	}
}

// add puts a job last on a node.
func (l *lists) add(i int32, node int, level int32) {
	n := &l.nodes[node]
	n.jobs = append(n.jobs, i)
	l.set(i, int32(node), level) //nolint:gosec // few nodes
}
