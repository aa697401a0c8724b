package place

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// AtOnce starts a task at once where it costs least, on the node that has the
// fewest GPUs left then, or leaves it waiting until a task ends. It books no
// future, so that run times needn't be certain. Nodes that are on come before
// sleeping ones.
func AtOnce(v *planner.View) planner.Placer { return &atOnce{v: v} }

type atOnce struct {
	v        *planner.View
	capacity []freeCapacity // by node
	// By class and number of GPUs: how many nodes are on that have so many free.
	withFree [][planner.MaxGPUs + 1]int
	unshared bool // leave out classes whose GPUs may be shared
}

// freeCapacity is what is left of a node that is on.
type freeCapacity struct {
	isOn      bool
	free      planner.GPUSet  // GPUs that nothing uses
	cpus, mem float64         // cores, and GiB; +Inf: not limited
	shares    map[int]float64 // by GPU of which tasks hold shares: how much of it they hold
}

func (p *atOnce) Opened(node int) {
	for len(p.capacity) <= node {
		p.capacity = append(p.capacity, freeCapacity{})
	}
	k := &p.v.Problem.Cluster.Classes[p.v.Node(node).Class]
	p.capacity[node] = freeCapacity{
		isOn: true, free: planner.FirstGPUs(k.GPUs), cpus: unlimitedIfZero(k.CPUs), mem: unlimitedIfZero(k.MemGiB),
	}
	if p.withFree == nil {
		p.withFree = make([][planner.MaxGPUs + 1]int, len(p.v.Problem.Cluster.Classes))
	}
	p.withFree[p.v.Node(node).Class][k.GPUs]++
}

// unlimitedIfZero returns what there is of something that 0 doesn't limit.
func unlimitedIfZero(x float64) float64 {
	if x == 0 {
		return math.Inf(1)
	}
	return x
}

func (p *atOnce) Closed(node int) {
	p.withFree[p.v.Node(node).Class][p.capacity[node].free.Len()]--
	p.capacity[node] = freeCapacity{}
}

func (p *atOnce) Committed(task int, a *planner.Assignment) { p.take(task, a, 1) }

// Finished gives back what a task held.
func (p *atOnce) Finished(task int, a *planner.Assignment) { p.take(task, a, -1) }

// take takes what a task holds from its node's room, or with sign -1 gives it back.
func (p *atOnce) take(task int, a *planner.Assignment, sign float64) {
	t := &p.v.Problem.Tasks[task]
	nodes := float64(1 + len(a.More))
	for part := range a.Parts {
		p.takePart(part, t, sign, nodes)
	}
}

func (p *atOnce) takePart(part planner.Part, t *planner.Task, sign, nodes float64) {
	r, of := &p.capacity[part.Node], &p.withFree[p.v.Node(int(part.Node)).Class]
	of[r.free.Len()]--
	defer func() { of[r.free.Len()]++ }()
	r.cpus -= sign * t.CPUs / nodes
	r.mem -= sign * t.MemGiB / nodes
	if t.Share == 1 {
		r.free ^= part.GPUs
		return
	}
	r.addShare(part.GPUs.First(), sign*t.Share)
}

func (r *freeCapacity) addShare(gpu int, share float64) {
	if r.shares == nil {
		r.shares = map[int]float64{}
	}
	if r.shares[gpu] += share; r.shares[gpu] > roundOff {
		r.free &^= 1 << uint(gpu)
		return
	}
	delete(r.shares, gpu)
	r.free |= 1 << uint(gpu)
}

// hasCPUsAndMemory reports whether there are the CPUs and the memory for a task, or for its part
// on one of so many nodes.
func (r *freeCapacity) hasCPUsAndMemory(t *planner.Task, nodes float64) bool {
	return t.CPUs/nodes <= r.cpus+roundOff && t.MemGiB/nodes <= r.mem+roundOff
}

// gpusFor returns those that a task would get, the lowest ones; for a share the fullest
// GPU that has it.
func (r *freeCapacity) gpusFor(t *planner.Task, option int) (set planner.GPUSet, ok bool) {
	o := &t.Options[option]
	count := o.PerNode()
	if !r.hasCPUsAndMemory(t, float64(o.NodeCount())) {
		return 0, false
	}
	if t.Share < 1 {
		best, used := -1, -1.0
		for gpu, share := range r.shares {
			if share+t.Share <= 1+planner.ShareSlack && (share > used || (share == used && gpu < best)) {
				best, used = gpu, share
			}
		}
		if best >= 0 {
			return 1 << uint(best), true
		}
	}
	set = r.free.Lowest(count)
	return set, set.Len() == count
}

func (p *atOnce) Place(task int) (planner.Placement, planner.Verdict) {
	if p.v.Problem.Tasks[task].IsGang() {
		return startGangNow(p.v, task, p)
	}
	var best planner.Placement
	least, suits := math.Inf(1), false
	for class := range p.v.Problem.Cluster.Classes {
		option := p.v.Option(task, class)
		if option < 0 || p.v.RestrictedClass(task) != planner.AnyClass && !p.mayFit(task, option, class) {
			continue // where it is offered for one class, it waits whether that suits it or not
		}
		option = usableOption(p.v, task, class)
		if option < 0 || (p.unshared && p.v.Problem.CanShareGPUs(class)) {
			continue
		}
		suits = true
		node, gpus, ok := p.tightestNode(task, option, class)
		if !ok {
			continue
		}
		start := earliestStartOn(p.v, task, class, node)
		q, room, why := quoteOrFastest(p.v, task, option, class, start, planner.PlaceSoonest)
		if cost := taskCost(p.v.Problem, task, option, class, &q); cost < least {
			least, best = cost, newPlacement(node, class, option, gpus, start, &q, room, why)
		}
	}
	return best, verdictNow(p.v, task, !math.IsInf(least, 1), suits)
}

func (p *atOnce) canUseClass(_, _ int) bool { return true }

func (p *atOnce) freeGPUsFor(task, node, option int) (set planner.GPUSet, free int, ok bool) {
	set, ok = p.capacity[node].gpusFor(&p.v.Problem.Tasks[task], option)
	return set, p.capacity[node].free.Len(), ok
}

// leastFree returns the least number of free GPUs of a node of a class that is on and has as many as a task
// needs of each; false: none has.
func (p *atOnce) leastFree(task, option, class int) (int, bool) {
	if p.withFree == nil {
		return 0, false
	}
	for free := p.v.Problem.Tasks[task].Options[option].PerNode(); free <= planner.MaxGPUs; free++ {
		if p.withFree[class][free] > 0 {
			return free, true
		}
	}
	return 0, false
}

// mayFit is false where a node of a class certainly has no room for a task now.
func (p *atOnce) mayFit(task, option, class int) bool {
	if p.v.Problem.Tasks[task].Share < 1 {
		return true // GPUs that aren't free may have room for it
	}
	_, free := p.leastFree(task, option, class)
	return free || p.v.CanOpen(task, option, class)
}

// tightestNode returns the node of a class with the fewest GPUs left once a task is there; -1
// stands for one that sleeps.
func (p *atOnce) tightestNode(task, option, class int) (node int, gpus planner.GPUSet, ok bool) {
	t, fewest := &p.v.Problem.Tasks[task], math.MaxInt
	tightest, some := p.leastFree(task, option, class)
	for n := range p.capacity {
		if t.Share == 1 && (!some || fewest == tightest) {
			break // no other has fewer
		}
		r := &p.capacity[n]
		if !r.isOn || p.v.Node(n).Class != class || r.free.Len() >= fewest {
			continue
		}
		if set, fits := r.gpusFor(t, option); fits {
			node, gpus, fewest = n, set, r.free.Len()
		}
	}
	if fewest < math.MaxInt {
		return node, gpus, true
	}
	return -1, planner.FirstGPUs(t.Options[option].GPUs), p.v.CanOpen(task, option, class)
}
