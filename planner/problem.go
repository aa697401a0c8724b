package planner

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// MaxGPUs is the most GPUs that a node may have: a [GPUSet] is a word.
const MaxGPUs = 64

// MaxNodes is the most nodes that a class may be limited to: a plan lists those that
// are always on.
const MaxNodes = 10_000_000

// GPUSet is a set of GPUs of one node, bit i for GPU i.
type GPUSet uint64

// Len returns the number of GPUs in the set.
func (s GPUSet) Len() int { return bits.OnesCount64(uint64(s)) }

// First returns the lowest GPU in the set; 64 when it is empty.
func (s GPUSet) First() int { return bits.TrailingZeros64(uint64(s)) }

// Has reports whether GPU i is in the set.
func (s GPUSet) Has(i int) bool { return s>>uint(i)&1 == 1 }

// Lowest returns the count lowest GPUs of the set, or all where it has fewer.
func (s GPUSet) Lowest(count int) (lowest GPUSet) {
	for ; s != 0 && lowest.Len() < count; s &= s - 1 {
		lowest |= s & -s
	}
	return lowest
}

// Indexes lists the GPUs in the set, ascending.
func (s GPUSet) Indexes() []int {
	all := make([]int, 0, s.Len())
	for ; s != 0; s &= s - 1 {
		all = append(all, s.First())
	}
	return all
}

// Cluster is the machines that a problem may use: classes of equal nodes.
type Cluster struct {
	Name    string
	Classes []NodeClass
	// Slot is the length of a scheduling slot in seconds: the granularity of
	// the slot start rule, and of switching nodes off. 0 means continuous.
	Slot float64
	// OfflineTurnOn reports whether offline plans pay for switching nodes on.
	// The EDL paper doesn't count it (eq. 6).
	OfflineTurnOn bool
	// Sharing is how GPUs respond that tasks share by profile; nil: none are.
	Sharing *Sharing
}

// NodeClass is a kind of node.
type NodeClass struct {
	Name        string
	Model       string          // GPU model
	Count       int             // nodes of this class; 0: as many as wanted
	GPUs        int             // l, GPUs per node, 1..MaxGPUs
	CPUs        float64         // cores per node; 0: not limited
	MemGiB      float64         // memory per node; 0: not limited
	IdleW       dvfsmodel.Watt  // one idle GPU of a node that is on
	HostW       dvfsmodel.Watt  // host power by GPU of a node that is on: CPUs, fans, memory
	SleepW      dvfsmodel.Watt  // a whole node that is off
	TurnOn      dvfsmodel.Joule // switching a node on, by GPU: Δ
	TurnOnDelay float64         // seconds from switching on until GPUs can be used
	Steps       StepPower       // power by what is allocated, as placement scores reckon it
	Partitions  []string        // that its nodes are in; empty: it isn't known, and they take every task
	// Memory by GPU of a node, GB, where tasks with profiles may share GPUs; nil: they
	// may not.
	SharedGB []float64
	// Backlog is how many GPUs tasks wait for by GPU of the class at the present: so many wait a second
	// longer for each second that one is held. 0: it isn't known, and costs nothing.
	Backlog float64
}

// Task is a job joined with its models: what the planner knows of it. [NewTask] has
// the defaults; the zero value isn't a task.
type Task struct {
	ID          string
	Arrival     float64       // seconds; nothing about the task may be used before, online
	Deadline    float64       // absolute, seconds; +Inf: none
	Due         float64       // the time to plan for, seconds: the deadline, or an earlier or implied one
	Limit       float64       // longest run time to plan for, seconds; +Inf: none
	LimitMargin float64       // kept from the job's own limit, which is Limit × (1 + LimitMargin)
	Share       float64       // part of one GPU, 0 < Share ≤ 1; below 1 clocks stay at default
	CPUs        float64       // cores, of all its nodes together, which have equal parts
	MemGiB      float64       // memory, likewise
	Options     []Option      // the GPU models it can run on; none: it can't be placed
	Named       []string      // the GPU models that it asks for, if it can run on none of them; for messages
	Partitions  []string      // one of which its nodes must be in; empty: any
	Pace        float64       // in place of the policy's, if that goes by a pace; 0: none of its own
	Profile     *UsageProfile // what it uses of a GPU; nil: not known, so that nothing else may be beside it
}

// NewTask returns a task that arrives at 0, takes whole GPUs and nothing else that runs
// out, and has neither deadline nor limit. Who gives it a deadline sets Due, too.
func NewTask(id string, options ...Option) Task {
	never := math.Inf(1)
	return Task{ID: id, Deadline: never, Due: never, Limit: never, Share: 1, Options: options}
}

// Option is one GPU model that a task can run on.
type Option struct {
	Model    string
	GPUs     int // GPUs it needs there, of all its nodes together; 0: it runs on CPUs alone
	Nodes    int // nodes of one class with equal parts of them, which start together; 0, and 1: one
	Response dvfsmodel.Response
	Caps     dvfsmodel.CapRange // power caps that may be set for it there; the zero value has none
	Assumed  bool               // its power is neither stated nor modelled, but assumed
	// Prior says that it has no model, and responds as other workloads on the GPU model
	// do: in as much time as 19 of 20 of them take at most.
	Prior bool
	// Uncertainties are how far off the response may be; none where it has a model: not known.
	Uncertainties []UncertainModel
}

// UncertainModel is a model that a response rests on.
type UncertainModel struct {
	*dvfsmodel.Uncertainty
	// Time and Power are how often its levels count: 1 where they are the job's own, less
	// than 0 where what was measured on its GPU model is divided by them, 0 where the job
	// itself was measured.
	Time, Power float64
	Clocks      bool // it says how the job responds to clocks, too
}

// StartRule says when a queued task may start on a GPU that became free.
type StartRule int

// The start rules of the EDL reference: right at the end of the task before,
// or at the next whole slot.
const (
	StartContinuous StartRule = iota
	StartSlot
)

// String returns the rule's name on the command line.
func (r StartRule) String() string {
	if r == StartSlot {
		return "slot"
	}
	return "continuous"
}

// ParseStartRule reads "slot" or "continuous".
func ParseStartRule(s string) (StartRule, error) {
	switch s {
	case "slot":
		return StartSlot, nil
	case "continuous":
		return StartContinuous, nil
	}
	return 0, fmt.Errorf("unknown start rule %q, want slot or continuous", s)
}

// Mode tells how a plan was made.
type Mode int

// Offline: everything is known at time 0. Online: nothing about a task is used
// before it arrives. Clairvoyant: tasks arrive over time but all are known.
const (
	Offline Mode = iota
	Online
	Clairvoyant
)

// String returns the mode's name in JSON.
func (m Mode) String() string {
	return [...]string{"offline", "online", "clairvoyant"}[m]
}

// Problem is what a policy has to plan.
type Problem struct {
	Cluster   Cluster
	Tasks     []Task
	Start     StartRule
	Mode      Mode
	Objective dvfsmodel.Objective // zero: energy alone
	Snapshot  *Snapshot           // where plans begin; nil: at 0, with nothing running
	// WaitWeight is what a second that a task waits costs by GPU, in the unit of the
	// objective's weights; 0: waiting is free. It is for objectives without a delay power.
	WaitWeight float64
	// Currency is what the objective's weights are in, for a joule and for a second of a
	// GPU, such as EUR; empty: only their ratio counts.
	Currency string
	// MaxTurnaround is how many times as long as first come, first served a task may take whose due
	// time was implied; 0: none was.
	MaxTurnaround float64
}

// ModeOf returns the mode that suits the arrivals: Offline when every task is there
// at time 0, Online otherwise.
func ModeOf(tasks []Task) Mode {
	for i := range tasks {
		if tasks[i].Arrival > 0 {
			return Online
		}
	}
	return Offline
}

// Option returns the task's option on a GPU model, or -1.
func (t *Task) Option(model string) int {
	for i := range t.Options {
		if t.Options[i].Model == model {
			return i
		}
	}
	return -1
}

// NodeCount returns how many nodes the task runs on.
func (o *Option) NodeCount() int { return max(1, o.Nodes) }

// PerNode returns the number of GPUs that it needs of each of its nodes.
func (o *Option) PerNode() int { return o.GPUs / o.NodeCount() }

// PerNode returns the cores and the memory that the task needs of each node by an option.
func (t *Task) PerNode(option int) (cpus, mem float64) {
	nodes := float64(t.Options[option].NodeCount())
	return t.CPUs / nodes, t.MemGiB / nodes
}

// isMultiGPU reports whether the task needs more than one GPU of some model, or none.
func (t *Task) isMultiGPU() bool {
	for i := range t.Options {
		if t.Options[i].GPUs != 1 {
			return true
		}
	}
	return false
}

// CanBeCapped reports whether a power cap may be set for the task somewhere.
func (t *Task) CanBeCapped() bool {
	return slices.ContainsFunc(t.Options, func(o Option) bool { return len(dvfsmodel.Caps(o.Response)) > 0 })
}

// IsGang reports whether the task runs on several nodes of some model.
func (t *Task) IsGang() bool {
	return slices.ContainsFunc(t.Options, func(o Option) bool { return o.Nodes > 1 })
}

// HasGangs reports whether one of the tasks runs on several nodes of some model.
func (p *Problem) HasGangs() bool {
	for i := range p.Tasks {
		if p.Tasks[i].IsGang() {
			return true
		}
	}
	return false
}

// nextSlot rounds a time up to a whole slot where starts are bound to them.
func (p *Problem) nextSlot(t float64) float64 {
	if p.Start == StartContinuous {
		return t
	}
	slot := p.Cluster.Slot
	return math.Ceil(t/slot) * slot
}

// admits reports whether a task may run on nodes of the class, by partition.
func (k *NodeClass) admits(t *Task) bool {
	return len(k.Partitions) == 0 || len(t.Partitions) == 0 ||
		slices.ContainsFunc(t.Partitions, func(name string) bool {
			return slices.Contains(k.Partitions, name)
		})
}

// HasPartitions reports whether a class doesn't admit one of the tasks.
func (p *Problem) HasPartitions() bool {
	for i := range p.Cluster.Classes {
		for j := range p.Tasks {
			if !p.Cluster.Classes[i].admits(&p.Tasks[j]) {
				return true
			}
		}
	}
	return false
}

// TimeBudget returns the time between arrival and due time, capped by the run-time limit:
// the longest that the task may take if it starts at once, seconds.
func (t *Task) TimeBudget() float64 { return t.TimeBudgetFrom(t.Arrival) }

// TimeBudgetFrom returns the longest that the task may take if it starts then, seconds.
func (t *Task) TimeBudgetFrom(start float64) float64 { return min(t.Due-start, t.Limit) }

// NeedsMoreThanGPUs reports whether a task can use up something of a node before the node's
// GPUs are used up: part of a GPU, or more CPUs or memory by GPU than the node
// has by GPU. Tasks that don't are bound by GPUs alone.
func (p *Problem) NeedsMoreThanGPUs(task int) bool {
	t := &p.Tasks[task]
	if t.Share < 1 {
		return true
	}
	if t.CPUs == 0 && t.MemGiB == 0 {
		return false
	}
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		if option := t.Option(k.Model); option >= 0 {
			cpus, mem := t.PerNode(option)
			// How many such tasks the GPUs of a node would hold.
			tasks := float64(k.GPUs) / float64(t.Options[option].PerNode())
			if (k.CPUs > 0 && cpus*tasks > k.CPUs) || (k.MemGiB > 0 && mem*tasks > k.MemGiB) {
				return true
			}
		}
	}
	return false
}

// AnyNeedsMoreThanGPUs reports whether one of the tasks does what [Problem.NeedsMoreThanGPUs] tells.
func (p *Problem) AnyNeedsMoreThanGPUs() bool {
	for i := range p.Tasks {
		if p.NeedsMoreThanGPUs(i) {
			return true
		}
	}
	return false
}

// ClassObjective returns what one GPU's second costs beside the energy that its model knows,
// watts: the objective's price of time, that of the waiting of others, and the class's host power.
func (p *Problem) ClassObjective(class int) dvfsmodel.Objective {
	k := &p.Cluster.Classes[class]
	return p.Objective.WithHost(k.HostW).WithBacklog(p.WaitWeight, k.Backlog)
}

// Snapshot is a cluster at work: plans go on from there. Tasks that arrived
// before Now wait since, or run. Nodes on which something runs are on and ready.
type Snapshot struct {
	Now     float64 // seconds; 0 offline
	Running []RunningTask
}

// RunningTask is a task that runs: since when, on which node class, and until when as
// it is predicted now. One for which the cluster has no room left is listed as
// unplaced, and the plan goes on without it.
type RunningTask struct {
	Task, Class int
	Start, End  float64 // seconds; End is after the present
}

// RunningTasks tells by task which ones run at the present; nil where none does.
func (p *Problem) RunningTasks() []bool {
	if p.Snapshot == nil || len(p.Snapshot.Running) == 0 {
		return nil
	}
	runs := make([]bool, len(p.Tasks))
	for _, r := range p.Snapshot.Running {
		runs[r.Task] = true
	}
	return runs
}

// Sharing is how the GPUs of a cluster respond that tasks share by [UsageProfile].
type Sharing struct {
	// Physics are power and run time by a GPU's frequency. A GPU draws its power
	// while anything runs on it, whatever its tasks use of it. Run times at
	// default clocks are those at the highest frequency.
	Physics sharing.Physics
	// Contention is what sharing was measured to cost in time; nil:
	// [sharing.LinearCurve].
	Contention *sharing.Curve
}

// UsageProfile is what a task uses of each of its GPUs while it runs alone at the
// highest frequency.
type UsageProfile struct {
	// UtilPct is the utilisation by slot, percent. Profiles are laid over each
	// other slot by slot, whenever their tasks start, and repeat to the end.
	UtilPct []float64
	SlotS   float64 // length of a slot, seconds: the same for all tasks
	MemGB   float64 // memory on each GPU, GB
	Kappa   float64 // how many times its time alone at the highest frequency it may take
}

// HasRoom reports whether the class has enough nodes, with the GPUs, the CPUs and the
// memory that a task needs of each by an option; none has for option -1.
func (k *NodeClass) HasRoom(t *Task, option int) bool {
	return option >= 0 && t.Options[option].PerNode() <= k.GPUs &&
		(k.Count == 0 || t.Options[option].NodeCount() <= k.Count) && k.hasCPUsAndMemory(t, option)
}

// CanRun reports whether nodes of the class can run a task by an option, -1 for none: there
// are enough of them, each has what the task needs of it, and they are in one of its
// partitions.
func (k *NodeClass) CanRun(t *Task, option int) bool { return k.HasRoom(t, option) && k.admits(t) }

// hasCPUsAndMemory reports whether an empty node has the CPUs and the memory for the task, or for
// its part on one node.
func (k *NodeClass) hasCPUsAndMemory(t *Task, option int) bool {
	cpus, mem := t.PerNode(option)
	return (k.CPUs == 0 || cpus <= k.CPUs) && (k.MemGiB == 0 || mem <= k.MemGiB)
}

// FirstGPUs returns the set of the n lowest GPUs, as a task gets them on a fresh
// node.
func FirstGPUs(n int) GPUSet { return GPUSet(1)<<uint(n) - 1 }
