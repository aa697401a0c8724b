package bound

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// DueDual is a lower bound of the objective of plans that end every task by its due
// time, and the prices of time that prove it.
//
// A task that ends by d and runs for t seconds runs for at least t − max(0, d − D) of
// them before any moment D. A class of nodes with so many GPUs, which can be used
// after a delay, has GPUs·(D − delay) seconds of a GPU before D. Let a second before D
// on class c have the price μ(c, D) ≥ 0. Whatever these prices are, no plan costs less
// than
//
//	Σ over tasks of min over classes and clocks of (cost + w·∫ λ(c, τ) dτ from d−t to d) − Σ μ(c, D)·GPUs·(D − delay)
//
// with λ(c, τ) the sum of μ(c, D) over D ≥ τ, and w the GPUs of the task (weak
// duality). The prices are looked for by subgradient steps.
type DueDual struct {
	Value  float64 // of the objective; what is proved
	prices []duePrices
}

// duePrices are the prices on one class.
type duePrices struct {
	ends  []float64  // D, ascending, seconds
	room  []float64  // seconds of GPUs before it
	mu    []float64  // price of one of them
	price timePrices // what a second of a GPU costs: λ, less β where idle GPUs count
	until [mostPrices]float64
	kept  *keptPrices // nil: idle GPUs don't count
}

// Numbers of tabulated prices of time: from 0 up, and negative ones, which come first if idle GPUs count.
const (
	duePriceCount = 32
	negativeCount = 8
	mostPrices    = duePriceCount + negativeCount
)

// dueTask is a task as the dual sees it.
type dueTask struct {
	task    int // of the problem
	due     float64
	options []dueOption
	choice  int     // index in options
	time    float64 // of the run, as the present prices choose it, seconds
}

// dueOption is what a task can do on a class: one of its GPUs costs at least
// most over k of (least[k] − price[k]·t) when it runs for t seconds.
type dueOption struct {
	class             int
	weight            float64 // GPUs
	shortest, longest float64 // of the run, seconds
	least             [mostPrices]float64
	bend              [mostPrices - 1]float64 // run time from which on k is the largest, seconds, falling
	keeping           keeping
}

// maxDues is how many due times of a class have a price.
const maxDues = 48

// Work of the search for prices: larger batches than manyTasks take fewer steps, and much larger ones
// are asked for a part of their tasks.
const (
	maxSteps    = 1000
	manyTasks   = 1000
	sampleTasks = 2000
)

// NewDueDual proves a bound for a problem whose objective is a sum of energy and time:
// for weights of a joule and of a GPU-second. It holds for offline, online and
// clairvoyant plans that leave no task out that has a chance, and end none after its
// due time.
func NewDueDual(p *planner.Problem, energyWeight, timeWeight float64) *DueDual {
	d := findPrices(p, energyWeight, timeWeight, 1)
	dual := d.dual
	if d.each > 1 {
		dual.Value = d.valueOfAll()
	}
	dual.Value -= roundedDown * math.Abs(dual.Value)
	return &dual
}

// NewPrices returns the prices at which the tasks of a batch fit in a part of what its GPUs can do
// before each due time. Of a large batch it asks a sample; nothing is proved then.
func NewPrices(p *planner.Problem, energyWeight, timeWeight, part float64) *DueDual {
	dual := findPrices(p, energyWeight, timeWeight, part).dual
	return &dual
}

// findPrices searches for the prices of a part of the room.
func findPrices(p *planner.Problem, energyWeight, timeWeight, part float64) *dueSearch {
	d := &dueSearch{
		p: p, energy: energyWeight, time: timeWeight, each: max(1, len(p.Tasks)/sampleTasks),
	}
	d.part = part / float64(d.each)
	d.prices()
	d.tabulate()
	d.choosePricedTimes()
	steps := maxSteps
	if n := len(d.tasks); n > manyTasks {
		steps = maxSteps * manyTasks / n
	}
	d.ascend(steps)
	return d
}

// Price returns what a GPU of a class costs by the dual's prices from one moment to
// another; nothing where both are +Inf.
func (d *DueDual) Price(class int, from, to float64) float64 {
	prices := &d.prices[class].price
	if len(prices.ends) == 0 {
		return 0
	}
	return prices.priceUntil(to) - prices.priceUntil(from)
}

type dueSearch struct {
	p            *planner.Problem
	energy, time float64           // weights
	each         int               // one of so many tasks is asked
	part         float64           // of the room, by what the tasks that are asked are of all
	price        []float64         // of time, ascending
	idle         float64           // highest price of an idle GPU-second; 0: idle GPUs don't count
	unknown      bool              // a task's cost at a negative price of time isn't known
	points       []dvfsmodel.Point // buffer of option
	tasks        []dueTask
	unpriced     float64 // what the other tasks cost, whose GPUs have no price
	dual         DueDual
}

// prices sets the prices at which costs are tabulated: 0, a geometric series that covers what a GPU-second
// may be worth, and evenly spaced negative ones if idle GPUs count.
func (d *dueSearch) prices() {
	const lowest, highest = 4, 4000 // watts
	if d.idle > 0 {
		for n := negativeCount; n > 0; n-- {
			d.price = append(d.price, -d.idle*float64(n)/negativeCount)
		}
	}
	d.price = append(d.price, 0)
	unit := d.energy + d.time/highest
	ratio := math.Pow(highest/lowest, 1/float64(duePriceCount-2))
	at := lowest * unit
	for range duePriceCount - 1 {
		d.price = append(d.price, at)
		at *= ratio
	}
}

// tabulate finds what the tasks that are asked cost on each class at each price.
func (d *dueSearch) tabulate() {
	for i := d.each / 2; i < len(d.p.Tasks); i += d.each {
		if task, free := d.taskAt(i, nil); task.options != nil {
			d.tasks = append(d.tasks, task)
		} else {
			d.unpriced += free
		}
	}
}

// taskAt returns a task as the dual sees it, its options in a buffer; without options, what it costs if its
// GPUs have no price.
func (d *dueSearch) taskAt(i int, buffer []dueOption) (task dueTask, free float64) {
	t := &d.p.Tasks[i]
	task = dueTask{task: i, due: t.Due + planner.DeadlineSlack*max(1, math.Abs(t.Due)), options: buffer}
	least, priced := math.Inf(1), false
	for class := range d.p.Cluster.Classes {
		if o, ok := d.option(t, class, task.due); ok {
			task.options = append(task.options, o)
			least = min(least, o.weight*o.least[0])
			priced = priced || d.idle > 0 || d.p.Cluster.Classes[class].Count > 0
		}
	}
	switch {
	case priced:
		return task, 0
	case len(task.options) > 0:
		free = least
	}
	task.options = nil
	return task, free
}

// option returns what a task can do on a class; ok is false where it can't run there in time.
func (d *dueSearch) option(t *planner.Task, class int, due float64) (o dueOption, ok bool) {
	k := &d.p.Cluster.Classes[class]
	option := t.Option(k.Model)
	if !k.CanRun(t, option) {
		return o, false
	}
	r := t.Options[option].Response
	o = dueOption{class: class, weight: gpuWeight(t, option), shortest: r.Default().Time}
	if t.Share == 1 {
		o.shortest = min(o.shortest, r.MinTime())
	}
	o.longest = min(due-max(earliestStart(d.p, t), k.TurnOnDelay), t.Limit*(1+planner.DeadlineSlack))
	var all [mostPrices]dvfsmodel.Objective
	goals, negative := all[:len(d.price)], 0
	for n, price := range d.price {
		goals[n] = dvfsmodel.Objective{
			EnergyWeight: d.energy, TimeWeight: d.time + d.energy*float64(k.HostW) + price,
		}
		if goals[n].TimeWeight < 0 {
			negative++
		}
	}
	if negative > 0 {
		d.unknown = !dvfsmodel.LeastCosts(o.least[:negative], r, goals[:negative], o.longest) || d.unknown
	}
	first := goals[negative:]
	if k.Count == 0 && d.idle == 0 { // its GPUs never have a price: nobody asks for other run times
		first = first[:1]
	}
	if d.points = appendCheapest(d.points[:0], t, option, first, o.longest); len(d.points) == 0 {
		return o, false
	}
	at := d.points
	for n := negative; n < len(goals); n++ {
		if n-negative < len(at) {
			o.least[n] = goals[n].Cost(at[n-negative])
		} else {
			o.least[n] = o.least[0] + d.price[n]*at[0].Time
		}
	}
	for n := range len(goals) - 1 {
		o.bend[n] = (o.least[n+1] - o.least[n]) / (d.price[n+1] - d.price[n])
	}
	return o, true
}

// choosePricedTimes chooses the due times that have a price.
func (d *dueSearch) choosePricedTimes() {
	d.dual.prices = make([]duePrices, len(d.p.Cluster.Classes))
	for class := range d.dual.prices {
		k := &d.p.Cluster.Classes[class]
		c := &d.dual.prices[class]
		if c.price = newTimePrices(nil); k.Count == 0 && d.idle == 0 {
			continue // there are always free GPUs
		}
		var dues []float64
		for i := range d.tasks {
			t := &d.tasks[i]
			if !math.IsInf(t.due, 1) &&
				slices.ContainsFunc(t.options, func(o dueOption) bool { return o.class == class }) {
				dues = append(dues, t.due)
			}
		}
		slices.Sort(dues)
		for n := range min(maxDues, len(dues)) {
			due := dues[(n+1)*len(dues)/min(maxDues, len(dues))-1]
			room := d.part * float64(k.Count*k.GPUs) * (due - k.TurnOnDelay)
			if k.Count == 0 {
				room = math.Inf(1)
			}
			if room > 0 && (len(c.ends) == 0 || due > c.ends[len(c.ends)-1]) {
				c.ends, c.room = append(c.ends, due), append(c.room, room)
			}
		}
		c.mu = make([]float64, len(c.ends))
		c.price = newTimePrices(c.ends)
		c.precompute(d.price)
	}
}

func (c *duePrices) precompute(price []float64) {
	if c.kept == nil {
		c.price.sum(c.mu, nil)
	} else {
		c.price.sum(c.mu, c.kept.nu)
		c.kept.due.sum(c.mu, nil)
		c.kept.idle.sum(nil, c.kept.nu)
	}
	j := len(c.ends)
	for k, p := range price { // they rise, and the level falls
		for j >= 0 && c.price.level[j] < p {
			j--
		}
		switch {
		case j == len(c.ends):
			c.until[k] = math.Inf(1)
		case j >= 0:
			c.until[k] = c.ends[j]
		default:
			c.until[k] = 0
		}
	}
}

// best returns the run time that costs least by the prices, and what it costs.
func (o *dueOption) best(c *duePrices, due float64, price []float64) (time, cost float64) {
	// The cost by itself falls by price[k] a second for run times from bend[k] to
	// bend[k-1], and no more than any price from bend[0] on; time before until[k] is worth at least
	// price[k].
	high := min(o.longest, max(o.bend[0], o.shortest))
	k := 1
	for ; k < len(price)-1; k++ {
		low := max(o.bend[k], o.shortest)
		if low >= high {
			continue
		}
		if due-c.until[k] > low {
			break
		}
		high = low
	}
	time = max(o.shortest, min(high, due-c.until[k]))
	return time, o.least[k] - price[k]*time + c.price.priceBefore(due, time)
}

// value returns the dual function at the present prices. The tasks' choices are noted.
func (d *dueSearch) value() float64 {
	sum := d.unpriced
	for i := range d.tasks {
		sum += d.choose(&d.tasks[i])
	}
	return sum - d.roomCost()
}

// choose returns what a task costs at least by the present prices, and notes its choice.
func (d *dueSearch) choose(t *dueTask) float64 {
	least := math.Inf(1)
	for n := range t.options {
		o := &t.options[n]
		c := &d.dual.prices[o.class]
		best := (*dueOption).best
		if o.keeping.gpus > 0 {
			best = (*dueOption).bestKeeping
		}
		time, cost := best(o, c, t.due, d.price)
		if cost *= o.weight; cost < least {
			least, t.choice, t.time = cost, n, time
		}
	}
	return least
}

// roomCost returns what the room costs by the present prices.
func (d *dueSearch) roomCost() (sum float64) {
	for class := range d.dual.prices {
		c := &d.dual.prices[class]
		for j := range c.mu {
			if c.mu[j] > 0 { // the room may be infinite
				sum += c.mu[j] * c.room[j]
			}
		}
	}
	return sum
}

// valueOfAll is value of all tasks of a batch of which a sample was asked.
func (d *dueSearch) valueOfAll() float64 {
	sum := -d.roomCost() / d.part
	var buffer []dueOption
	for i := range d.p.Tasks {
		task, free := d.taskAt(i, buffer[:0])
		if sum += free; task.options != nil {
			sum, buffer = sum+d.choose(&task), task.options
		}
	}
	return sum
}

// excess is by how much what the tasks chose exceeds the room before each due time,
// as a part of it.
func (d *dueSearch) excess(class int) []float64 {
	c := &d.dual.prices[class]
	n := len(c.ends) + 1
	slope, base := make([]float64, n), make([]float64, n)
	for i := range d.tasks {
		t := &d.tasks[i]
		o := &t.options[t.choice]
		if o.class != class || math.IsInf(t.due, 1) {
			continue
		}
		from, _ := slices.BinarySearch(c.ends, t.due-t.time)
		to, _ := slices.BinarySearch(c.ends, t.due)
		slope[from] += o.weight
		base[from] -= o.weight * (t.due - t.time)
		slope[to] -= o.weight
		base[to] += o.weight * t.due
	}
	sum, offset := 0.0, 0.0
	for j := range c.ends {
		sum, offset = sum+slope[j], offset+base[j]
		base[j] = (sum*c.ends[j]+offset)/c.room[j] - 1
	}
	return base[:n-1]
}

// ascend takes steps towards the best prices.
func (d *dueSearch) ascend(steps int) {
	var best [][]float64
	d.dual.Value = math.Inf(-1)
	const first, patience = 0.1, 40
	aim, stale := first, 0
	for range steps {
		value := d.value()
		if value > d.dual.Value {
			if value > d.dual.Value+1e-4*math.Abs(value) {
				stale = 0
			}
			d.dual.Value = value
			best = best[:0]
			for _, prices := range d.variables() {
				best = append(best, slices.Clone(prices))
			}
		}
		if stale++; stale > patience {
			aim, stale = aim/2, 0
			if aim < 1e-5 {
				break
			}
			d.setVariables(best)
			d.value()
		}
		if !d.step(d.dual.Value + aim*math.Abs(d.dual.Value) - value) {
			break
		}
	}
	d.setVariables(best)
}

// variables are the prices that are looked for.
func (d *dueSearch) variables() (all [][]float64) {
	for class := range d.dual.prices {
		c := &d.dual.prices[class]
		if all = append(all, c.mu); c.kept != nil {
			all = append(all, c.kept.nu)
		}
	}
	return all
}

func (d *dueSearch) setVariables(to [][]float64) {
	for n, prices := range d.variables() {
		copy(prices, to[n])
	}
	for class := range d.dual.prices {
		d.dual.prices[class].precompute(d.price)
	}
}

// step moves the prices so that the value would rise by so much if it were linear.
func (d *dueSearch) step(rise float64) bool {
	norm := 0.0
	slopes := make([]priceSlopes, 0, 2*len(d.dual.prices))
	for class := range d.dual.prices {
		c := &d.dual.prices[class]
		slopes = append(slopes, priceSlopes{c.mu, d.excess(class), c.room})
		if c.kept != nil {
			slopes = append(slopes, priceSlopes{c.kept.nu, d.idleSlopes(class), c.kept.unit})
		}
	}
	for _, s := range slopes {
		for j, g := range s.slope {
			if g < 0 && s.price[j] == 0 {
				s.slope[j] = 0
				continue
			}
			norm += g * g
		}
	}
	if norm == 0 {
		return false
	}
	for _, s := range slopes {
		for j, g := range s.slope {
			s.price[j] = max(0, s.price[j]+rise*g/norm/s.unit[j])
		}
	}
	for class := range d.dual.prices {
		c := &d.dual.prices[class]
		if c.kept != nil {
			c.kept.limit()
		}
		c.precompute(d.price)
	}
	return true
}

// priceSlopes are prices, by how much the value rises with each of them, and what that is counted in.
type priceSlopes struct{ price, slope, unit []float64 }
