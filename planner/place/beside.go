package place

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// Colocate starts tasks with profiles at once on GPUs that they may share, as a
// rule of consolidation chooses, or leaves them waiting until a task ends. Tasks
// without a profile get GPUs for themselves, and so does everybody where no GPU
// may be shared: see [AtOnce].
type Colocate struct {
	Rule share.Rule
	// NewRule is a rule of one run, instead of Rule, that looks at more than loads.
	NewRule func(*planner.View) share.Rule
	// KeepTolerances leaves a task waiting rather than let it, or who is there already, be
	// slowed down more than they tolerate, contention counted.
	KeepTolerances bool
}

// New returns the Place stage of one run.
func (b Colocate) New(v *planner.View) planner.Placer {
	if v.Shared == nil {
		return AtOnce(v)
	}
	state := v.Shared.Booked
	if b.NewRule != nil {
		b.Rule = b.NewRule(v)
	}
	return &colocate{
		atOnce: atOnce{v: v, unshared: true}, opts: b, state: state,
		used: make([]hostUse, len(state.Instance().Servers)),
	}
}

type colocate struct {
	atOnce // for nodes whose GPUs are nobody's but one task's
	opts   Colocate
	state  *sharing.State
	used   []hostUse // by node
	sum    []float64 // buffer
}

// hostUse is what the tasks of a node hold beside GPUs.
type hostUse struct{ cpus, mem float64 }

// isShared reports whether a node is one of those whose GPUs may be shared.
func (p *colocate) isShared(node int) bool { return node < len(p.used) }

func (p *colocate) Opened(node int) {
	if !p.isShared(node) {
		p.atOnce.Opened(node)
	}
}

func (p *colocate) Closed(node int) {
	if !p.isShared(node) {
		p.atOnce.Closed(node)
		return
	}
	p.used[node] = hostUse{}
}

func (p *colocate) Committed(task int, a *planner.Assignment) { p.take(task, a, 1) }

// Finished gives back what a task held.
func (p *colocate) Finished(task int, a *planner.Assignment) { p.take(task, a, -1) }

// take takes what a task holds from its nodes' room, or with sign -1 gives it back.
func (p *colocate) take(task int, a *planner.Assignment, sign float64) {
	t, nodes := &p.v.Problem.Tasks[task], float64(1+len(a.More))
	for part := range a.Parts {
		if !p.isShared(int(part.Node)) {
			p.takePart(part, t, sign, nodes)
			continue
		}
		p.used[part.Node].cpus += sign * t.CPUs / nodes
		p.used[part.Node].mem += sign * t.MemGiB / nodes
	}
}

func (p *colocate) freeGPUsFor(task, node, option int) (set planner.GPUSet, free int, ok bool) {
	if !p.isShared(node) {
		return p.atOnce.freeGPUsFor(task, node, option)
	}
	left := p.unusedGPUs(node)
	return left.Lowest(p.v.Problem.Tasks[task].Options[option].PerNode()), left.Len(),
		p.hasRoom(task, node, p.used[node]) &&
			left.Len() >= p.v.Problem.Tasks[task].Options[option].PerNode()
}

func (p *colocate) Place(task int) (planner.Placement, planner.Verdict) {
	if p.v.Problem.Tasks[task].IsGang() {
		return startGangNow(p.v, task, p)
	}
	alone, find := p.v.Problem.Tasks[task].Profile == nil, p.choose
	if alone {
		find = p.tightestUnused
	}
	if node, gpus, ok := find(task); ok {
		return p.placement(task, node, gpus, !alone), planner.Start
	}
	pl, verdict := p.atOnce.Place(task)
	if verdict == planner.Reject && p.canFitLater(task) {
		verdict = planner.Wait
	}
	return pl, verdict
}

// canFitLater reports whether a task may find room among shared GPUs once others have
// ended.
func (p *colocate) canFitLater(task int) bool {
	suits, busy := false, false
	for node := range p.used {
		suits = suits || p.suits(task, node)
		busy = busy || p.state.IsServerOn(node)
	}
	return suits && busy || p.v.RestrictedClass(task) != planner.AnyClass
}

func (p *colocate) suits(task, node int) bool { return p.hasRoom(task, node, hostUse{}) }

// hasRoom reports whether a node is one for the task beside what is used of it.
func (p *colocate) hasRoom(task, node int, used hostUse) bool {
	t, class := &p.v.Problem.Tasks[task], p.v.Node(node).Class
	k, option := &p.v.Problem.Cluster.Classes[class], p.v.Option(task, class)
	if option < 0 || t.Options[option].PerNode() > k.GPUs || t.Options[option].GPUs == 0 || t.Share < 1 {
		return false
	}
	nodes := float64(t.Options[option].NodeCount())
	return t.CPUs/nodes+used.cpus <= unlimitedIfZero(k.CPUs)+roundOff &&
		t.MemGiB/nodes+used.mem <= unlimitedIfZero(k.MemGiB)+roundOff
}

// choose returns the node and the GPUs that the rule chooses among nodes with room. The
// rule chooses one GPU at a time; a node on which it finds too few is barred, and
// it is asked again.
func (p *colocate) choose(task int) (node int, gpus planner.GPUSet, ok bool) {
	var barred []int
	for n := range p.used {
		if !p.hasRoom(task, n, p.used[n]) {
			barred = p.excludeNode(barred, n)
		}
	}
	number := p.v.Shared.IndexOf[task]
	for {
		first, found := p.opts.Rule.Choose(p.state, number, barred)
		if !found {
			return 0, 0, false
		}
		node = p.state.GPU(first).Server
		gpus, found = p.gpusForPieces(task, number, node, first)
		switch {
		case !found:
			barred = p.excludeNode(barred, node)
		case p.opts.KeepTolerances && !p.isFastEnough(number, node, gpus):
			return 0, 0, false // the rule breaks it only where nothing else is left
		default:
			return p.idleNodeInstead(task, node), gpus, true
		}
	}
}

func (p *colocate) excludeNode(list []int, node int) []int {
	n := p.v.Node(node)
	for g := range n.GPUs {
		list = append(list, n.FirstGPU+g)
	}
	return list
}

// gpusForPieces returns the GPUs of a node that the rule chooses for the pieces of a task,
// the first one known.
func (p *colocate) gpusForPieces(task, number, node, gpu int) (gpus planner.GPUSet, ok bool) {
	count := p.v.Problem.Tasks[task].Options[p.v.Option(task, p.v.Node(node).Class)].GPUs
	first := p.v.Node(node).FirstGPU
	gpus = 1 << uint(gpu-first)
	if count == 1 {
		return gpus, true
	}
	var taken []int
	for n := range p.used {
		if n != node {
			taken = p.excludeNode(taken, n)
		}
	}
	taken = append(taken, gpu)
	for range count - 1 {
		next, found := p.opts.Rule.Choose(p.state, number, taken)
		if !found {
			return 0, false
		}
		taken, gpus = append(taken, next), gpus|1<<uint(next-first)
	}
	return gpus, true
}

// isFastEnough reports whether everybody on some GPUs would still be as fast as they
// have to be at the highest frequency.
func (p *colocate) isFastEnough(number, node int, gpus planner.GPUSet) bool {
	t := &p.state.Instance().Tasks[number]
	first := p.v.Node(node).FirstGPU
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

// idleNodeInstead returns a node of the same class that is on and runs nothing, where the chosen
// one is off and there is one.
func (p *colocate) idleNodeInstead(task, node int) int {
	if p.v.Node(node).On {
		return node
	}
	for n := range p.used {
		if p.v.Node(n).On && p.v.Node(n).Class == p.v.Node(node).Class && !p.state.IsServerOn(n) &&
			p.hasRoom(task, n, p.used[n]) {
			return n
		}
	}
	return node
}

// tightestUnused returns the node with the fewest GPUs that nothing uses among those where they
// suffice, nodes that are on before others.
func (p *colocate) tightestUnused(task int) (node int, gpus planner.GPUSet, ok bool) {
	fewest := math.MaxInt
	for n := range p.used {
		option := usableOption(p.v, task, p.v.Node(n).Class)
		if option < 0 || !p.hasRoom(task, n, p.used[n]) {
			continue
		}
		free := p.unusedGPUs(n)
		rank := free.Len()
		if !p.v.Node(n).On {
			rank += planner.MaxGPUs
		}
		want := p.v.Problem.Tasks[task].Options[option].GPUs
		if free.Len() < want || rank >= fewest {
			continue
		}
		gpus = free.Lowest(want)
		node, fewest, ok = n, rank, true
	}
	return node, gpus, ok
}

func (p *colocate) unusedGPUs(node int) (free planner.GPUSet) {
	n := p.v.Node(node)
	for g := range n.GPUs {
		if !p.state.IsBusy(n.FirstGPU + g) {
			free |= 1 << uint(g)
		}
	}
	return free
}

// placement starts a task as soon as the node is ready.
func (p *colocate) placement(task, node int, gpus planner.GPUSet, shared bool) planner.Placement {
	class := p.v.Node(node).Class
	option := p.v.Option(task, class)
	start := earliestStartOn(p.v, task, class, node)
	q, room, why := quoteOrFastest(p.v, task, option, class, start, planner.PlaceSoonest)
	if !shared {
		return newPlacement(node, class, option, gpus, start, &q, room, why)
	}
	q.Point = p.v.Problem.Tasks[task].Options[option].Response.Default()
	q.Clocks, q.Want = planner.ClocksAdapted, q.Point.Time
	why = planner.PlaceOpened
	first := p.v.Node(node).FirstGPU
	for _, gpu := range gpus.Indexes() {
		if p.state.IsBusy(first + gpu) {
			why = planner.PlaceBeside
		}
	}
	pl := newPlacement(node, class, option, gpus, start, &q, room, why)
	pl.Shared = true
	return pl
}
