package bound

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// keptPrices holds the price β of an idle GPU-second on a class over time. β never falls.
//
// A task on k nodes of l GPUs each keeps those nodes on while it runs. Take a set of tasks of which no two
// fit on one node: at any moment, k·l GPUs are on for each running task of the set, and other tasks use
// some of them; the rest is idle. If 0 ≤ β(τ) ≤ the power of an idle GPU, the idle energy of a plan is at
// least
//
//	∫ β(τ)·(Σ over the set's tasks running at τ of k·l − Σ over all tasks running at τ of w) dτ
//
// This is added to the costs in [DueDual]. λ falls and β rises, so a run is cheapest by λ − β if it is as
// late as possible, and by β·k·l if it is as early as possible.
type keptPrices struct {
	nu        []float64  // rise of β at 0 and at each end
	unit      []float64  // GPU-seconds by which the slopes along nu are divided
	most      float64    // upper limit of β
	due, idle timePrices // λ and −β
}

// keeping describes the nodes that a task keeps on.
type keeping struct {
	gpus     float64   // of these nodes; 0: they don't count
	earliest float64   // start of the task
	turns    []float64 // run times at which the slope of the task's cost may change, ascending
}

// manyKept limits the number of tasks whose search takes all steps; larger batches take fewer.
const manyKept = 300

// dueBound returns a lower bound of energy·E + time·T for plans that end every task by its due time.
func dueBound(p *planner.Problem, energy, time float64) float64 {
	idle := 0.0
	for i := range p.Cluster.Classes {
		idle = max(idle, energy*float64(p.Cluster.Classes[i].IdleW+p.Cluster.Classes[i].HostW))
	}
	if idle == 0 || len(p.Tasks) > manyTasks {
		return NewDueDual(p, energy, time).Value
	}
	p = sortedProblem(p)
	plain := NewDueDual(p, energy, time)
	d := &dueSearch{p: p, energy: energy, time: time, each: 1, part: 1, idle: idle}
	d.prices()
	if d.tabulate(); d.unknown {
		return plain.Value
	}
	d.choosePricedTimes()
	d.countIdle(plain)
	value := plain.Value
	if d.chooseKept(-1, -1) {
		value = max(value, d.maximum(plain))
	}
	return max(value, d.withOneKept(plain))
}

// sortedProblem returns the problem with its tasks and classes sorted. Rounding depends on the order of a
// sum, and the search's path depends on rounding: without sorting, the bound would depend on the order of
// the input.
func sortedProblem(p *planner.Problem) *planner.Problem {
	q := *p
	q.Cluster.Classes, q.Tasks = slices.Clone(p.Cluster.Classes), slices.Clone(p.Tasks)
	slices.SortStableFunc(q.Cluster.Classes, func(a, b planner.NodeClass) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Name, b.Name), cmp.Compare(a.GPUs, b.GPUs),
			cmp.Compare(a.Count, b.Count), cmp.Compare(a.IdleW, b.IdleW), cmp.Compare(a.HostW, b.HostW))
	})
	defaults := func(t *planner.Task) (sum dvfsmodel.Point) {
		for i := range t.Options {
			at := t.Options[i].Response.Default()
			sum.Time, sum.Energy = sum.Time+at.Time, sum.Energy+at.Energy
		}
		return sum
	}
	slices.SortStableFunc(q.Tasks, func(a, b planner.Task) int {
		x, y := defaults(&a), defaults(&b)
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Limit, b.Limit),
			cmp.Compare(a.ID, b.ID), cmp.Compare(x.Time, y.Time), cmp.Compare(x.Energy, y.Energy))
	})
	return &q
}

// countIdle adds prices of idle GPUs to the search, beginning with the prices found without them.
func (d *dueSearch) countIdle(plain *DueDual) {
	work := 1.0
	for i := range d.tasks {
		o := &d.tasks[i].options[0]
		work += o.weight * o.shortest
	}
	for class := range d.dual.prices {
		k, c := &d.p.Cluster.Classes[class], &d.dual.prices[class]
		n := len(c.ends) + 1
		c.kept = &keptPrices{
			nu: make([]float64, n), unit: slices.Repeat([]float64{work}, n),
			most: d.energy * float64(k.IdleW+k.HostW),
			due:  newTimePrices(c.ends), idle: newTimePrices(c.ends),
		}
		for i := range d.tasks {
			t := &d.tasks[i]
			for n := range t.options {
				if o := &t.options[n]; o.class == class {
					o.keeping.earliest = max(earliestStart(d.p, &d.p.Tasks[t.task]), k.TurnOnDelay)
					o.findBreakpoints(c.ends, t.due)
				}
			}
		}
	}
	d.reset(plain)
}

// reset sets the prices to those found without idle GPUs.
func (d *dueSearch) reset(plain *DueDual) {
	for class := range d.dual.prices {
		c := &d.dual.prices[class]
		copy(c.mu, plain.prices[class].mu)
		clear(c.kept.nu)
		c.precompute(d.price)
	}
}

// maximum returns the bound of a search that begins with the prices found without idle GPUs.
func (d *dueSearch) maximum(plain *DueDual) float64 {
	d.reset(plain)
	d.ascend(min(maxSteps, maxSteps*manyKept/max(1, len(d.tasks))))
	return d.dual.Value - roundedDown*math.Abs(d.dual.Value)
}

// withOneKept returns the bound from the nodes of a single task: the task that leaves the most GPU-seconds of
// its nodes free. The bound is the lowest over the classes that the task can run on.
func (d *dueSearch) withOneKept(plain *DueDual) float64 {
	d.reset(plain)
	d.value()
	one, most := -1, 0.0
	for i := range d.tasks {
		t := &d.tasks[i]
		o := &t.options[t.choice]
		if free := (d.nodesOf(t, o) - o.weight) * t.time; free > most {
			one, most = i, free
		}
	}
	if one < 0 {
		return math.Inf(-1)
	}
	all := d.tasks[one].options
	defer func() { d.tasks[one].options = all }()
	value := math.Inf(1)
	for n := range all {
		d.tasks[one].options = all[n : n+1]
		d.tasks[one].choice = 0
		d.chooseKept(one, all[n].class)
		if value = min(value, d.maximum(plain)); value <= plain.Value {
			break
		}
	}
	return value
}

// nodesOf returns the GPUs of all nodes that a task keeps on.
func (d *dueSearch) nodesOf(t *dueTask, o *dueOption) float64 {
	k := &d.p.Cluster.Classes[o.class]
	task := &d.p.Tasks[t.task]
	return float64(k.GPUs * task.Options[task.Option(k.Model)].NodeCount())
}

// chooseKept chooses the tasks whose nodes count: on each class, the tasks that take more than half of a
// node. If a task is given, it counts on the given class, together with tasks that don't fit beside it.
// keep reports whether any task leaves GPUs of its nodes free.
func (d *dueSearch) chooseKept(one, class int) (some bool) {
	room := 0.0 // GPUs that the given task leaves free on a node
	perNode := func(t *dueTask, o *dueOption) float64 {
		return o.weight * float64(d.p.Cluster.Classes[o.class].GPUs) / d.nodesOf(t, o)
	}
	if one >= 0 {
		t := &d.tasks[one]
		room = float64(d.p.Cluster.Classes[class].GPUs) - perNode(t, &t.options[0])
	}
	for i := range d.tasks {
		t := &d.tasks[i]
		for n := range t.options {
			o := &t.options[n]
			least := 0.5 * float64(d.p.Cluster.Classes[o.class].GPUs)
			if o.class == class {
				least = max(least, room)
			}
			o.keeping.gpus = 0
			if i == one || perNode(t, o) > least {
				o.keeping.gpus = d.nodesOf(t, o)
				some = some || o.keeping.gpus > o.weight
			}
		}
	}
	return some
}

// findBreakpoints fills in the run times at which the slope of an option's cost may change.
func (o *dueOption) findBreakpoints(ends []float64, due float64) {
	longest := max(o.shortest, min(o.longest, o.bend[0])) // limits are kept up to rounding
	turns := append(slices.Clone(o.bend[:]), o.shortest, longest)
	for _, end := range ends {
		turns = append(turns, due-end, end-o.keeping.earliest)
	}
	turns = slices.DeleteFunc(turns, func(t float64) bool { return !(o.shortest <= t && t <= longest) })
	slices.Sort(turns)
	// Turns that differ by rounding only would mislead the search for the lowest cost.
	o.keeping.turns = slices.CompactFunc(turns, func(a, b float64) bool { return math.Abs(a-b) <= 1e-10*b })
}

// bestKeeping returns the same as best for a task whose nodes count. Its cost is convex in the run time and
// lowest at a turn.
func (o *dueOption) bestKeeping(c *duePrices, due float64, price []float64) (time, cost float64) {
	at := func(t float64) float64 {
		k := sort.Search(len(price)-1, func(k int) bool { return o.bend[k] <= t })
		value := c.kept.idle.priceBefore(o.keeping.earliest+t, t) // not positive
		return o.least[k] - price[k]*t + c.kept.due.priceBefore(due, t) - (o.keeping.gpus/o.weight-1)*value
	}
	turns := o.keeping.turns
	n := sort.Search(len(turns)-1, func(n int) bool { return at(turns[n]) <= at(turns[n+1]) })
	return turns[n], at(turns[n])
}

// idleSlopes returns the idle GPU-seconds from 0 and from each end on, at the tasks' choices.
func (d *dueSearch) idleSlopes(class int) []float64 {
	c := &d.dual.prices[class]
	slopes := make([]float64, len(c.kept.nu))
	for i := range d.tasks {
		t := &d.tasks[i]
		o := &t.options[t.choice]
		if o.class != class {
			continue
		}
		until, gpus := t.due, -o.weight
		if o.keeping.gpus > 0 {
			until, gpus = o.keeping.earliest+t.time, o.keeping.gpus-o.weight
		}
		for j := range slopes {
			from := 0.0
			if j > 0 {
				from = c.ends[j-1]
			}
			if from >= until {
				break
			}
			slopes[j] += gpus * min(t.time, until-from) / c.kept.unit[j]
		}
	}
	return slopes
}

// limit moves the prices to the nearest ones at which β doesn't exceed the power of an idle GPU.
func (k *keptPrices) limit() {
	sum := 0.0
	for _, nu := range k.nu {
		sum += nu
	}
	if sum <= k.most {
		return
	}
	falling := slices.Clone(k.nu)
	slices.Sort(falling)
	slices.Reverse(falling)
	sum = -k.most
	less := 0.0
	for n, nu := range falling {
		if sum += nu; sum/float64(n+1) > nu {
			break
		}
		less = sum / float64(n+1)
	}
	for j := range k.nu {
		k.nu[j] = max(0, k.nu[j]-less)
	}
}
