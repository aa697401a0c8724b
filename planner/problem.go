package planner

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// MaxGPUs is the most GPUs that a node may have: a [GPUSet] is a word.
const MaxGPUs = 64

// MaxNodes is the most nodes that a class may be limited to: a plan lists those that
// are always on.
const MaxNodes = 10_000_000

// GPUSet is a set of GPUs of one node, bit i for GPU i.
type GPUSet uint64

// Len is the number of GPUs in the set.
func (s GPUSet) Len() int { return bits.OnesCount64(uint64(s)) }

// First is the lowest GPU in the set; 64 when it is empty.
func (s GPUSet) First() int { return bits.TrailingZeros64(uint64(s)) }

// Has reports whether GPU i is in the set.
func (s GPUSet) Has(i int) bool { return s>>uint(i)&1 == 1 }

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
	Partitions  []string      // one of which its nodes must be in; empty: any
	Profile     *UsageProfile // what it uses of a GPU; nil: not known, so that nothing else may be beside it
}

// NewTask is a task that arrives at 0, takes whole GPUs and nothing else that runs
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
	Assumed  bool // its power is neither stated nor modelled, but assumed
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

// String is the rule's name on the command line.
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

// String is the mode's name in JSON.
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
}

// ModeOf is the mode that suits the arrivals: Offline when every task is there
// at time 0, Online otherwise.
func ModeOf(tasks []Task) Mode {
	for i := range tasks {
		if tasks[i].Arrival > 0 {
			return Online
		}
	}
	return Offline
}

// Option is the task's option on a GPU model, or -1.
func (t *Task) Option(model string) int {
	for i := range t.Options {
		if t.Options[i].Model == model {
			return i
		}
	}
	return -1
}

// NodeCount is how many nodes the task runs on.
func (o *Option) NodeCount() int { return max(1, o.Nodes) }

// PerNode is the number of GPUs that it needs of each of its nodes.
func (o *Option) PerNode() int { return o.GPUs / o.NodeCount() }

// PerNode are the cores and the memory that the task needs of each node by an option.
func (t *Task) PerNode(option int) (cpus, mem float64) {
	nodes := float64(t.Options[option].NodeCount())
	return t.CPUs / nodes, t.MemGiB / nodes
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

// TimeBudget is the time between arrival and due time, capped by the run-time limit:
// the longest that the task may take if it starts at once, seconds.
func (t *Task) TimeBudget() float64 { return t.TimeBudgetFrom(t.Arrival) }

// TimeBudgetFrom is the longest that the task may take if it starts then, seconds.
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

// ClassObjective is what one GPU's second costs beside the energy that its model knows,
// watts: the objective's price of time and the class's host power.
func (p *Problem) ClassObjective(class int) dvfsmodel.Objective {
	return p.Objective.WithHost(p.Cluster.Classes[class].HostW)
}

// Validate reports the first thing that makes the problem meaningless. Tasks
// that merely cannot be planned are not errors. A response with a method
// Validate() error is asked for what is wrong with it.
func (p *Problem) Validate() error {
	if len(p.Tasks) == 0 {
		return errors.New("the batch has no jobs")
	}
	if err := p.Cluster.Validate(); err != nil {
		return err
	}
	if err := p.Objective.Validate(); err != nil {
		return err
	}
	if !(p.WaitWeight >= 0) || math.IsInf(p.WaitWeight, 0) {
		return fmt.Errorf("weight of waiting %v, want a finite number of 0 or more", p.WaitWeight)
	}
	if p.WaitWeight > 0 && p.Objective.DelayPower > 0 {
		return errors.New("a weight of waiting doesn't go with products of energy and time")
	}
	if p.Mode < Offline || p.Mode > Clairvoyant {
		return fmt.Errorf("mode %d, want offline, online or clairvoyant", int(p.Mode))
	}
	if p.Start != StartContinuous && p.Start != StartSlot {
		return fmt.Errorf("start rule %d, want continuous or slot", int(p.Start))
	}
	if p.Start == StartSlot && p.Cluster.Slot <= 0 {
		return errors.New("start rule slot needs a slot length above 0")
	}
	var responses dvfsmodel.Validator
	for i := range p.Tasks {
		if err := p.Tasks[i].validate(&responses); err != nil {
			return fmt.Errorf("job %q: %w", p.Tasks[i].ID, err)
		}
		if p.Mode == Offline && p.Tasks[i].Arrival > 0 {
			return fmt.Errorf("job %q arrives at %v s: not an offline problem", p.Tasks[i].ID,
				p.Tasks[i].Arrival)
		}
	}
	if p.Snapshot != nil {
		if err := p.Snapshot.validate(p); err != nil {
			return err
		}
	}
	return p.validateProfiles()
}

// Validate reports the first class that makes no sense.
func (c *Cluster) Validate() error {
	if len(c.Classes) == 0 {
		return errors.New("the cluster has no nodes")
	}
	if !(c.Slot >= 0) || math.IsInf(c.Slot, 0) {
		return fmt.Errorf("slot length %v s, want 0 or more", c.Slot)
	}
	for i := range c.Classes {
		if err := c.Classes[i].validate(); err != nil {
			return fmt.Errorf("node class %q: %w", c.Classes[i].Name, err)
		}
	}
	if c.Sharing != nil {
		if err := c.Sharing.Validate(); err != nil {
			return fmt.Errorf("shared GPUs: %w", err)
		}
	}
	return nil
}

// validate reports the first thing about the class that makes no sense.
func (k *NodeClass) validate() error {
	if k.GPUs < 1 || k.GPUs > MaxGPUs {
		return fmt.Errorf("%d GPUs per node, want 1 to %d", k.GPUs, MaxGPUs)
	}
	if k.Count < 0 || k.Count > MaxNodes {
		return fmt.Errorf("%d nodes, want 1 to %d, or 0 for as many as wanted", k.Count, MaxNodes)
	}
	for _, f := range [...]struct {
		name  string
		value float64
	}{
		{"CPUs", k.CPUs},
		{"memory", k.MemGiB},
		{"idle power", float64(k.IdleW)},
		{"host power", float64(k.HostW)},
		{"sleep power", float64(k.SleepW)},
		{"turn-on energy", float64(k.TurnOn)},
		{"turn-on delay", k.TurnOnDelay},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return fmt.Errorf("%s is %v, want a finite number of 0 or more", f.name, f.value)
		}
	}
	if k.SharedGB != nil && len(k.SharedGB) != k.GPUs {
		return fmt.Errorf("memory of %d shared GPUs, want it of each of %d", len(k.SharedGB), k.GPUs)
	}
	for _, gb := range k.SharedGB {
		if !(gb > 0) || math.IsInf(gb, 0) {
			return fmt.Errorf("a shared GPU has %v GB, want a finite number above 0", gb)
		}
	}
	return k.Steps.Validate()
}

// validate reports the first thing about the task that makes no sense.
func (t *Task) validate(responses *dvfsmodel.Validator) error {
	if !(t.Arrival >= 0) || math.IsInf(t.Arrival, 0) {
		return fmt.Errorf("arrival %v s, want a finite number of 0 or more", t.Arrival)
	}
	if !(t.Deadline >= t.Arrival) || math.IsNaN(t.Due) {
		return fmt.Errorf("deadline %v s (due %v s), want it not before the arrival, %v s", t.Deadline,
			t.Due, t.Arrival)
	}
	if t.Due > t.Deadline {
		return fmt.Errorf("due %v s, want it not after the deadline, %v s", t.Due, t.Deadline)
	}
	if !(t.Limit > 0) || !(t.Share > 0) || t.Share > 1 {
		return fmt.Errorf("limit %v s and share %v, want a positive limit and a share in (0, 1]",
			t.Limit, t.Share)
	}
	if !(t.CPUs >= 0) || !(t.MemGiB >= 0) {
		return fmt.Errorf("%v CPUs and %v GiB, want 0 or more", t.CPUs, t.MemGiB)
	}
	if t.Profile != nil && t.IsGang() {
		return errors.New("it has a profile and runs on several nodes, want GPUs for itself")
	}
	for i := range t.Options {
		o := &t.Options[i]
		if o.GPUs < 0 || o.Response == nil || (t.Share < 1 && o.GPUs != 1) {
			return fmt.Errorf("option %q: %d GPUs (share %v) or no model", o.Model, o.GPUs, t.Share)
		}
		if o.Nodes < 0 || (o.Nodes > 1 && (o.PerNode() == 0 || o.GPUs%o.Nodes != 0 || t.Share < 1)) {
			return fmt.Errorf("option %q: %d GPUs (share %v) on %d nodes, want as many whole GPUs on each",
				o.Model, o.GPUs, t.Share, o.Nodes)
		}
		if err := responses.Validate(o.Response); err != nil {
			return fmt.Errorf("option %q: %w", o.Model, err)
		}
	}
	return nil
}
