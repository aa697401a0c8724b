package taskset

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
)

// Sizes of the openb trace, which a synthetic one has unless told otherwise.
const (
	OpenbNodes = 1213
	OpenbTasks = 8152

	maxOpenbSize = 10_000_000
)

// OpenbSpec is how large a synthetic trace is.
type OpenbSpec struct {
	Nodes int // 0: OpenbNodes
	Tasks int // 0: as many for each node as the openb trace has
}

// Openb is a cluster and a list of tasks in the openb format.
type Openb struct {
	Nodes []trace.NodeRow
	Pods  []trace.Pod
}

// GenerateOpenb draws a cluster and a list of tasks whose mix is close to the
// openb trace's: kinds of nodes, shapes and sizes of tasks, GPU demand by
// capacity (0.98 for as many tasks by node), times. Shares are met as closely
// as whole numbers allow; only what is paired with what, and times, are random.
// Tasks are in the order of their creation.
func GenerateOpenb(spec OpenbSpec, rng *rand.Rand) (*Openb, error) {
	spec.Nodes = cmp.Or(spec.Nodes, OpenbNodes)
	if spec.Nodes < 1 || spec.Nodes > maxOpenbSize {
		return nil, fmt.Errorf("%d nodes, want 1 to %d", spec.Nodes, maxOpenbSize)
	}
	spec.Tasks = cmp.Or(spec.Tasks, max(1, int(math.Round(float64(spec.Nodes)*OpenbTasks/OpenbNodes))))
	if spec.Tasks < 1 || spec.Tasks > maxOpenbSize {
		return nil, fmt.Errorf("%d tasks, want 1 to %d", spec.Tasks, maxOpenbSize)
	}
	g := openbGenerator{rng: rng}
	return &Openb{Nodes: g.nodes(spec.Nodes), Pods: g.pods(spec.Tasks)}, nil
}

type openbGenerator struct{ rng *rand.Rand }

// shares deals n places out so that each share is met as closely as whole
// numbers allow, in random order.
func (g *openbGenerator) shares(n int, share []float64) []int {
	total := 0.0
	for _, s := range share {
		total += s
	}
	dealt := make([]int, n)
	at := g.rng.Float64()
	which, upTo := 0, share[0]
	for i := range dealt {
		for at+float64(i) > upTo*float64(n)/total && which < len(share)-1 {
			which++
			upTo += share[which]
		}
		dealt[i] = which
	}
	g.rng.Shuffle(n, func(i, j int) { dealt[i], dealt[j] = dealt[j], dealt[i] })
	return dealt
}

func (g *openbGenerator) nodes(count int) []trace.NodeRow {
	share := make([]float64, len(nodeShapes))
	for i := range nodeShapes {
		share[i] = nodeShapes[i].share
	}
	rows := make([]trace.NodeRow, count)
	for i, which := range g.shares(count, share) {
		s := &nodeShapes[which]
		rows[i] = trace.NodeRow{
			Name: fmt.Sprintf("node-%04d", i), Model: s.model, CPU: s.vcpu * 1000, Mem: s.gb * 1024,
			GPUs: s.gpus,
		}
	}
	return rows
}

func (g *openbGenerator) pods(count int) []trace.Pod {
	share := make([]float64, len(taskShapes))
	for i := range taskShapes {
		share[i] = taskShapes[i].share
	}
	pods := make([]trace.Pod, count)
	clock := firstCreation
	for i, which := range g.shares(count, share) {
		clock += gapScale * math.Pow(g.rng.ExpFloat64(), 1/gapShape)
		pods[i].Demand = g.demand(&taskShapes[which])
		g.drawTimes(&pods[i], math.Floor(clock))
	}
	slices.SortStableFunc(pods, func(a, b trace.Pod) int { return cmp.Compare(a.Created, b.Created) })
	for i := range pods {
		pods[i].Name = fmt.Sprintf("task-%04d", i)
	}
	return pods
}

func (g *openbGenerator) demand(s *taskShape) fleet.Demand {
	d := fleet.Demand{CPU: int64(s.vcpu * 1000), Mem: int64(s.gb * 1024), GPUs: s.gpus, Milli: s.milli}
	if g.rng.Float64() >= oddSizeShare {
		return d
	}
	const step = 100 // milli-vCPU
	if d.GPUs <= 1 {
		d.CPU = int64(s.vcpu*(0.5+g.rng.Float64())*1000/step) * step
	}
	if d.IsShared() {
		d.Milli = min(10*int(float64(s.milli)*(0.5+g.rng.Float64())/10), fleet.WholeGPU-10)
	}
	return d
}

// drawTimes draws when a task is there, in whole seconds. The clock is when it is
// created or, if it is there for very long, when it ends.
func (g *openbGenerator) drawTimes(p *trace.Pod, clock float64) {
	never := neverScheduledWhole
	switch d := &p.Demand; {
	case d.GPUs == 0:
		never = neverScheduledCPU
	case d.IsShared():
		never = neverScheduledShared
	}
	if g.rng.Float64() < never {
		p.Created, p.Deleted, p.Scheduled = clock, clock+g.drawSeconds(neverScheduledLifetime), math.NaN()
		return
	}
	life := g.drawSeconds(lifetime)
	if g.rng.Float64() < longWaitShare {
		life = math.Round(longMin * math.Pow(longMax/longMin, g.rng.Float64()))
	}
	p.Created, p.Deleted = clock, clock+life
	if life >= beforeList {
		p.Created, p.Deleted = max(0, clock-life), clock
	}
	p.Scheduled = min(p.Created+g.drawWait(), p.Deleted)
}

func (g *openbGenerator) drawWait() float64 {
	switch u := g.rng.Float64(); {
	case u < noWaitShare:
		return 0
	case u < noWaitShare+shortWaitShare:
		return float64(1 + g.rng.IntN(3))
	}
	return g.drawSeconds(longWait)
}

// drawSeconds draws whole seconds.
func (g *openbGenerator) drawSeconds(h logNormal) float64 {
	return math.Round(h.median * math.Exp(h.sigma*g.rng.NormFloat64()))
}
