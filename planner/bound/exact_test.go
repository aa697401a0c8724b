package bound_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
)

// choice is one thing that a task can do: by an option on nodes of a class, at a
// setting.
type choice struct {
	class, option, gpus, nodes, seconds int // GPUs of each of its nodes
	point                               dvfsmodel.Point
	// What it adds to the plan's, with its part of the hosts.
	sum dvfsmodel.Point
}

// exhaustive tries every choice, set of nodes and start of every task. All times of
// its problems are whole seconds: with choices, nodes and order given, the best starts
// are a linear program of differences of times alone, so some best ones are whole, too.
type exhaustive struct {
	p         *planner.Problem
	table     *dvfsmodel.Table // of all responses that aren't fixed
	objective dvfsmodel.Objective
	due       func(t *planner.Task) float64
	classes   []int      // by node
	choices   [][]choice // by task, the cheapest first
	// The least energy and the least time of the tasks from this one on by themselves.
	rest          []dvfsmodel.Point
	used          [][]int // by node and second: GPUs
	chosen, found []placed
	best          float64
}

type placed struct {
	choice *choice
	nodes  []int
	start  int
}

// newExhaustive returns a search for plans that end each task by what due says.
func newExhaustive(
	p *planner.Problem, table *dvfsmodel.Table, objective dvfsmodel.Objective,
	due func(t *planner.Task) float64,
) *exhaustive {
	e := &exhaustive{
		p: p, table: table, objective: objective, due: due, best: math.Inf(1),
		rest: make([]dvfsmodel.Point, len(p.Tasks)+1),
	}
	horizon := 0.0
	for class := range p.Cluster.Classes {
		k := &p.Cluster.Classes[class]
		// a task has two nodes at most.
		e.classes = append(e.classes, slices.Repeat([]int{class}, cmp.Or(k.Count, 2*len(p.Tasks)))...)
		horizon = max(horizon, k.TurnOnDelay)
	}
	for i := range p.Tasks {
		all := e.choicesOf(&p.Tasks[i])
		e.choices = append(e.choices, all)
		longest := 0
		for _, c := range all {
			longest = max(longest, c.seconds)
		}
		horizon = max(horizon, p.Tasks[i].Arrival) + float64(longest)
	}
	for i := len(p.Tasks) - 1; i >= 0; i-- {
		e.rest[i] = dvfsmodel.Point{Energy: dvfsmodel.Joule(math.Inf(1)), Time: math.Inf(1)}
		for _, c := range e.choices[i] {
			e.rest[i].Energy, e.rest[i].Time = min(e.rest[i].Energy, c.sum.Energy),
				min(e.rest[i].Time, c.sum.Time)
		}
		e.rest[i] = added(e.rest[i], e.rest[i+1])
	}
	for range e.classes {
		e.used = append(e.used, make([]int, int(horizon)+2))
	}
	e.chosen = make([]placed, len(p.Tasks))
	return e
}

// added returns the energy and the time of two together.
func added(a, b dvfsmodel.Point) dvfsmodel.Point {
	return dvfsmodel.Point{Energy: a.Energy + b.Energy, Time: a.Time + b.Time}
}

// size is about how many plans there are to try.
func (e *exhaustive) size() float64 {
	plans := 1.0
	for i := range e.p.Tasks {
		mine := 0
		for n := range e.choices[i] {
			c := &e.choices[i][n]
			first, last := e.starts(i, c)
			mine += max(0, last-first+1) * cmp.Or(e.p.Cluster.Classes[c.class].Count, i+1)
		}
		plans *= float64(mine)
	}
	return plans
}

// starts returns the first and the last second at which a task can start.
func (e *exhaustive) starts(task int, c *choice) (first, last int) {
	t := &e.p.Tasks[task]
	first = int(max(t.Arrival, e.p.Cluster.Classes[c.class].TurnOnDelay))
	return first, int(min(float64(len(e.used[0])-1), e.due(t))) - c.seconds
}

// choicesOf returns all that a task can do within its limit, by the model at every setting.
func (e *exhaustive) choicesOf(t *planner.Task) (all []choice) {
	for class := range e.p.Cluster.Classes {
		k := &e.p.Cluster.Classes[class]
		o := t.Option(k.Model)
		if o < 0 {
			continue
		}
		option := &t.Options[o]
		points := []dvfsmodel.Point{option.Response.Default()}
		if _, fixed := option.Response.(*dvfsmodel.Fixed); !fixed {
			for _, at := range e.table.Points() {
				s := at.Scaling
				at.Time, at.Power = option.Response.Model().Time(s.Fc, s.Fm), option.Response.Model().Power(s)
				at.Energy = at.Power.Over(at.Time)
				points = append(points, at)
			}
		}
		for _, pt := range points {
			c := choice{
				class: class, option: o, gpus: option.PerNode(), nodes: option.NodeCount(), point: pt,
				seconds: int(math.Round(pt.Time)),
			}
			w := float64(option.GPUs)
			c.sum = dvfsmodel.Point{
				Energy: dvfsmodel.Joule(w) * (pt.Energy + k.HostW.Over(pt.Time)), Time: w * pt.Time,
			}
			if pt.Time <= t.Limit {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int {
		return cmp.Compare(e.objective.Cost(a.sum), e.objective.Cost(b.sum))
	})
	return all
}

// place tries all that tasks from this one on can do, those before it being placed.
func (e *exhaustive) place(task int, sum dvfsmodel.Point, waited float64) {
	if task == len(e.p.Tasks) {
		sum.Energy += e.others()
		if cost := e.objective.Cost(sum) + e.p.WaitWeight*waited; cost < e.best*(1-1e-12) {
			e.best, e.found = cost, slices.Clone(e.chosen)
		}
		return
	}
	for i := range e.choices[task] {
		c := &e.choices[task][i]
		if e.objective.Cost(added(added(sum, c.sum), e.rest[task+1]))+e.p.WaitWeight*waited >= e.best {
			continue
		}
		first, last := e.starts(task, c)
		for _, nodes := range e.nodeSets(c, task) {
			for start := first; start <= last; start++ {
				if !e.free(c, nodes, start) {
					continue
				}
				e.add(c, nodes, start, 1)
				e.chosen[task] = placed{c, nodes, start}
				wait := float64(c.gpus*c.nodes) * (float64(start) - e.p.Tasks[task].Arrival)
				e.place(task+1, added(sum, c.sum), waited+wait)
				e.add(c, nodes, start, -1)
			}
		}
	}
}

// nodeSets returns the sets of nodes for a choice: of those of a class on which nothing
// runs yet the first ones serve for all.
func (e *exhaustive) nodeSets(c *choice, task int) (sets [][]int) {
	touched := make([]bool, len(e.classes))
	for _, before := range e.chosen[:task] {
		for _, node := range before.nodes {
			touched[node] = true
		}
	}
	var grow func(from int, set []int, fresh bool)
	grow = func(from int, set []int, fresh bool) {
		if len(set) == c.nodes {
			sets = append(sets, slices.Clone(set))
			return
		}
		for node := from; node < len(e.classes); node++ {
			if e.classes[node] != c.class || c.gpus > e.p.Cluster.Classes[c.class].GPUs ||
				fresh && !touched[node] {
				continue
			}
			grow(node+1, append(set, node), fresh)
			fresh = fresh || !touched[node] // it is passed over, and so are all like it
		}
	}
	grow(0, nil, false)
	return sets
}

func (e *exhaustive) free(c *choice, nodes []int, start int) bool {
	for _, node := range nodes {
		for _, used := range e.used[node][start : start+c.seconds] {
			if used+c.gpus > e.p.Cluster.Classes[c.class].GPUs {
				return false
			}
		}
	}
	return true
}

func (e *exhaustive) add(c *choice, nodes []int, start, sign int) {
	for _, node := range nodes {
		for second := range c.seconds {
			e.used[node][start+second] += sign * c.gpus
		}
	}
}

// others returns the energy of idle GPUs, their hosts, switching on and sleep.
func (e *exhaustive) others() dvfsmodel.Joule {
	end, sum := 0, 0.0
	for node := range e.used {
		for second, used := range e.used[node] {
			if used > 0 {
				end = max(end, second+1)
			}
		}
	}
	for node := range e.used {
		joules, _ := e.node(node, end)
		sum += joules
	}
	return dvfsmodel.Joule(sum)
}

// node returns what a node takes beside its tasks, and when it is on: from before one run
// to the next, or off between them, whatever takes less.
func (e *exhaustive) node(node, end int) (joules float64, on []planner.Interval) {
	k := &e.p.Cluster.Classes[e.classes[node]]
	gpus, ready := float64(k.GPUs), k.TurnOnDelay
	idle := float64(k.IdleW + k.HostW)
	wake := idle * gpus * ready
	if e.p.Mode != planner.Offline || e.p.Cluster.OfflineTurnOn {
		wake += float64(k.TurnOn) * gpus
	}
	asleep, until := 0.0, 0.0 // seconds off, and when the node's last task so far ends
	for second, used := range e.used[node][:end] {
		if used == 0 {
			continue
		}
		at := float64(second)
		switch gap := at - until; {
		case on == nil, gap >= ready && wake+float64(k.SleepW)*(gap-ready) < idle*gpus*gap:
			joules += wake
			asleep += gap - ready
			on = append(on, planner.Interval{From: at - ready})
		default:
			joules += idle * gpus * gap
		}
		joules += idle * (gpus - float64(used))
		until = at + 1
		on[len(on)-1].To = until
	}
	if on == nil {
		return 0, nil
	}
	return joules + float64(k.SleepW)*(asleep+float64(end)-until), on
}

// plan returns the best that was found.
func (e *exhaustive) plan(tb testing.TB) *planner.Plan {
	tb.Helper()
	plan := &planner.Plan{Status: planner.Complete, Assignments: make([]planner.Assignment, len(e.p.Tasks))}
	end := 0
	for i, f := range e.found {
		e.add(f.choice, f.nodes, f.start, 1)
		end = max(end, f.start+f.choice.seconds)
		plan.Assignments[i] = planner.Assignment{
			Option: int32(f.choice.option), Start: float64(f.start),
			End: float64(f.start) + f.choice.point.Time, Point: f.choice.point,
		}
	}
	number := make([]int32, len(e.classes))
	for node := range e.classes {
		if _, on := e.node(node, end); on != nil {
			number[node] = int32(len(plan.Nodes))
			plan.Nodes = append(plan.Nodes, planner.PlannedNode{Class: e.classes[node], On: on})
		}
	}
	order := make([]int, len(e.found)) // GPUs are given by start: as few as are in use at once suffice then
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(e.found[a].start, e.found[b].start) })
	for n, i := range order {
		f := e.found[i]
		for part, node := range f.nodes {
			free := planner.GPUSet(1)<<uint(e.p.Cluster.Classes[f.choice.class].GPUs) - 1
			for _, j := range order[:n] {
				free &^= usedAt(&plan.Assignments[j], number[node], float64(f.start))
			}
			set := planner.GPUSet(0)
			for range f.choice.gpus {
				set |= free & -free
				free &= free - 1
			}
			if part == 0 {
				plan.Assignments[i].Node, plan.Assignments[i].GPUs = number[node], set
			} else {
				plan.Assignments[i].More = append(plan.Assignments[i].More, planner.Part{
					Node: number[node], GPUs: set,
				})
			}
		}
		e.add(f.choice, f.nodes, f.start, -1)
	}
	plan.Ledger = planner.Account(e.p, plan)
	return plan
}

// usedAt returns the GPUs of a node that a task still has at a moment.
func usedAt(a *planner.Assignment, node int32, at float64) (gpus planner.GPUSet) {
	for part := range a.Parts {
		if part.Node == node && a.End > at {
			gpus |= part.GPUs
		}
	}
	return gpus
}

// wholeSeconds returns a table by which a model with D of 2 or 4 and delta of 0.5 or 1 takes
// whole seconds.
func wholeSeconds(tb testing.TB) *dvfsmodel.Table {
	tb.Helper()
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1200, Mem: 5000}, []dvfsmodel.Setting{
		{Core: 1200, Mem: 5000}, {Core: 600, Mem: 5000}, {Core: 400, Mem: 5000}, {Core: 600, Mem: 2500},
	}, func(fc float64) dvfsmodel.Volt { return dvfsmodel.Volt(.5 + .5*fc) })
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// drawSmall returns a problem that exhaustive can solve: one to four tasks of one to four
// GPUs, some on two nodes, on one or two GPU models, with limits, due times, deadlines.
func drawSmall(r *rand.Rand, table *dvfsmodel.Table) *planner.Problem {
	one := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	p := &planner.Problem{Mode: planner.Mode(r.IntN(3))}
	p.Cluster.OfflineTurnOn = r.IntN(2) == 0
	for _, model := range []string{"A", "B"}[:1+r.IntN(2)] {
		p.Cluster.Classes = append(p.Cluster.Classes, planner.NodeClass{
			Name: model, Model: model, Count: r.IntN(3), GPUs: 1 + r.IntN(3),
			IdleW: dvfsmodel.Watt(one(0, 10, 40)), HostW: dvfsmodel.Watt(one(0, 15, 60)),
			SleepW: dvfsmodel.Watt(one(0, 5)),
			TurnOn: dvfsmodel.Joule(one(0, 40, 200)), TurnOnDelay: one(0, 1, 2),
		})
	}
	for range 1 + r.IntN(4) {
		t := planner.NewTask(fmt.Sprint("t", len(p.Tasks)))
		longest := drawOptions(r, table, p.Cluster.Classes, &t)
		if len(t.Options) == 0 {
			continue
		}
		if p.Mode != planner.Offline {
			t.Arrival = float64(r.IntN(6))
		}
		if r.IntN(3) == 0 {
			t.Limit = longest * one(1, 1.5, 2)
		}
		if r.IntN(4) > 0 {
			t.Due = t.Arrival + 2 + math.Floor(longest*(1+2*r.Float64()))
			if t.Deadline = t.Due + float64(r.IntN(3)); r.IntN(2) == 0 {
				t.Deadline = math.Inf(1)
			}
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// drawOptions draws on which classes a task may run and how, and says how long it takes
// at default clocks at most.
func drawOptions(
	r *rand.Rand, table *dvfsmodel.Table, classes []planner.NodeClass, t *planner.Task,
) (longest float64) {
	one := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	gpus, nodes := 1+r.IntN(2), 1
	if r.IntN(5) == 0 {
		gpus, nodes = 2, 2
	}
	longest = 1
	for i := range classes {
		k := &classes[i]
		if k.GPUs < gpus/nodes || k.Count > 0 && k.Count < nodes ||
			i > 0 && len(t.Options) > 0 && r.IntN(4) == 0 {
			continue
		}
		params := dvfsmodel.Params{
			P0: dvfsmodel.Watt(20 + 80*r.Float64()), Gamma: dvfsmodel.Watt(40 * r.Float64()),
			C: dvfsmodel.Watt(20 + 180*r.Float64()),
			D: one(2, 4), Delta: one(.5, 1), T0: one(0, 1),
		}
		if params.Delta == .5 {
			params.D = 4
		}
		at := table.Nearest(1200, 5000)
		var response dvfsmodel.Response
		switch r.IntN(4) {
		case 0:
			response = &dvfsmodel.Fixed{At: params.At(dvfsmodel.DefaultScaling())}
		case 1:
			response = dvfsmodel.NewFrontier(params, table, at)
		default:
			response = &dvfsmodel.Discrete{Params: params, Table: table, At: at}
		}
		longest = max(longest, response.Default().Time)
		t.Options = append(t.Options, planner.Option{
			Model: k.Model, GPUs: gpus, Nodes: nodes, Response: response,
		})
	}
	return longest
}

// boundsOfSmall counts what was compared.
type boundsOfSmall struct {
	most                      float64 // plans of a problem to try; larger ones are left out
	solved, impossible, large int
	tasks                     [5]int      // problems solved, by their tasks
	gap                       float64     // sum over those solved, of plans that keep due times
	costGap                   [11]float64 // the same by objective
}

// compare holds the bounds of a drawn problem against exhaustive search.
func (b *boundsOfSmall) compare(tb testing.TB, seed uint64, table *dvfsmodel.Table) {
	tb.Helper()
	p := drawSmall(rand.New(rand.NewPCG(seed, 0)), table)
	if len(p.Tasks) == 0 || p.Validate() != nil {
		b.impossible++
		return
	}
	byDeadline := func(t *planner.Task) float64 { return t.Deadline }
	byDue := func(t *planner.Task) float64 { return min(t.Due, t.Deadline) }
	for n, c := range []struct {
		energy, time, wait float64
		delay              int
		due                func(*planner.Task) float64
	}{
		{1, 0, 0, 0, byDeadline},
		{1, 0, 0, 0, byDue},
		{1, 50, 0, 0, byDue},
		{0, 1, 0, 0, byDue},
		{.5, 400, 0, 0, byDue},
		{1, 50, 0, 0, byDeadline},
		{1, 0, 0, 1, byDue},
		{1, 0, 0, 2, byDue},
		{1, 100, 0, 1, byDeadline},
		{1, 0, 100, 0, byDue},
		{1, 20, 1000, 0, byDeadline},
	} {
		p.WaitWeight = c.wait
		p.Objective = dvfsmodel.Objective{EnergyWeight: c.energy, TimeWeight: c.time, DelayPower: c.delay}
		e := newExhaustive(p, table, p.Objective, c.due)
		if e.size() > b.most {
			b.large++
			return
		}
		e.place(0, dvfsmodel.Point{}, 0)
		if math.IsInf(e.best, 1) {
			b.impossible++
			return
		}
		plan := e.plan(tb)
		if err := check.Plan(p, plan); err != nil {
			tb.Fatalf("seed %d, case %d: what is to be the best plan isn't one: %v", seed, n, err)
		}
		if cost := p.Cost(plan); math.Abs(cost-e.best) > 1e-9*max(1, cost) {
			tb.Fatalf("seed %d, case %d: the plan costs %v, by the search %v", seed, n, cost, e.best)
		}
		energy, lower := float64(plan.Ledger.Total()), bound.Of(p, plan)
		name := fmt.Sprintf("seed %d, case %d", seed, n)
		if float64(lower.Value) > energy*(1+1e-9) {
			tb.Errorf("%s: bound %v J (%+v), the best plan takes %v J", name, lower.Value,
				lower.Terms, energy)
		}
		if lower.Cost > e.best*(1+1e-9) {
			tb.Errorf("%s: %v %s by the bound, the best plan costs %v", name, lower.Cost,
				p.CostUnit(), e.best)
		}
		b.costGap[n] += e.best/lower.Cost - 1
		if n == 1 {
			b.solved++
			b.tasks[len(p.Tasks)]++
			b.gap += lower.Gap(plan.Ledger.Total())
		}
	}
}

func TestNoBoundIsAboveTheBestPlanOfSmallProblems(t *testing.T) {
	b := boundsOfSmall{most: 1e6}
	table := wholeSeconds(t)
	for seed := range uint64(120) {
		b.compare(t, seed, table)
	}
	t.Logf("%d problems solved, %d can't be, %d are too large; %.2f %% between bound and best plan", b.solved,
		b.impossible, b.large, 100*b.gap/float64(b.solved))
	for _, gap := range b.costGap {
		t.Logf("%.2f %% by the objective", 100*gap/float64(b.solved))
	}
	if b.solved < 60 {
		t.Errorf("%d problems solved, want 60", b.solved)
	}
}

// BenchmarkBoundsOfSmallProblems holds the bounds of 1,000 problems against exhaustive
// search, those of the test not among them; see docs/performance.md.
func BenchmarkBoundsOfSmallProblems(b *testing.B) {
	var all boundsOfSmall
	table := wholeSeconds(b)
	for b.Loop() {
		all = boundsOfSmall{most: 2e7}
		for seed := uint64(1000); all.solved < 1000; seed++ {
			all.compare(b, seed, table)
		}
	}
	b.Logf("%d problems solved, by tasks %v; %d can't be, %d are too large", all.solved, all.tasks,
		all.impossible, all.large)
	b.ReportMetric(100*all.gap/float64(all.solved), "%gap")
}
