package consolidate

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// rounding is the relative error allowed for in every comparison of sums of
// watts and overloads that decides what is proven.
const rounding = 1e-9

// piece is a task's part on one of its GPUs. Pieces of one task may not share
// a GPU.
type piece struct {
	task  int
	memGB float64
	load  []float64 // by slot, GPUs; empty where the problem doesn't count contention
	mean  float64   // of the load over the slots
	kappa int       // class of what the task allows, see packing.tiers
}

// clockTier is a frequency that a GPU may have to run at.
type clockTier struct {
	mhz      dvfsmodel.MHz
	watts    float64
	stretch  float64
	overload float64 // the most at which the tier is fast enough
}

// packing is a consolidation problem in terms of groups: sets of pieces that
// share a GPU. What a group takes depends on the group alone, by the least
// kappa and the overload of its pieces; what the servers take depends on how
// many groups need how large a GPU alone, see [serverKnapsack].
type packing struct {
	in      *sharing.Instance
	problem share.Problem
	slots   int
	pieces  []piece
	kappas  []float64     // ascending
	tiers   [][]clockTier // by class of kappa, ascending; those that an overload of 1 needs at least
	hosts   *serverKnapsack
	curve   *sharing.Curve // of contention; nil: load alone slows tasks down
	step    float64        // watts between groups of one GPU each differ by multiples of it; 0: by anything
	base    float64        // watts of the cheapest tier of all
}

// newPacking returns an instance in terms of groups; see [newServerKnapsack] for hopeful. It
// is false where there are too few GPUs for a task, or no frequency keeps its
// SLA, even alone.
func newPacking(in *sharing.Instance, problem share.Problem, hopeful bool) (*packing, bool) {
	p := &packing{in: in, problem: problem, curve: share.CurveOf(in, problem)}
	if problem == share.Safe {
		p.slots = in.Slots()
	}
	for _, t := range in.Tasks {
		p.kappas = append(p.kappas, t.Kappa)
	}
	slices.Sort(p.kappas)
	p.kappas = slices.Compact(p.kappas)
	for _, kappa := range p.kappas {
		tiers := clockTiersFor(&in.Physics, kappa)
		if problem == share.AsPrinted && len(tiers) > 0 {
			tiers = tiers[:1]
		}
		p.tiers = append(p.tiers, tiers)
	}
	for t := range in.Tasks {
		for range in.Tasks[t].GPUs {
			p.pieces = append(p.pieces, p.newPiece(t))
		}
	}
	p.hosts = newServerKnapsack(in, len(p.pieces), hopeful)
	p.findPowerStep()
	for i := range p.pieces {
		if len(p.tiers[p.pieces[i].kappa]) == 0 {
			return p, false
		}
		if _, ok := p.cost([]int{i}); !ok || !p.hasEnoughGPUs(&in.Tasks[p.pieces[i].task]) {
			return p, false
		}
	}
	return p, true
}

// hasEnoughGPUs reports whether there are GPUs for all pieces of a task.
func (p *packing) hasEnoughGPUs(t *sharing.Task) bool {
	n := 0
	for _, g := range p.in.GPUs() {
		if t.MemGB <= g.MemGB+sharing.SlackGB {
			n++
		}
	}
	return n >= t.GPUs
}

func (p *packing) newPiece(task int) piece {
	t := &p.in.Tasks[task]
	out := piece{task: task, memGB: t.MemGB}
	out.kappa, _ = slices.BinarySearch(p.kappas, t.Kappa)
	if p.slots > 0 {
		out.load = make([]float64, p.slots)
		for s, u := range t.UtilPct {
			out.load[s] = u / 100
		}
		out.mean = sharing.MeanPct(out.load)
	}
	return out
}

// clockTiersFor lists the frequencies that keep a kappa at some overload.
func clockTiersFor(physics *sharing.Physics, kappa float64) []clockTier {
	var tiers []clockTier
	for _, mhz := range physics.LevelsMHz {
		stretch := physics.Stretch(mhz)
		if stretch <= kappa+sharing.Tolerance {
			tiers = append(tiers, clockTier{
				mhz: mhz, watts: physics.PowerAt(mhz), stretch: stretch,
				overload: (kappa + sharing.Tolerance) / stretch * (1 + 1e-13),
			})
		}
	}
	return tiers
}

// findPowerStep finds the step by which the watts of groups differ.
func (p *packing) findPowerStep() {
	var watts []float64
	for _, tiers := range p.tiers {
		for _, t := range tiers {
			watts = append(watts, t.watts)
		}
	}
	if len(watts) == 0 {
		return
	}
	slices.Sort(watts)
	p.base = watts[0]
	if p.base == watts[len(watts)-1] {
		p.step = math.Inf(1) // every group takes the same
		return
	}
	p.step = watts[len(watts)-1] - p.base
	for i, w := range watts[1:] {
		if d := w - watts[i]; d > 1e-6 {
			p.step = min(p.step, d)
		}
	}
	for _, w := range watts {
		if k := (w - p.base) / p.step; math.Abs(k-math.Round(k)) > 1e-9 {
			p.step = 0
			return
		}
	}
}

// lowestTier returns the place of the lowest tier that carries an overload; -1: none does.
func (p *packing) lowestTier(kappa int, overload float64) int {
	for k := range p.tiers[kappa] {
		if overload <= p.tiers[kappa][k].overload {
			return k
		}
	}
	return -1
}

// group is a set of pieces and what it comes to.
type group struct {
	pieces []int
	load   []float64
	memGB  float64
	kappa  int
	class  int     // of memory, see hosts.sizes
	over   float64 // how many times as long as alone it takes at f_max
	watts  float64
}

// overload returns the mean over slots of what exceeds the slot.
func overload(load []float64) float64 {
	if len(load) == 0 {
		return 1
	}
	sum := 0.0
	for _, u := range load {
		sum += max(1, u)
	}
	return sum / float64(len(load))
}

// setPieces makes the group one of those pieces, on the smallest GPU on which they
// keep what their tasks allow; from a class on, where larger ones are faster.
// It is false where there is none.
func (g *group) setPieces(p *packing, pieces []int, least int) bool {
	g.pieces = append(g.pieces[:0], pieces...)
	if len(g.load) != p.slots {
		g.load = make([]float64, p.slots)
	}
	clear(g.load)
	g.memGB, g.kappa = 0, len(p.kappas)-1
	for _, i := range pieces {
		g.memGB += p.pieces[i].memGB
		g.kappa = min(g.kappa, p.pieces[i].kappa)
		for s, u := range p.pieces[i].load {
			g.load[s] += u
		}
	}
	return g.setPrice(p, least)
}

// cost returns what a GPU takes for some pieces; false where they can't share one.
func (p *packing) cost(pieces []int) (watts float64, ok bool) {
	var g group
	ok = g.setPieces(p, pieces, 0)
	return g.watts, ok
}

// mostW is more than one group more or one bundle less can be worth.
func (p *packing) mostW() float64 {
	most := 1.0
	for _, tiers := range p.tiers {
		most = max(most, tiers[len(tiers)-1].watts)
	}
	host := 0.0
	for i := range p.in.Servers {
		host = max(host, p.in.Servers[i].HostW())
	}
	return 4 * (most + host)
}

func (p *packing) sameTask(i, j int) bool { return p.pieces[i].task == p.pieces[j].task }

// total returns what groups take together, with the cheapest servers for them.
func (p *packing) total(groups []group) float64 {
	sum := 0.0
	need := make([]int, len(p.hosts.sizes))
	for i := range groups {
		sum += groups[i].watts
		need[groups[i].class]++
	}
	return sum + p.hosts.watts(need)
}

// roundUpBound returns the least that an answer of so many groups can take, given that it
// takes at least a bound and what its servers take.
func (p *packing) roundUpBound(bound, hostW float64, groups int) float64 {
	floor := hostW + p.base*float64(groups)
	slack := rounding * (1 + math.Abs(bound))
	switch {
	case p.step == 0:
		return max(floor, bound-slack)
	case math.IsInf(p.step, 1):
		if bound-slack > floor {
			return math.Inf(1)
		}
		return floor
	default:
		steps := math.Ceil((bound-slack-floor)/p.step - rounding)
		return floor + p.step*max(0, steps)
	}
}

// placement puts groups on GPUs and the GPUs to their frequencies.
func (p *packing) placement(groups []group) share.Placement {
	place := share.Placement{GPUs: make([][]int, len(p.in.Tasks)), MHz: make([]dvfsmodel.MHz, len(p.in.GPUs()))}
	need := make([]int, len(p.hosts.sizes))
	order := make([]int, len(groups))
	for i := range groups {
		need[groups[i].class]++
		order[i] = i
	}
	free := p.hosts.gpusToWake(need)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(groups[b].class, groups[a].class),
			cmp.Compare(groups[a].pieces[0], groups[b].pieces[0]))
	})
	for _, i := range order {
		g := &groups[i]
		k := g.class
		for len(free[k]) == 0 {
			k++
		}
		gpu := free[k][0]
		free[k] = free[k][1:]
		t := p.tiers[g.kappa][p.lowestTier(g.kappa, g.over)]
		place.MHz[gpu] = t.mhz
		for _, j := range g.pieces {
			task := p.pieces[j].task
			place.GPUs[task] = append(place.GPUs[task], gpu)
		}
	}
	for t := range place.GPUs {
		slices.Sort(place.GPUs[t])
	}
	return place
}

// groupsOf returns a placement in terms of groups; false where it isn't an answer.
func (p *packing) groupsOf(place share.Placement) ([]group, bool) {
	if len(place.GPUs) != len(p.in.Tasks) {
		return nil, false
	}
	on := make([][]int, len(p.in.GPUs()))
	i := 0
	for t := range p.in.Tasks {
		gpus := slices.Compact(slices.Sorted(slices.Values(place.GPUs[t])))
		if len(gpus) != p.in.Tasks[t].GPUs {
			return nil, false
		}
		for _, g := range gpus {
			if g < 0 || g >= len(on) {
				return nil, false
			}
			on[g] = append(on[g], i)
			i++
		}
	}
	var groups []group
	for i, gpu := range p.in.GPUs() {
		pieces, least := on[i], 0
		if len(pieces) == 0 {
			continue
		}
		if p.sizeMatters() {
			least = p.hosts.classOfGPU(gpu.MemGB)
		}
		var g group
		if least < 0 || !g.setPieces(p, pieces, least) {
			return nil, false
		}
		groups = append(groups, g)
	}
	return groups, !math.IsInf(p.total(groups), 1)
}

// A curve of contention makes a group slower than its load does: by the
// exponent, by how many pieces there are, and by how full the GPU's memory is.
// So a group may be faster on a larger GPU than the smallest that has its
// memory, and take a lower frequency there: it is of a class of GPU by choice.
// What holds by load alone stays a bound, as a curve takes no less time.

// sizeMatters reports whether a group may be faster on a larger GPU.
func (p *packing) sizeMatters() bool { return p.curve != nil && p.curve.ByMemory > 0 }

// work returns how many slots a slot of some load takes on average, GPUs by slot.
func (p *packing) work(load []float64) float64 {
	if p.curve == nil || len(load) == 0 {
		return overload(load)
	}
	sum := 0.0
	for _, u := range load {
		sum += p.curve.Work(u)
	}
	return sum / float64(len(load))
}

// workWith returns the work of two loads together.
func (p *packing) workWith(load, more []float64) float64 {
	if len(more) == 0 {
		return 1
	}
	sum := 0.0
	if p.curve == nil {
		for k, u := range more {
			sum += max(1, load[k]+u)
		}
	} else {
		for k, u := range more {
			sum += p.curve.Work(load[k] + u)
		}
	}
	return sum / float64(len(more))
}

// interference returns what so many pieces cost each other beside their work on a GPU of a
// class.
func (p *packing) interference(pieces int, memGB float64, class int) float64 {
	if p.curve == nil {
		return 1
	}
	return p.curve.OverheadFactor(&sharing.Occupancy{
		Tasks: pieces, Memory: min(1, memGB/p.hosts.sizes[class]),
	})
}

// setPrice is what the group takes on the smallest GPU from a class on that keeps
// what its tasks allow; false where none does.
func (g *group) setPrice(p *packing, least int) bool {
	work := p.work(g.load)
	g.class = p.hosts.smallestClass(g.memGB)
	if p.sizeMatters() && g.class >= 0 {
		g.class = max(g.class, least)
	}
	for g.class >= 0 && g.class < len(p.hosts.sizes) {
		g.over = work * p.interference(len(g.pieces), g.memGB, g.class)
		if k := p.lowestTier(g.kappa, g.over); k >= 0 {
			g.watts = p.tiers[g.kappa][k].watts
			return true
		}
		if !p.sizeMatters() {
			return false
		}
		g.class++
	}
	return false
}
