package planner

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// Status says how far a plan covers its batch.
type Status int

// Complete: every task is placed and meets its deadline. Missed: every task is
// placed, but some end after their deadlines. Partial: some tasks cannot be
// placed at all.
const (
	Complete Status = iota
	Missed
	Partial
)

// String returns the status in JSON.
func (s Status) String() string { return [...]string{"complete", "missed", "partial"}[s] }

// Plan is a schedule for a problem: one assignment for each task, the nodes
// that are on and when, and the energy that all of it takes.
type Plan struct {
	Policy      string
	From        string // the policy whose plan was improved into this one; empty: Policy's own
	Status      Status
	Assignments []Assignment  // by task; Node is -1 where a task isn't placed
	Nodes       []PlannedNode // by node number
	Unplaced    []Unplaced    // tasks that cannot be placed, by task
	Misses      []int         // tasks that end after their deadlines, by task
	Ledger      Ledger
	Warnings    []error
	Shared      *Shared // nil where no GPU is shared by profile
	Cut         bool    // the search for a better one was stopped before it was done
	// Clocks is the clock pair of all tasks on a GPU model, by its name, where there
	// is one for all that have a model of how they respond; nil: each has its own.
	Clocks map[string]dvfsmodel.Point
	// Least is the plan with the least cost of those found, where this one costs somewhat more for a shorter
	// mean time in the system; nil: this one.
	Least *Plan
}

// Assignment is where, when and at which clocks a task runs. On a GPU that is
// shared by profile, where clocks and speed change with who is beside it, the
// point has means over its run, and its part of the GPU's energy.
type Assignment struct {
	Node   int32           // index in Plan.Nodes; -1: not placed
	Option int32           // index in Task.Options
	GPUs   GPUSet          // GPUs of the node
	More   []Part          // further nodes of the same class, of a task on several
	Start  float64         // seconds
	End    float64         // seconds
	Point  dvfsmodel.Point // setting, run time, power and energy of one GPU
	Reason Reason
}

// Part is what a task has of one node.
type Part struct {
	Node int32 // index in Plan.Nodes
	GPUs GPUSet
}

// Parts yields what a placed task has of each of its nodes.
func (a *Assignment) Parts(yield func(Part) bool) {
	if !yield(Part{a.Node, a.GPUs}) {
		return
	}
	for _, part := range a.More {
		if !yield(part) {
			return
		}
	}
}

// GPUCount returns the number of GPUs of all its nodes together.
func (a *Assignment) GPUCount() int {
	count := a.GPUs.Len()
	for _, part := range a.More {
		count += part.GPUs.Len()
	}
	return count
}

// PlannedNode is a server that the plan uses, and when it is on.
type PlannedNode struct {
	Class int // index in Cluster.Classes
	On    []Interval
}

// End returns when the last node goes off.
func (plan *Plan) End() (end float64) {
	for n := range plan.Nodes {
		for _, on := range plan.Nodes[n].On {
			end = max(end, on.To)
		}
	}
	return end
}

// NodeNumbers returns each node's number among those of its class, from 0: the class and this number name a
// node. Nodes of a plan themselves are numbered over all classes.
func (plan *Plan) NodeNumbers() []int32 {
	numbers, next := make([]int32, len(plan.Nodes)), make(map[int]int32)
	for i := range plan.Nodes {
		class := plan.Nodes[i].Class
		numbers[i] = next[class]
		next[class]++
	}
	return numbers
}

// Interval is a span of time, seconds.
type Interval struct{ From, To float64 }

// Len returns the interval's length.
func (iv Interval) Len() float64 { return iv.To - iv.From }

// Unplaced is a task that cannot be placed and why.
type Unplaced struct {
	Task int
	Why  string
	// Finish with GPUs free for it from its arrival on, whoever else waits or runs,
	// seconds; +Inf: never on this cluster.
	Earliest float64
}

// Power returns the mean power of the whole job without its host share, watts: all
// its GPUs, or its share of one.
func (a *Assignment) Power(t *Task) dvfsmodel.Watt {
	return a.Point.Power * dvfsmodel.Watt(gpuWorth(t, a))
}

// Energy returns the run energy of the whole job without its host share, joules.
func (a *Assignment) Energy(t *Task) dvfsmodel.Joule {
	return a.Point.Energy * dvfsmodel.Joule(gpuWorth(t, a))
}

// gpuWorth returns how many GPUs' worth the task occupies.
func gpuWorth(t *Task, a *Assignment) float64 {
	if t.Share < 1 {
		return t.Share
	}
	return float64(a.GPUCount())
}

// PastDue lists the tasks that end after their due times, by task: those that
// miss a deadline, and those that end later than was planned for.
func (plan *Plan) PastDue(p *Problem) []int {
	var tasks []int
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 && isLate(a.End, min(p.Tasks[i].Due, p.Tasks[i].Deadline)) {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// Shared is what a plan says of tasks that share GPUs.
type Shared struct {
	Tasks          []int           // those that run on GPUs shared by profile, ascending
	ClockIntervals []ClockInterval // what each GPU's clock was while anything ran, by GPU and time
	// Of Tasks: those that take longer than Kappa or their limits allow, ascending.
	Slowed []int
}

// ClockInterval is a time over which a GPU runs something at one frequency. Clocks
// belong to GPUs, not to tasks.
type ClockInterval struct {
	Node, GPU int
	From, To  float64 // seconds
	MHz       dvfsmodel.MHz
}

// Ledger is the energy that a plan takes, by cause. The totals are the sums of
// the nodes' rows, in their order: they add up exactly.
type Ledger struct {
	Run    dvfsmodel.Joule // GPUs that run tasks
	Idle   dvfsmodel.Joule // GPUs of nodes that are on and run nothing
	Host   dvfsmodel.Joule // host power of nodes that are on
	TurnOn dvfsmodel.Joule // switching nodes on
	Sleep  dvfsmodel.Joule // nodes that are off, until the plan ends
	Nodes  []NodeEnergy    // by node number
	End    float64         // when the last node goes off, seconds
}

// NodeEnergy is one node's row of the ledger.
type NodeEnergy struct{ Run, Idle, Host, TurnOn, Sleep dvfsmodel.Joule }

// Total returns the energy of everything.
func (l *Ledger) Total() dvfsmodel.Joule { return l.Run + l.Idle + l.Host + l.TurnOn + l.Sleep }

// DeadlineSlack is the relative rounding that a finish at the deadline may
// carry.
const DeadlineSlack = 1e-9

// isLate reports whether an end time misses a deadline by more than rounding.
func isLate(end, deadline float64) bool {
	return end > deadline && end > deadline+DeadlineSlack*max(1, math.Abs(deadline))
}
