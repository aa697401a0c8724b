package bound

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// keptPrices are what idle GPUs cost on a class by moment: β, which rises.
//
// While a task runs on k nodes of l GPUs each, those nodes are on. Of a set of tasks of which no two fit on a
// node, nodes of k·l GPUs for each that runs are on at any moment, and what other tasks don't occupy of them
// is idle. Let a GPU-second be worth 0 ≤ β(τ) ≤ what an idle one costs: then a plan costs by idle GPUs at least
//
//	∫ β(τ)·(Σ over the set's tasks that run at τ of k·l − Σ over all tasks that run at τ of w) dτ
//
// which is added to what [DueDual] counts. As λ falls and β rises, a run costs least by λ − β as late as it may
// be, and by β·k·l as early.
type keptPrices struct {
	nu        []float64 // by how much β rises at 0 and at each end
	unit      []float64 // GPU-seconds of which the slopes by nu are parts
	most      float64   // of β
	due, idle steps     // λ and −β
}

// keeping is what a task does for the nodes it keeps on.
type keeping struct {
	gpus     float64   // of these nodes; 0: they don't count
	earliest float64   // start
	turns    []float64 // run times at which the slope of its cost may change, ascending
}

// manyKept is how many tasks of which idle GPUs are counted have all steps.
const manyKept = 300

// dueBound returns a bound of energy·E + time·T of plans that end every task by its due time.
func dueBound(p *planner.Problem, energy, time float64) float64 {
	p = inOrder(p)
	plain := NewDueDual(p, energy, time)
	idle := 0.0
	for i := range p.Cluster.Classes {
		idle = max(idle, energy*float64(p.Cluster.Classes[i].IdleW+p.Cluster.Classes[i].HostW))
	}
	if idle == 0 || len(p.Tasks) > manyTasks {
		return plain.Value
	}
	d := &dueSearch{p: p, energy: energy, time: time, each: 1, part: 1, idle: idle}
	d.prices()
	if d.tabulate(); d.unknown {
		return plain.Value
	}
	d.choosePricedTimes()
	d.countIdle(plain)
	value := plain.Value
	if d.keep(-1, -1) {
		value = max(value, d.maximum(plain))
	}
	return max(value, d.withOneKept(plain))
}

// inOrder returns a problem whose tasks and classes don't stand as somebody happened to write them: rounding
// differs by the order of sums, and where the steps of a search lead by rounding.
func inOrder(p *planner.Problem) *planner.Problem {
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

// countIdle adds the prices of idle GPUs to those that were found.
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
			due:  newSteps(c.ends), idle: newSteps(c.ends),
		}
		for i := range d.tasks {
			t := &d.tasks[i]
			for n := range t.options {
				if o := &t.options[n]; o.class == class {
					o.keeping.earliest = max(earliestStart(d.p, &d.p.Tasks[t.task]), k.TurnOnDelay)
					o.findTurns(c.ends, t.due)
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

// maximum returns what is proved from the prices found without idle GPUs on.
func (d *dueSearch) maximum(plain *DueDual) float64 {
	d.reset(plain)
	d.ascend(min(maxSteps, maxSteps*manyKept/max(1, len(d.tasks))))
	return d.dual.Value - roundedDown*math.Abs(d.dual.Value)
}

// withOneKept returns what is proved by the nodes that one task keeps on, whatever class it runs on: of the
// one that leaves most of them free for longest.
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
		d.keep(one, all[n].class)
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

// keep has the nodes count that tasks keep on of which no two fit on a node: on each class those that take
// more than half of one, and on the given one no others than fit beside the given task, if it is one. It is
// false where there are none.
func (d *dueSearch) keep(one, class int) (some bool) {
	room := 0.0 // what the one leaves of a node
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

// findTurns fills in the run times at which the slope of an option's cost may change.
func (o *dueOption) findTurns(ends []float64, due float64) {
	longest := max(o.shortest, min(o.longest, o.bend[0])) // limits are kept up to rounding
	turns := append(slices.Clone(o.bend[:]), o.shortest, longest)
	for _, end := range ends {
		turns = append(turns, due-end, end-o.keeping.earliest)
	}
	turns = slices.DeleteFunc(turns, func(t float64) bool { return !(o.shortest <= t && t <= longest) })
	slices.Sort(turns)
	// Rounding makes turns of one: their costs must not decide where the least is.
	o.keeping.turns = slices.CompactFunc(turns, func(a, b float64) bool { return math.Abs(a-b) <= 1e-10*b })
}

// bestKeeping is best of a task whose nodes count. Its cost by run time is convex, and least at a turn.
func (o *dueOption) bestKeeping(c *duePrices, due float64, price []float64) (time, cost float64) {
	at := func(t float64) float64 {
		k := sort.Search(len(price)-1, func(k int) bool { return o.bend[k] <= t })
		value := c.kept.idle.before(o.keeping.earliest+t, t) // not positive
		return o.least[k] - price[k]*t + c.kept.due.before(due, t) - (o.keeping.gpus/o.weight-1)*value
	}
	turns := o.keeping.turns
	n := sort.Search(len(turns)-1, func(n int) bool { return at(turns[n]) <= at(turns[n+1]) })
	return turns[n], at(turns[n])
}

// idleSlopes are how much more GPU-seconds of nodes that are on are idle from 0 and from each end on, at the
// tasks' choices.
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

// limit keeps β from being more than what an idle GPU costs: of all prices that don't it takes the nearest.
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
