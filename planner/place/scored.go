package place

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// Scoring places tasks by judging the nodes that have room now: each starts at
// once on the best one, a sleeping node among them, or waits until a task ends.
type Scoring struct {
	// Chooser makes the chooser of a run for a target workload.
	Chooser func(m fleet.Workload, s *fleet.State) score.Chooser
	// Workload is the target workload; nil: what arrived so far.
	Workload fleet.Workload
	// StateObserver is told the cluster's state before each change; nil: nobody is.
	Observer StateObserver
}

// StateObserver observes the state of a run's cluster.
type StateObserver interface {
	// AdvanceTo tells that the cluster was in this state from the last call to now,
	// seconds.
	AdvanceTo(now float64, s *fleet.State)
}

// New returns the Place stage of one run.
func (s Scoring) New(v *planner.View) planner.Placer {
	p := &scored{
		v: v, opts: s, demands: make([]*fleet.Demand, len(v.Problem.Tasks)),
		offered: make([]int, len(v.Problem.Tasks)),
	}
	if p.CheckCluster() == nil {
		p.buildFleet()
	}
	return p
}

// CheckCluster implements [planner.ClusterChecker]: a node of the fleet has so many GPUs.
func (p *scored) CheckCluster() error {
	classes := p.v.Problem.Cluster.Classes
	for i := range classes {
		if k := &classes[i]; k.GPUs > fleet.MaxGPUs {
			return &planner.ClassError{
				Class: i, Msg: fmt.Sprintf("placement by score knows %d GPUs per node at most, nodes %q "+
					"have %d: want another policy",
					fleet.MaxGPUs, k.Name, k.GPUs),
			}
		}
	}
	return nil
}

// scored keeps a fleet for its chooser. The engine has nodes that were ever on; the
// fleet also has nodes that the chooser may wake: all that there are of a limited
// class, some of an unlimited one.
type scored struct {
	v       *planner.View
	opts    Scoring
	chooser score.Chooser

	// The tasks offered so far.
	demands []*fleet.Demand // by task; nil: not offered yet, or no class suits it
	offered []int           // by task: the class that its demand is for, or planner.AnyClass
	known   []fleet.Demand  // as first offered
	learned int             // how many of known the chooser's target workload has

	// The nodes of the fleet, and which of the engine's they are.
	kinds      []*fleet.Kind // by class
	class      []int         // by fleet node
	node       []int         // by fleet node: the engine's node, or off
	fleet      []int         // by the engine's node: the fleet node
	spareNodes []int         // by class: how many of its fleet nodes are off
	next       int           // the fleet node of the latest answer, for Opened; off: none
}

// nodeOff marks a fleet node that no node of the engine stands for.
const nodeOff = -1

// initialSpares is how many sleeping nodes of an unlimited class there are at
// first; whenever they are used up, the class's nodes are doubled.
const initialSpares = 4

func (p *scored) buildFleet() {
	classes := p.v.Problem.Cluster.Classes
	p.next = nodeOff
	p.kinds = make([]*fleet.Kind, len(classes))
	p.spareNodes = make([]int, len(classes))
	state := fleet.NewState(nil)
	for class := range classes {
		p.kinds[class] = kindOf(&classes[class])
		if p.opts.Workload == nil { // which names GPU models as they are
			p.kinds[class].Model = p.modelOf(class)
		}
		count := classes[class].Count
		if count == 0 {
			count = initialSpares
		}
		p.add(state, class, count)
	}
	p.chooser = p.opts.Chooser(p.opts.Workload, state)
}

// modelOf returns the GPU model of a class, and for those after the first class of a
// model a name of its own: a demand may be for one class of them alone.
func (p *scored) modelOf(class int) string {
	classes := p.v.Problem.Cluster.Classes
	model := classes[class].Model
	if slices.ContainsFunc(classes[:class], func(k planner.NodeClass) bool { return k.Model == model }) {
		return model + "#" + strconv.Itoa(class)
	}
	return model
}

func (p *scored) add(state *fleet.State, class, count int) {
	resident := p.v.Problem.Cluster.Classes[class].Count > 0 && p.v.NeverSleeps
	for range count {
		state.Add(p.kinds[class])
		if !resident {
			state.Sleep(state.Len() - 1)
		}
		p.class = append(p.class, class)
		p.node = append(p.node, nodeOff)
	}
	p.spareNodes[class] += count
}

// takeSpare takes a node from the spare ones and sees to it that some are left of an
// unlimited class.
func (p *scored) takeSpare(class int) {
	p.spareNodes[class]--
	if p.spareNodes[class] > 0 || p.v.Problem.Cluster.Classes[class].Count > 0 {
		return
	}
	state, have := p.chooser.State(), 0
	for _, c := range p.class {
		if c == class {
			have++
		}
	}
	p.add(state, class, have)
	p.remakeChooser()
}

func (p *scored) remakeChooser() {
	m := p.opts.Workload
	if m == nil {
		m = fleet.NewWorkload(p.known, fleet.PaperCover)
	}
	p.chooser = p.opts.Chooser(m, p.chooser.State())
}

// unlimitedMilli is the milli-vCPU and MiB of nodes whose CPUs or memory aren't
// counted.
const unlimitedMilli = 1 << 40

// kindOf returns a node class as the fleet sees it. Where its power by steps isn't
// known, GPUs of nodes that are on draw what idle ones do, busy or not.
func kindOf(k *planner.NodeClass) *fleet.Kind {
	kind := &fleet.Kind{
		Model: k.Model, CPU: unlimitedMilli, Mem: unlimitedMilli, GPUs: k.GPUs, Power: k.Steps,
	}
	if k.Steps == (planner.StepPower{}) {
		kind.Power = planner.StepPower{GPUIdle: k.IdleW, GPUBusy: k.IdleW, Sleep: k.SleepW}
	}
	if k.CPUs > 0 {
		kind.CPU = int64(k.CPUs * milliPerUnit)
	}
	if k.MemGiB > 0 {
		kind.Mem = int64(k.MemGiB * mibPerGiB)
	}
	return kind
}

// The units of the fleet: milli-vCPU and thousandths of a GPU, and MiB.
const (
	milliPerUnit = 1000
	mibPerGiB    = 1024
)

// demandOf returns what a task asks of a node of the fleet, of each where it runs on
// several; ok is false when no class suits it. All the GPU models that it may go to
// take as many GPUs and nodes as the first that suits.
func (p *scored) demandOf(task int) (d fleet.Demand, ok bool) {
	t := &p.v.Problem.Tasks[task]
	nodes := 1
	var models []string
	for class := range p.kinds {
		option := usableOption(p.v, task, class)
		if option < 0 ||
			(ok && (t.Options[option].PerNode() != d.GPUs || t.Options[option].NodeCount() != nodes)) {
			continue
		}
		d.GPUs, nodes, ok = t.Options[option].PerNode(), t.Options[option].NodeCount(), true
		if model := p.kinds[class].Model; !slices.Contains(models, model) {
			models = append(models, model)
		}
	}
	d.CPU, d.Mem = ceilMilli(t.CPUs/float64(nodes)),
		int64(math.Ceil(t.MemGiB/float64(nodes)*mibPerGiB-roundOff))
	if d.GPUs > 0 {
		d.Milli = int(ceilMilli(t.Share))
	}
	d.Spec = strings.Join(models, "|")
	return d, ok
}

// roundOff keeps a product that is whole but for rounding from being rounded up.
const roundOff = 1e-6

// ceilMilli returns an amount in thousandths, rounded up.
func ceilMilli(x float64) int64 { return int64(math.Ceil(x*milliPerUnit - roundOff)) }

// relearn makes the chooser anew for the tasks offered so far when they have
// become half as many again, unless the target workload was given.
func (p *scored) relearn(d *fleet.Demand) {
	if p.opts.Workload != nil {
		return
	}
	p.known = append(p.known, *d)
	if 2*len(p.known) > 3*p.learned {
		p.learned = len(p.known)
		p.remakeChooser()
	}
}

// demand returns what a task asks for of the classes that it is offered for,
// remembered; nil when no class suits it.
func (p *scored) demand(task int) *fleet.Demand {
	asked := p.demands[task]
	if class := p.v.RestrictedClass(task); asked != nil && class != p.offered[task] {
		d, ok := p.demandOf(task)
		if !ok {
			return nil
		}
		*asked, p.offered[task] = d, class
	}
	if asked == nil {
		if d, ok := p.demandOf(task); ok {
			p.demands[task], p.offered[task] = &d, p.v.RestrictedClass(task)
			p.relearn(&d)
		}
	}
	return p.demands[task]
}

// advance tells the meter how long the fleet was as it is.
func (p *scored) advance() {
	if p.opts.Observer != nil {
		p.opts.Observer.AdvanceTo(p.v.Now, p.chooser.State())
	}
}

func (p *scored) Opened(node int) {
	p.advance()
	f := p.next
	if f == nodeOff { // it was on before this stage was made: any node of its class stands for it
		f = p.firstOff(p.v.Node(node).Class)
	}
	p.next = nodeOff
	for len(p.fleet) <= node {
		p.fleet = append(p.fleet, nodeOff)
	}
	p.node[f], p.fleet[node] = node, f
	p.chooser.Wake(f)
	p.takeSpare(p.class[f])
}

// firstOff returns the first fleet node of a class that is off; there always is one.
func (p *scored) firstOff(class int) (f int) {
	for f = range p.node {
		if p.class[f] == class && p.node[f] == nodeOff {
			break
		}
	}
	return f
}

func (p *scored) Closed(node int) {
	p.advance()
	f := p.fleet[node]
	p.node[f] = nodeOff
	p.spareNodes[p.class[f]]++
	p.chooser.Sleep(f)
}

func (p *scored) Committed(task int, a *planner.Assignment) {
	p.advance()
	p.next = nodeOff
	for part := range a.Parts {
		// The chooser gave the place, or the engine holds the task there already.
		_ = p.chooser.Place(p.fleet[part.Node], p.demand(task), part.GPUs)
	}
}

// Finished gives back what a task held.
func (p *scored) Finished(task int, a *planner.Assignment) {
	p.advance()
	for part := range a.Parts {
		p.chooser.Release(p.fleet[part.Node], p.demand(task), part.GPUs)
	}
}

func (p *scored) canUseClass(task, class int) bool {
	return p.demand(task).Accepts(p.kinds[class].Model)
}

func (p *scored) freeGPUsFor(task, node, _ int) (set planner.GPUSet, free int, ok bool) {
	n, d := p.chooser.State().Node(p.fleet[node]), p.demand(task)
	return n.WholeGPUs(d.GPUs), n.GPUsWithRoom(fleet.WholeGPU).Len(), n.Fits(d)
}

func (p *scored) Place(task int) (planner.Placement, planner.Verdict) {
	d := p.demand(task)
	if d == nil && p.v.RestrictedClass(task) != planner.AnyClass {
		return planner.Placement{}, planner.Wait
	}
	if d == nil {
		return planner.Placement{}, planner.Reject
	}
	if p.v.Problem.Tasks[task].IsGang() {
		return startGangNow(p.v, task, p)
	}
	f, gpus, ok := p.chooser.Choose(d)
	if !ok {
		return planner.Placement{}, planner.Wait
	}
	class, node := p.class[f], p.node[f]
	option := p.v.Option(task, class)
	start := earliestStartOn(p.v, task, class, node)
	p.next = f
	q, room, why := quoteOrFastest(p.v, task, option, class, start, planner.PlaceScored)
	return newPlacement(node, class, option, gpus, start, &q, room, why), planner.Start
}
