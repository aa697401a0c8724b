package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// listSchedule is a schedule under work: each node runs a list of jobs in its order, each on
// the GPUs of the node that are free first. A job on several nodes, a gang, is in the
// lists of all of them, and starts when its turn has come on each. Costs are in units
// of the objective.
type listSchedule struct {
	p       *planner.Problem
	weights weights
	late    lateness
	classes []listClass
	menus   []clockMenu // by job and class
	jobs    []job
	nodes   []nodeList
	needs   []hostNeed // by job and class; nil: GPUs are all that runs out
	arrive  bool       // jobs arrive over time, and nodes sleep where that takes less
	inOrder bool       // jobs start in the order of their lists: cores, memory, shares or arrivals count
	links   *links     // of nodes with gangs
	steps   int        // work done: jobs timed
}

// weights are those in the objective of a joule, of a second of a GPU with a job, of
// a second that a job waits for one, and of a second until a job ends.
type weights struct{ joule, second, waited, ended float64 }

// lateness is what a job that ends after its due time costs beside its energy.
type lateness struct{ fixed, perSecond float64 }

// listClass is a class of nodes.
type listClass struct {
	count int       // nodes
	delay float64   // until a node can be used, seconds
	idle  float64   // cost of a second of a GPU that is on and runs nothing
	sleep float64   // cost of a second of a node that is off
	used  float64   // cost of a node that runs something
	has   hostNeed  // cores and memory of a node; +Inf: they don't run out
	clock nodeClock // buffer of timing
}

// clockMenu is what a job can do on a class: points from the fastest to the slowest, each
// the best one for a price of a second of a GPU.
type clockMenu struct {
	gpus  int     // of each of its nodes; 0: it can't run there
	share float64 // of each of these GPUs
	nodes int     // on which it runs
	time  [priceCount]float64
	// cost of its GPUs of a node and of the wait until 0, less what they would cost idle.
	net [priceCount]float64
}

// job is where a task is, and what follows from its clocks there.
type job struct {
	due   float64
	time  float64 // of the run, seconds
	net   float64 // as in menu
	used  float64 // GPUs of each of its nodes, or its share of one
	gpus  int32   // of each of its nodes
	level int32   // index of a menu's points
	node  int32   // -1: it isn't in a list
	more  []int32 // its further nodes; never changed in place
}

// nodeList is one node.
type nodeList struct {
	class int
	begin []float64 // when its GPUs are free at first, ascending; nil: all after the class's delay
	runs  *running  // what runs there at the present; nil: nothing
	jobs  []int32
	gangs int     // how many of them are gangs
	net   float64 // sum over its jobs
	busy  float64 // seconds of its GPUs with jobs
	cost  float64 // above sleeping, lateness included
	late  int     // jobs that end after their due times, gangs on their first nodes
}

// newListSchedule makes a schedule with so many nodes of each class and no job in any list.
func newListSchedule(p *planner.Problem, w weights, open []int) *listSchedule {
	l := &listSchedule{
		p: p, weights: w, jobs: make([]job, len(p.Tasks)),
		menus: make([]clockMenu, len(p.Tasks)*len(p.Cluster.Classes)),
	}
	l.links = &links{l: l}
	for class := range p.Cluster.Classes {
		k := &p.Cluster.Classes[class]
		c := listClass{
			count: open[class], delay: k.TurnOnDelay, idle: w.joule * float64(k.IdleW+k.HostW),
			sleep: w.joule * float64(k.SleepW),
			has:   capacityOf(k), clock: nodeClock{free: make([]float64, k.GPUs)},
		}
		if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
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
	if p.AnyNeedsMoreThanGPUs() {
		l.needs = needsOf(p)
	}
	l.arrive = p.Mode == planner.Clairvoyant
	l.inOrder = l.needs != nil || l.arrive
	return l
}

// tabulate finds what a job can do on a class.
func (l *listSchedule) tabulate(i, class int) {
	t, k := &l.p.Tasks[i], &l.p.Cluster.Classes[class]
	o := t.Option(k.Model)
	if !k.CanRun(t, o) || t.Options[o].GPUs == 0 || t.Options[o].NodeCount() > l.classes[class].count {
		return
	}
	pr, w := l.pricing(class), l.weights
	all, ok := pr.pointsOf(t, o)
	if !ok {
		return
	}
	m := l.menu(int32(i), class)
	m.gpus, m.nodes, m.share = t.Options[o].PerNode(), t.Options[o].NodeCount(), t.Share
	for g := range all {
		m.time[g] = all[g].Time
		m.net[g] = m.gpusUsed() *
			(pr.objective.Cost(all[g]) - l.classes[class].idle*all[g].Time - w.waited*t.Arrival)
	}
}

// pricing returns what time costs on a class.
func (l *listSchedule) pricing(class int) pricing {
	k, w := &l.p.Cluster.Classes[class], l.weights
	return pricing{
		objective: dvfsmodel.Objective{
			EnergyWeight: w.joule, TimeWeight: w.second + w.joule*float64(k.HostW),
		},
		idle: float64(k.IdleW + k.HostW), retune: k.IdleW+k.HostW > 0,
	}
}

// gpusUsed returns how many GPUs of a node a job has.
func (m *clockMenu) gpusUsed() float64 { return float64(m.gpus) * m.share }

// nodeCount returns on how many nodes a job is.
func (j *job) nodeCount() int { return 1 + len(j.more) }

// nodeAt returns one of a job's nodes, the first one at 0.
func (j *job) nodeAt(k int) int32 {
	if k == 0 {
		return j.node
	}
	return j.more[k-1]
}

// menu returns what a job can do on a class.
func (l *listSchedule) menu(i int32, class int) *clockMenu {
	return &l.menus[int(i)*len(l.classes)+class]
}

// assign gives a job its first node, more nodes, and a level there; lists are left alone.
func (l *listSchedule) assign(i, node int32, more []int32, level int32) {
	j := &l.jobs[i]
	l.addToSums(j, -1)
	m := l.menu(i, l.nodes[node].class)
	j.node, j.more, j.level, j.time, j.net = node, more, level, m.time[level], m.net[level]
	j.gpus, j.used = int32(m.gpus), m.gpusUsed()
	l.addToSums(j, 1)
}

// addToSums adds a job to the sums of its nodes, or takes it out.
func (l *listSchedule) addToSums(j *job, sign int) {
	if j.node < 0 {
		return
	}
	l.nodes[j.node].addToSums(j, sign)
	for _, n := range j.more {
		l.nodes[n].addToSums(j, sign)
	}
}

// addToSums adds a job to the node's sums, or takes it out.
func (n *nodeList) addToSums(j *job, sign int) {
	n.net += float64(sign) * j.net
	n.busy += float64(sign) * j.used * j.time
	if j.more != nil {
		n.gangs += sign
	}
}

// timeNode plays the list of a node without gangs. It stops where the node costs more
// than most: the cost is then a lower bound.
func (l *listSchedule) timeNode(n *nodeList, most float64) (cost float64, late int) {
	if len(n.jobs) == 0 && n.begin == nil {
		return 0, 0
	}
	c := &l.classes[n.class]
	gpus := float64(len(c.clock.free))
	cost = n.net + c.used
	if least := cost + c.onCostRate()*n.busy/gpus; least > most {
		return least, 0
	}
	l.steps += len(n.jobs)
	c.clock.restart(c, n)
	free := c.clock.free
	for _, i := range n.jobs {
		j := &l.jobs[i]
		start := l.earliest(&c.clock, n.class, i, j.gpus)
		end := start + j.time
		cost += l.waitCost(j, start)
		l.start(&c.clock, n.class, i, j.gpus, start, end)
		if end > j.due*(1+roundOff) {
			late++
			if cost += l.late.cost(end, j.due); cost > most {
				return cost, late
			}
		}
	}
	return cost + c.onCostRate()*free[len(free)-1] - c.clock.slept, late
}

// waitCost returns what it costs on a node that a job starts then instead of at 0, and ends then.
func (l *listSchedule) waitCost(j *job, start float64) float64 {
	return l.weights.waited*j.used*start + l.weights.ended*(start+j.time)/float64(1+len(j.more))
}

// onCostRate returns what a second of a node being on costs above sleeping.
func (c *listClass) onCostRate() float64 { return c.idle*float64(len(c.clock.free)) - c.sleep }

// cost returns what a job costs that ends then instead of when it is due.
func (l *lateness) cost(end, due float64) float64 { return l.fixed + l.perSecond*(end-due) }

// retimeAll counts and times all nodes anew. ok is false where gangs wait for each other.
func (l *listSchedule) retimeAll() (ok bool) {
	for k := range l.nodes {
		n := &l.nodes[k]
		n.net, n.busy, n.gangs = 0, 0, 0
		for _, i := range n.jobs {
			n.addToSums(&l.jobs[i], 1)
		}
	}
	for k := range l.nodes {
		if n := &l.nodes[k]; n.gangs == 0 {
			n.cost, n.late = l.timeNode(n, math.Inf(1))
		}
	}
	return l.links.playAll()
}

// total returns what all nodes cost, and how many jobs are late.
func (l *listSchedule) total() (cost float64, late int) {
	for n := range l.nodes {
		cost += l.nodes[n].cost
		late += l.nodes[n].late
	}
	return cost, late
}

// isBetter reports whether the schedule is to be preferred to another one.
func (l *listSchedule) isBetter(o *listSchedule) bool {
	a, lateA := l.total()
	b, lateB := o.total()
	return lateA < lateB || lateA == lateB && a < b
}

// clone returns a copy that can be changed apart.
func (l *listSchedule) clone() *listSchedule {
	o := *l
	o.links = &links{l: &o}
	o.jobs, o.nodes = slices.Clone(l.jobs), slices.Clone(l.nodes)
	for n := range o.nodes {
		o.nodes[n].jobs = slices.Clone(o.nodes[n].jobs)
	}
	return &o
}

// copyFrom takes over the places and clocks of another schedule of the same jobs and nodes.
func (l *listSchedule) copyFrom(o *listSchedule) {
	copy(l.jobs, o.jobs)
	l.links.known = false
	for n := range l.nodes {
		v, u := &l.nodes[n], &o.nodes[n]
		v.jobs = append(v.jobs[:0], u.jobs...)
		v.gangs, v.net, v.busy, v.cost, v.late = u.gangs, u.net, u.busy, u.cost, u.late
	}
}

func (l *listSchedule) removeAll() {
	for i := range l.jobs {
		l.jobs[i].node, l.jobs[i].more = -1, nil
	}
	for n := range l.nodes {
		v := &l.nodes[n]
		*v = nodeList{class: v.class, begin: v.begin, runs: v.runs, jobs: v.jobs[:0]}
	}
}

// add puts a job last on some nodes of a class.
func (l *listSchedule) add(i int32, nodes []int32, level int32) {
	for _, node := range nodes {
		l.nodes[node].jobs = append(l.nodes[node].jobs, i)
	}
	var more []int32
	if len(nodes) > 1 {
		more = slices.Clone(nodes[1:])
	}
	l.assign(i, nodes[0], more, level)
}
