package policy

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// Constant is the policy with one clock pair per GPU model for all tasks: what
// `nvidia-smi -lgc` on every node comes to at best.
const Constant = "constant"

// constantClocks is [Constant]. Its own stages are those of first come, first served;
// what is looked for is looked for by Improve.
func constantClocks(q Params) planner.Policy {
	own := planner.Policy{Tune: byThemselves, Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{Rho: q.Rho}, Map: true}
	search := &constant{placed: []improve.Start{{Policy: own}}}
	search.placed[0].Name = "baseline"
	add := func(name string, most int, change func(*planner.Policy)) {
		other := own
		other.Name = name
		change(&other)
		search.placed = append(search.placed, improve.Start{Policy: other, Most: most})
	}
	add("marginal", 0, func(p *planner.Policy) { p.Place, p.Pick, p.Map = place.Marginal, pick.EDF, false })
	add("edl", 0, func(p *planner.Policy) { p.Place, p.Pick = place.Lightest, pick.DeadlineFirst })
	add("edl,place=latest", 0, func(p *planner.Policy) { p.Place, p.Pick = place.With(place.LatestRule{}), pick.DeadlineFirst })
	add("easy", quickQueue, func(p *planner.Policy) { p.Place, p.Pick, p.Map = place.AtOnce, q.Queue.Easy.New, false })
	own.Improve, own.Hindsight = search, true
	return own
}

// constant looks for the clock pairs, one for each GPU model, with the best plan: the
// fewest tasks left out, then the fewest that end after their due times, then the
// fewest missed deadlines, then the least [planner.Problem.Cost]. It places the tasks
// at each choice in several ways, and keeps the best.
//
// It begins with the default pairs and with those that cost the tasks least, each GPU
// model by itself, and goes on by coordinate descent: along the pairs of one GPU model
// after the other, and of all together, in steps that halve.
type constant struct {
	placed []improve.Start
}

// exchange has all tasks placed in one way, with the stages of a policy string, or in
// several ones where it names none.
func (c *constant) exchange(p *planner.Policy, given map[string]string) {
	if given["pick"] != "" || given["place"] != "" {
		c.placed = []improve.Start{{Policy: *p}} // without a name: the plan is the policy's own
	}
	for i := range c.placed {
		c.placed[i].Park = p.Park
	}
}

// constantIn is the search for constant clocks of an Improver; nil: it is another one.
func constantIn(i planner.Improver) *constant {
	switch i := i.(type) {
	case *constant:
		return i
	case improve.AtDefault:
		return constantIn(i.Then)
	}
	return nil
}

// Improve is [planner.Improver].
func (c *constant) Improve(ctx context.Context, p *planner.Problem, plan *planner.Plan, _ *rand.Rand) (*planner.Plan, error) {
	s := &clockSearch{problem: p, ladders: laddersOf(p), left: placementsFor(len(p.Tasks)), tried: make(map[string]bool)}
	for i := range c.placed {
		if most := c.placed[i].Most; most == 0 || len(p.Tasks) <= most {
			s.placed = append(s.placed, &c.placed[i].Policy)
		}
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	best := s.best.plan
	best.Policy = plan.Policy
	return best, nil
}

// How many placements the search for constant clocks tries: fewer for large batches,
// each of whose placements takes longer.
const (
	placedTasks    = 150_000 // tasks, by all placements together
	mostPlacements = 160
	lowPlacements  = 16
)

// placementsFor is how many placements are tried of a batch.
func placementsFor(tasks int) int { return min(max(placedTasks/max(1, tasks), lowPlacements), mostPlacements) }

// clockSearch is a search for constant clocks under way.
type clockSearch struct {
	problem *planner.Problem
	ladders []ladder
	placed  []*planner.Policy // ways to place the tasks, the best ones first
	left    int               // placements that may still be tried
	tried   map[string]bool   // rungs and ways
	best    trial
}

// trial is a choice of clock pairs, with the best of its plans.
type trial struct {
	rungs []int // by ladder
	plan  *planner.Plan
	worth worth
}

// worth is what plans with constant clocks are chosen by: less is better.
type worth struct {
	unplaced, late, misses int
	cost                   float64
}

func worthOf(p *planner.Problem, plan *planner.Plan) worth {
	return worth{len(plan.Unplaced), len(plan.PastDue(p)), len(plan.Misses), p.Cost(plan)}
}

func (a worth) compare(b worth) int {
	return cmp.Or(cmp.Compare(a.unplaced, b.unplaced), cmp.Compare(a.late, b.late), cmp.Compare(a.misses, b.misses), cmp.Compare(a.cost, b.cost))
}

// best two ways to place are good enough on the way.
const waysOnTheWay = 2

// run searches. All ways to place the tasks are tried at the first and at the last
// choice, the best two in between.
func (s *clockSearch) run(ctx context.Context) error {
	start, normal := make([]int, len(s.ladders)), make([]int, len(s.ladders))
	for i := range s.ladders {
		start[i], normal[i] = s.ladders[i].least, s.ladders[i].normal
	}
	if err := s.rank(ctx, start); err != nil {
		return err
	}
	all := s.placed
	s.placed = all[:min(len(all), waysOnTheWay)]
	if _, err := s.try(ctx, normal); err != nil {
		return err
	}
	if err := s.descend(ctx); err != nil {
		return err
	}
	s.placed = all
	s.left += len(all)
	_, err := s.try(ctx, s.best.rungs)
	return err
}

// rank tries all ways to place the tasks at a choice, and puts the best ones first.
func (s *clockSearch) rank(ctx context.Context, rungs []int) error {
	type ranked struct {
		way   *planner.Policy
		worth worth
	}
	all := make([]ranked, len(s.placed))
	for i, way := range s.placed {
		plan, err := s.place(ctx, rungs, way)
		if err != nil {
			return err
		}
		all[i] = ranked{way, worthOf(s.problem, plan)}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return a.worth.compare(b.worth) })
	for i := range all {
		s.placed[i] = all[i].way
	}
	return nil
}

// try places the tasks at a choice, and tells whether that is the best so far. Choices
// that were tried, or come after the last placement, aren't.
func (s *clockSearch) try(ctx context.Context, rungs []int) (better bool, err error) {
	before := s.best.plan
	for _, way := range s.placed {
		if key := fmt.Sprint(rungs, way.Name); s.left > 0 && !s.tried[key] {
			if _, err := s.place(ctx, rungs, way); err != nil {
				return false, err
			}
		}
	}
	return s.best.plan != before, nil
}

// place places the tasks at a choice in one way.
func (s *clockSearch) place(ctx context.Context, rungs []int, way *planner.Policy) (*planner.Plan, error) {
	s.tried[fmt.Sprint(rungs, way.Name)] = true
	s.left--
	clocks := make(map[string]dvfsmodel.Point, len(s.ladders))
	for i := range s.ladders {
		clocks[s.ladders[i].model] = s.ladders[i].rungs[rungs[i]]
	}
	at := *way
	at.Tune = tune.Constant(clocks)
	plan, err := planner.Solve(ctx, s.problem, &at, &planner.Options{NoImprove: true})
	if err != nil {
		return nil, err
	}
	plan.Clocks, plan.From = clocks, way.Name
	if w := worthOf(s.problem, plan); s.best.plan == nil || w.compare(s.best.worth) < 0 {
		s.best = trial{slices.Clone(rungs), plan, w}
	}
	return plan, nil
}

// descend goes along one ladder after the other, and along all together, until none
// leads to a better plan.
func (s *clockSearch) descend(ctx context.Context) error {
	all := make([]int, len(s.ladders))
	for i := range all {
		all[i] = i
	}
	lines := make([][]int, 0, len(all)+1)
	for i := range all {
		lines = append(lines, all[i:i+1])
	}
	if len(all) > 1 {
		lines = append(lines, all)
	}
	for improved := true; improved && s.left > 0; {
		improved = false
		for _, line := range lines {
			better, err := s.along(ctx, line)
			if err != nil {
				return err
			}
			improved = improved || better
		}
	}
	return nil
}

// firstSteps is into how many steps a ladder is divided at first.
const firstSteps = 8

// along goes along some ladders, in steps that are parts of each: in the direction in
// which plans get better, and in shorter steps where neither does.
func (s *clockSearch) along(ctx context.Context, line []int) (better bool, err error) {
	for steps := firstSteps; s.left > 0; steps *= 2 {
		for moved := true; moved; {
			moved = false
			for _, sign := range [...]int{-1, 1} {
				at := slices.Clone(s.best.rungs)
				for _, i := range line {
					last := len(s.ladders[i].rungs) - 1
					at[i] = min(max(0, at[i]+sign*max(1, last/steps)), last)
				}
				if moved, err = s.try(ctx, at); moved || err != nil {
					break
				}
			}
			if err != nil {
				return false, err
			}
			better = better || moved
		}
		if !slices.ContainsFunc(line, func(i int) bool { return len(s.ladders[i].rungs) > steps }) {
			return better, nil
		}
	}
	return better, nil
}

// ladder is the clock pairs of a GPU model that are worth trying, by the time that
// tasks take at them, the shortest first: the default one, and those that no faster
// one beats in energy.
type ladder struct {
	model  string
	rungs  []dvfsmodel.Point
	normal int // the default pair
	least  int // the one at which the tasks that may run there cost least
}

// laddersOf are the ladders of the GPU models that tasks may run on, by name.
func laddersOf(p *planner.Problem) []ladder {
	var all []ladder
	for class := range p.Cluster.Classes {
		model := p.Cluster.Classes[class].Model
		if slices.ContainsFunc(all, func(l ladder) bool { return l.model == model }) {
			continue
		}
		if l := ladderOf(p, class); len(l.rungs) > 0 {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b ladder) int { return cmp.Compare(a.model, b.model) })
	return all
}

// mostScreened is how many tasks are added up to screen clock pairs.
const mostScreened = 500

// screened is a clock pair with what the tasks take at it.
type screened struct {
	at           dvfsmodel.Point
	time, energy float64 // GPU-seconds, and joules of GPUs
	normal       bool
}

// ladderOf screens the clock pairs of a class's GPU model by the sum over tasks, of
// many by a part of them.
func ladderOf(p *planner.Problem, class int) ladder {
	k := &p.Cluster.Classes[class]
	l := ladder{model: k.Model}
	options := optionsOn(p, k.Model)
	all := pairsOf(options)
	for i := range all {
		for _, o := range options {
			pt, ok := dvfsmodel.PointAt(o.Response, all[i].at)
			if !ok {
				pt = o.Response.Default()
			}
			all[i].time += float64(o.GPUs) * pt.Time
			all[i].energy += float64(o.GPUs) * float64(pt.Energy)
		}
	}
	// A GPU that would idle otherwise costs only what a task draws beyond that.
	beyond := func(s *screened) float64 { return s.energy - float64(k.IdleW)*s.time }
	slices.SortStableFunc(all, func(a, b screened) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(beyond(&a), beyond(&b)))
	})
	price, lowest, cheapest := p.Price(class), math.Inf(1), math.Inf(1)
	for i := range all {
		s := &all[i]
		if !s.normal && beyond(s) >= lowest {
			continue
		}
		lowest = min(lowest, beyond(s))
		if cost := price.Cost(dvfsmodel.Point{Time: s.time, Energy: dvfsmodel.Joule(s.energy)}); cost < cheapest {
			cheapest, l.least = cost, len(l.rungs)
		}
		if s.normal {
			l.normal = len(l.rungs)
		}
		l.rungs = append(l.rungs, s.at)
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
	if each := (len(options) + mostScreened - 1) / mostScreened; each > 1 {
		for i := range len(options) / each {
			options[i] = options[i*each]
		}
		options = options[:len(options)/each]
	}
	return options
}

// pairsOf are the clock pairs that a GPU model supports, the default one among them:
// those of the first workload that tells.
func pairsOf(options []*planner.Option) (all []screened) {
	var normal dvfsmodel.Point
	for i, o := range options {
		supported := dvfsmodel.Supported(o.Response)
		if i > 0 && len(supported) == 0 {
			continue
		}
		normal, all = o.Response.Default(), all[:0]
		for _, at := range supported {
			all = append(all, screened{at: at, normal: at.Setting == normal.Setting})
		}
		if len(supported) > 0 {
			break
		}
	}
	if len(options) > 0 && !slices.ContainsFunc(all, func(s screened) bool { return s.normal }) {
		at := dvfsmodel.Point{Setting: normal.Setting, Core: normal.Core, Mem: normal.Mem}
		all = append(all, screened{at: at, normal: true})
	}
	return all
}

// byThemselves sets the clock pairs at which tasks cost least, each GPU model by
// itself: where the search for constant clocks begins.
func byThemselves(p *planner.Problem) planner.Tuner {
	ladders := laddersOf(p)
	clocks := make(map[string]dvfsmodel.Point, len(ladders))
	for i := range ladders {
		clocks[ladders[i].model] = ladders[i].rungs[ladders[i].least]
	}
	return tune.Constant(clocks)(p)
}
