package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/tune"
)

// clockLadder is the clock pairs of a GPU model that are worth trying, by the time that
// tasks take at them, the shortest first: the default one, and those that no faster
// one beats in energy.
type clockLadder struct {
	model     string
	pairs     []dvfsmodel.Point
	defaultAt int // the default pair
	least     int // the one at which the tasks that may run there cost least
}

// clockLaddersOf returns the ladders of the GPU models that tasks may run on, by name.
func clockLaddersOf(p *planner.Problem) []clockLadder {
	var all []clockLadder
	for class := range p.Cluster.Classes {
		model := p.Cluster.Classes[class].Model
		if slices.ContainsFunc(all, func(l clockLadder) bool { return l.model == model }) {
			continue
		}
		if l := clockLadderOf(p, class); len(l.pairs) > 0 {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b clockLadder) int { return cmp.Compare(a.model, b.model) })
	return all
}

// maxScreened is how many tasks are added up to screen clock pairs.
const maxScreened = 500

// screenedPair is a clock pair with what the tasks take at it.
type screenedPair struct {
	at           dvfsmodel.Point
	time, energy float64 // GPU-seconds, and joules of GPUs
	normal       bool
}

// add adds what a task takes at the pair, or at its default clocks where it can't have that.
func (s *screenedPair) add(o *planner.Option) {
	pt, ok := dvfsmodel.PointAt(o.Response, s.at)
	if !ok {
		pt = o.Response.Default()
	}
	s.time += float64(o.GPUs) * pt.Time
	s.energy += float64(o.GPUs) * float64(pt.Energy)
}

// clockLadderOf screens the clock pairs of a class's GPU model by the sum over tasks, of
// many by a part of them.
func clockLadderOf(p *planner.Problem, class int) clockLadder {
	k := &p.Cluster.Classes[class]
	l := clockLadder{model: k.Model}
	options := optionsOn(p, k.Model)
	all := pairsOf(options)
	for i := range all {
		for _, o := range options {
			all[i].add(o)
		}
	}
	// A GPU that would idle otherwise costs only what a task draws beyond that.
	beyond := func(s *screenedPair) float64 { return s.energy - float64(k.IdleW)*s.time }
	slices.SortStableFunc(all, func(a, b screenedPair) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(beyond(&a), beyond(&b)))
	})
	price, lowest, cheapest := p.ClassObjective(class), math.Inf(1), math.Inf(1)
	for i := range all {
		s := &all[i]
		if !s.normal && beyond(s) >= lowest {
			continue
		}
		lowest = min(lowest, beyond(s))
		if cost := price.Cost(dvfsmodel.Point{Time: s.time, Energy: dvfsmodel.Joule(s.energy)}); cost <
			cheapest {
			cheapest, l.least = cost, len(l.pairs)
		}
		if s.normal {
			l.defaultAt = len(l.pairs)
		}
		l.pairs = append(l.pairs, s.at)
	}
	return l
}

// optionsOn are tasks' options on a GPU model whose clocks can be chosen, evenly
// spread where there are many.
func optionsOn(p *planner.Problem, model string) (options []*planner.Option) {
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if o := t.Option(model); o >= 0 && t.Share == 1 && t.Options[o].GPUs > 0 {
			options = append(options, &t.Options[o])
		}
	}
	if each := (len(options) + maxScreened - 1) / maxScreened; each > 1 {
		for i := range len(options) / each {
			options[i] = options[i*each]
		}
		options = options[:len(options)/each]
	}
	return options
}

// pairsOf returns the clock pairs that a GPU model supports, the default one among them:
// those of the first workload that tells.
func pairsOf(options []*planner.Option) (all []screenedPair) {
	var normal dvfsmodel.Point
	for i, o := range options {
		supported := dvfsmodel.SupportedPoints(o.Response)
		if i > 0 && len(supported) == 0 {
			continue
		}
		normal, all = o.Response.Default(), all[:0]
		for _, at := range supported {
			all = append(all, screenedPair{at: at, normal: at.Scaling == normal.Scaling && at.Cap == 0})
		}
		if len(supported) > 0 {
			break
		}
	}
	if len(options) > 0 && !slices.ContainsFunc(all, func(s screenedPair) bool { return s.normal }) {
		at := dvfsmodel.Point{Scaling: normal.Scaling, Core: normal.Core, Mem: normal.Mem}
		all = append(all, screenedPair{at: at, normal: true})
	}
	return all
}

// clocksAt returns the clock pairs at a rung of each ladder, by GPU model.
func clocksAt(ladders []clockLadder, rungs []int) map[string]dvfsmodel.Point {
	clocks := make(map[string]dvfsmodel.Point, len(ladders))
	for i := range ladders {
		clocks[ladders[i].model] = ladders[i].pairs[rungs[i]]
	}
	return clocks
}

// cheapestPairs sets the clock pairs at which tasks cost least, each GPU model by
// itself.
func cheapestPairs(p *planner.Problem) planner.Tuner {
	ladders := clockLaddersOf(p)
	rungs := make([]int, len(ladders))
	for i := range ladders {
		rungs[i] = ladders[i].least
	}
	return tune.Constant(clocksAt(ladders, rungs))(p)
}

// learnedPairs sets the clock pairs, each GPU model by itself, at which the tasks would have cost least that
// arrived before: constant clocks as a site can find them that doesn't know what is to come. Until anything
// has arrived they are the default ones.
func learnedPairs(p *planner.Problem) planner.Tuner {
	ladders := make([]pairSums, 0, len(p.Cluster.Classes))
	for class := range p.Cluster.Classes {
		model := p.Cluster.Classes[class].Model
		if slices.ContainsFunc(ladders, func(l pairSums) bool { return l.model == model }) {
			continue
		}
		if all := pairsOf(optionsOn(p, model)); len(all) > 0 {
			ladders = append(ladders, pairSums{model, p.ClassObjective(class), all})
		}
	}
	order := make([]int, len(p.Tasks))
	for i := range order {
		order[i] = i
	}
	planner.SortByKey(order, func(i int) float64 { return p.Tasks[i].Arrival })
	clocks := make([]map[string]dvfsmodel.Point, len(p.Tasks))
	for from := 0; from < len(order); {
		until, now := from, make(map[string]dvfsmodel.Point, len(ladders))
		for i := range ladders {
			now[ladders[i].model] = ladders[i].cheapest()
		}
		for ; until < len(order) && p.Tasks[order[until]].Arrival == p.Tasks[order[from]].Arrival; until++ {
			clocks[order[until]] = now
		}
		for _, i := range order[from:until] {
			for k := range ladders {
				ladders[k].add(&p.Tasks[i])
			}
		}
		from = until
	}
	return tune.ConstantByTask(p, clocks)
}

// pairSums is what tasks take at each clock pair of a GPU model.
type pairSums struct {
	model string
	price dvfsmodel.Objective
	pairs []screenedPair
}

func (s *pairSums) add(t *planner.Task) {
	o := t.Option(s.model)
	if o < 0 || t.Share < 1 {
		return
	}
	for i := range s.pairs {
		s.pairs[i].add(&t.Options[o])
	}
}

// cheapest returns the pair at which the tasks so far cost least, of equal ones the default one.
func (s *pairSums) cheapest() dvfsmodel.Point {
	best, least := 0, math.Inf(1)
	for i := range s.pairs {
		pair := &s.pairs[i]
		cost := s.price.Cost(dvfsmodel.Point{Time: pair.time, Energy: dvfsmodel.Joule(pair.energy)})
		if cost < least || cost == least && pair.normal {
			best, least = i, cost
		}
	}
	return s.pairs[best].at
}
