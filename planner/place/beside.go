package place

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/consolidate"
	"github.com/epplan/epplan/planner/sharing"
)

// Beside starts tasks with profiles at once on GPUs that they may share, as a
// rule of consolidation chooses, or leaves them waiting until a task ends. Tasks
// without a profile get GPUs for themselves, and so does everybody where no GPU
// may be shared: see [AtOnce].
type Beside struct {
	Rule consolidate.Rule
	// Make is a rule of one run, instead of Rule, that looks at more than loads.
	Make func(*planner.View) consolidate.Rule
	// Keep leaves a task waiting rather than let it, or who is there already, be
	// slowed down more than they tolerate, contention counted.
	Keep bool
}

// New is the Place stage of one run.
func (b Beside) New(v *planner.View) planner.Placer {
	state := v.Shared()
	if state == nil {
		return AtOnce(v)
	}
	if b.Make != nil {
		b.Rule = b.Make(v)
	}
	return &beside{
		atOnce: atOnce{opening: opening{v}, unshared: true}, how: b, state: state,
		used: make([]hostUse, len(state.Instance().Servers)),
	}
}

type beside struct {
	atOnce // for nodes whose GPUs are nobody's but one task's
	how    Beside
	state  *sharing.State
	used   []hostUse // by node
	sum    []float64 // buffer
}

// hostUse is what the tasks of a node hold beside GPUs.
type hostUse struct{ cpus, mem float64 }

// shared tells whether a node is one of those whose GPUs may be shared.
func (p *beside) shared(node int) bool { return node < len(p.used) }

func (p *beside) Opened(node int) {
	if !p.shared(node) {
		p.atOnce.Opened(node)
	}
}

func (p *beside) Closed(node int) {
	if !p.shared(node) {
		p.atOnce.Closed(node)
		return
	}
	p.used[node] = hostUse{}
}

func (p *beside) Committed(task int, a *planner.Assignment) { p.take(task, a, 1) }

// Finished gives back what a task held.
func (p *beside) Finished(task int, a *planner.Assignment) { p.take(task, a, -1) }

// take takes what a task holds from its nodes' room, or with sign -1 gives it back.
func (p *beside) take(task int, a *planner.Assignment, sign float64) {
	t, nodes := &p.v.Problem.Tasks[task], float64(1+len(a.More))
	for part := range a.Parts {
		if !p.shared(int(part.Node)) {
			p.takePart(&p.rooms[part.Node], t, part.GPUs, sign, nodes)
			continue
		}
		p.used[part.Node].cpus += sign * t.CPUs / nodes
		p.used[part.Node].mem += sign * t.MemGiB / nodes
	}
}

// has is [rooms.has].
func (p *beside) has(task, node, option int) (set planner.GPUSet, free int, ok bool) {
	if !p.shared(node) {
		return p.atOnce.has(task, node, option)
	}
	left := p.unused(node)
	return lowest(left, p.v.Problem.Tasks[task].Options[option].PerNode()), left.Len(), p.room(task, node, p.used[node]) &&
		left.Len() >= p.v.Problem.Tasks[task].Options[option].PerNode()
}

func (p *beside) Place(task int) (planner.Placement, planner.Verdict) {
	if p.gangs(task) {
		return p.gangNow(task, p)
	}
	alone, find := p.v.Problem.Tasks[task].Profile == nil, p.choose
	if alone {
		find = p.empty
	}
	if node, gpus, ok := find(task); ok {
		return p.placement(task, node, gpus, !alone), planner.Start
	}
	pl, verdict := p.atOnce.Place(task)
	if verdict == planner.Reject && p.mayCome(task) {
		verdict = planner.Wait
	}
	return pl, verdict
}

// mayCome tells whether a task may find room among shared GPUs once others have
// ended.
func (p *beside) mayCome(task int) bool {
	suits, busy := false, false
	for node := range p.used {
		suits = suits || p.suits(task, node)
		busy = busy || p.state.ServerOn(node)
	}
	return suits && busy || p.v.Confined(task) != planner.AnyClass
}

// suits tells whether an empty node is one for the task.
func (p *beside) suits(task, node int) bool { return p.room(task, node, hostUse{}) }

// room tells whether a node is one for the task beside what is used of it.
func (p *beside) room(task, node int, used hostUse) bool {
	t, class := &p.v.Problem.Tasks[task], p.v.ClassOf(node)
	k, option := &p.v.Problem.Cluster.Classes[class], p.v.Option(task, class)
	if option < 0 || t.Options[option].PerNode() > k.GPUs || t.Options[option].GPUs == 0 || t.Share < 1 {
		return false
	}
	nodes := float64(t.Options[option].Over())
	return t.CPUs/nodes+used.cpus <= orInf(k.CPUs)+roundOff && t.MemGiB/nodes+used.mem <= orInf(k.MemGiB)+roundOff
}

// choose is the node and the GPUs that the rule chooses among nodes with room. The
// rule chooses one GPU at a time; a node on which it finds too few is barred, and
// it is asked again.
func (p *beside) choose(task int) (node int, gpus planner.GPUSet, ok bool) {
	var barred []int
	for n := range p.used {
		if !p.room(task, n, p.used[n]) {
			barred = p.bar(barred, n)
		}
	}
	number := p.v.Tenant(task)
	for {
		first, found := p.how.Rule.Choose(p.state, number, barred)
		if !found {
			return 0, 0, false
		}
		node = p.state.GPU(first).Server
		gpus, found = p.pieces(task, number, node, first)
		switch {
		case !found:
			barred = p.bar(barred, node)
		case p.how.Keep && !p.keeps(number, node, gpus):
			return 0, 0, false // the rule breaks it only where nothing else is left
		default:
			return p.warm(task, node), gpus, true
		}
	}
}

// bar adds the GPUs of a node to a list.
func (p *beside) bar(list []int, node int) []int {
	first, count := p.v.GPUs(node)
	for gpu := first; gpu < first+count; gpu++ {
		list = append(list, gpu)
	}
	return list
}

// pieces are the GPUs of a node that the rule chooses for the pieces of a task,
// the first one known.
func (p *beside) pieces(task, number, node, gpu int) (gpus planner.GPUSet, ok bool) {
	count := p.v.Problem.Tasks[task].Options[p.v.Option(task, p.v.ClassOf(node))].GPUs
	first, _ := p.v.GPUs(node)
	gpus = 1 << uint(gpu-first)
	if count == 1 {
		return gpus, true
	}
	var taken []int
	for n := range p.used {
		if n != node {
			taken = p.bar(taken, n)
		}
	}
	taken = append(taken, gpu)
	for range count - 1 {
		next, found := p.how.Rule.Choose(p.state, number, taken)
		if !found {
			return 0, false
		}
		taken, gpus = append(taken, next), gpus|1<<uint(next-first)
	}
	return gpus, true
}

// keeps tells whether everybody on some GPUs would still be as fast as they
// have to be at the highest frequency.
func (p *beside) keeps(number, node int, gpus planner.GPUSet) bool {
	t := &p.state.Instance().Tasks[number]
	first, _ := p.v.GPUs(node)
	for ; gpus != 0; gpus &= gpus - 1 {
		gpu := first + gpus.First()
		overload, sum := p.state.OverloadWith(number, gpu, p.sum)
		p.sum = sum
		if overload > min(p.state.Kappa(gpu), t.Kappa)+sharing.Tolerance {
			return false
		}
	}
	return true
}

// warm is a node of the same class that is on and runs nothing, where the chosen
// one is off and there is one.
func (p *beside) warm(task, node int) int {
	if p.v.On(node) {
		return node
	}
	for n := range p.used {
		if p.v.On(n) && p.v.ClassOf(n) == p.v.ClassOf(node) && !p.state.ServerOn(n) && p.room(task, n, p.used[n]) {
			return n
		}
	}
	return node
}

// empty is the node with the fewest GPUs that nothing uses among those where they
// suffice, nodes that are on before others.
func (p *beside) empty(task int) (node int, gpus planner.GPUSet, ok bool) {
	fewest := math.MaxInt
	for n := range p.used {
		option := p.option(task, p.v.ClassOf(n))
		if option < 0 || !p.room(task, n, p.used[n]) {
			continue
		}
		free := p.unused(n)
		rank := free.Len()
		if !p.v.On(n) {
			rank += planner.MaxGPUs
		}
		want := p.v.Problem.Tasks[task].Options[option].GPUs
		if free.Len() < want || rank >= fewest {
			continue
		}
		gpus = lowest(free, want)
		node, fewest, ok = n, rank, true
	}
	return node, gpus, ok
}

// unused are the GPUs of a node that nothing uses.
func (p *beside) unused(node int) (free planner.GPUSet) {
	first, count := p.v.GPUs(node)
	for g := range count {
		if !p.state.Busy(first + g) {
			free |= 1 << uint(g)
		}
	}
	return free
}

// lowest are the count lowest GPUs of a set, or all where it has fewer.
func lowest(of planner.GPUSet, count int) (set planner.GPUSet) {
	for ; of != 0 && set.Len() < count; of &= of - 1 {
		set |= of & -of
	}
	return set
}

// placement starts a task as soon as the node is ready.
func (p *beside) placement(task, node int, gpus planner.GPUSet, shared bool) planner.Placement {
	class := p.v.ClassOf(node)
	option := p.v.Option(task, class)
	start := p.v.StartOnNew(task, class)
	if p.v.On(node) {
		start = p.v.StartFor(task, p.v.Since(node)+p.v.Problem.Cluster.Classes[class].TurnOnDelay)
	}
	q, room, why := p.quoteOrFastest(task, option, class, start)
	if !shared {
		return placement(node, class, option, gpus, start, &q, room, why)
	}
	q.Point = p.v.Problem.Tasks[task].Options[option].Response.Default()
	q.Clocks, q.Want = planner.ClocksAdapted, q.Point.Time
	why = planner.PlaceOpened
	first, _ := p.v.GPUs(node)
	for _, gpu := range gpus.Indexes() {
		if p.state.Busy(first + gpu) {
			why = planner.PlaceBeside
		}
	}
	pl := placement(node, class, option, gpus, start, &q, room, why)
	pl.Shared = true
	return pl
}
