// Package check says whether a plan is a valid answer to a problem. It computes all it
// needs from the two of them, and shares no code with what made the plan: of the planner
// it uses the types of problems and plans, and none of its functions.
package check

import (
	"fmt"
	"math"
	"strings"

	"github.com/epplan/epplan/planner"
)

// Plan reports whether a plan is a valid answer to a problem. Where rules are broken,
// the error is an [Error] that names every place. Whether the problem itself makes sense
// is for [planner.Problem.Validate] to say.
//
// Rounding is allowed for: 1e-9 relative, of the larger of the value and 1.
//
// It takes time in n·log n for n tasks.
func Plan(p *planner.Problem, plan *planner.Plan) error {
	c := &checker{p: p, plan: plan}
	if c.checkShape() {
		c.checkListing()
		c.checkNodes()
		c.checkPresent()
		c.checkShared()
		c.checkTasks()
		c.checkCapacity()
		c.checkLedger()
	}
	if len(c.found) == 0 {
		return nil
	}
	return &Error{Violations: c.found}
}

// Kind is the rule that a violation breaks.
type Kind string

// The rules of a plan.
const (
	Shape   Kind = "shape"   // lists are as long as they must be, and indexes exist
	Listing Kind = "listing" // a task is either placed or listed as unplaced
	Status  Kind = "status"  // the status says what the lists say
	// GPU model, number of GPUs and GPUs suit the task and the node.
	Place   Kind = "place"
	Arrival Kind = "arrival" // no task starts before it arrives
	Slot    Kind = "slot"    // with the slot rule, tasks start at whole slots
	Power   Kind = "power"   // a task's node is on and ready from start to end
	End     Kind = "end"     // a task ends its run time after its start
	Model   Kind = "model"   // run time, power and energy are the model's
	// The GPU supports the setting, and the MHz are the setting's.
	Clocks Kind = "clocks"
	// A power cap is one that may be set there: the GPU takes it, and it is below the default limit.
	Cap      Kind = "cap"
	Limit    Kind = "limit"    // no task runs longer than its limit
	Deadline Kind = "deadline" // a task that ends late is listed as a miss
	Misses   Kind = "misses"   // nothing else is
	// a task on several nodes has different ones of one class, and no others.
	Gang      Kind = "gang"
	Present   Kind = "present"   // what runs at the present goes on as it does
	Overlap   Kind = "overlap"   // a whole GPU runs one task at a time
	Shares    Kind = "shares"    // shares of a GPU add up to 1 at most
	Settings  Kind = "settings"  // who shares a GPU runs at the same clocks
	CPUs      Kind = "cpus"      // a node's cores are never overbooked
	Memory    Kind = "memory"    // nor is its memory
	Count     Kind = "count"     // a class has only so many nodes
	Intervals Kind = "intervals" // times of being on are finite, in order and apart
	// Only tasks with profiles share GPUs, which have clocks while they run.
	Sharing Kind = "sharing"
	Rate    Kind = "rate" // a task that shares GPUs ends when its work is done
	// a task that takes longer than it tolerates is listed, and nothing else is.
	Slowed Kind = "slowed"
	Ledger Kind = "ledger" // every joule is accounted for, and sums are sums
)

// Violation is one place where a plan breaks a rule.
type Violation struct {
	Kind Kind
	Task int // index in the problem's Tasks; -1: no task is to blame
	Node int // index in the plan's Nodes; -1: no node is to blame
	Msg  string
}

// Error lists what [Plan] found, at least one violation.
type Error struct{ Violations []Violation }

// Error quotes the first few violations.
func (e *Error) Error() string {
	const most = 5
	var b strings.Builder
	fmt.Fprintf(&b, "the plan is invalid in %d places: ", len(e.Violations))
	for i, v := range e.Violations {
		if i == most {
			fmt.Fprintf(&b, "; and %d more", len(e.Violations)-most)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", v.Kind, v.Msg)
	}
	return b.String()
}

// tolerance is the relative rounding that a number of a plan may carry.
const tolerance = 1e-9

// checker collects violations. The bool slices say which tasks and nodes can be
// looked at without leaving a slice.
type checker struct {
	p         *planner.Problem
	plan      *planner.Plan
	found     []Violation
	placed    []bool         // tasks on a known node of a known class, by a known option
	validNode []bool         // nodes of a known class
	apart     []bool         // tasks that share GPUs by profile
	ready     []bool         // nodes that are ready from the start: something runs there at the present
	buffer    []planner.Part // of parts
}

// report records a violation. Task and node are -1 where they play no part.
func (c *checker) report(kind Kind, task, node int, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if node >= 0 {
		msg = fmt.Sprintf("node %d: %s", node, msg)
	}
	if task >= 0 {
		msg = fmt.Sprintf("job %q: %s", c.p.Tasks[task].ID, msg)
	}
	c.found = append(c.found, Violation{Kind: kind, Task: task, Node: node, Msg: msg})
}

// checkShape reports whether the plan has an assignment for each task, and notes the
// tasks and nodes whose indexes are sound.
func (c *checker) checkShape() bool {
	if len(c.plan.Assignments) != len(c.p.Tasks) {
		c.report(Shape, -1, -1, "%d assignments for %d jobs", len(c.plan.Assignments), len(c.p.Tasks))
		return false
	}
	c.validNode = make([]bool, len(c.plan.Nodes))
	for n := range c.plan.Nodes {
		class := c.plan.Nodes[n].Class
		c.validNode[n] = class >= 0 && class < len(c.p.Cluster.Classes)
		if !c.validNode[n] {
			c.report(Shape, -1, n, "class %d doesn't exist", class)
		}
	}
	c.placed = make([]bool, len(c.p.Tasks))
	for i := range c.plan.Assignments {
		c.placed[i] = c.hasValidPlace(i)
	}
	return true
}

// hasValidPlace reports whether a task is placed by indexes that exist.
func (c *checker) hasValidPlace(task int) bool {
	a := &c.plan.Assignments[task]
	switch {
	case a.Node == -1:
		return false
	case a.Node < 0 || int(a.Node) >= len(c.plan.Nodes):
		c.report(Shape, task, int(a.Node), "there is no such node")
		return false
	case a.Option < 0 || int(a.Option) >= len(c.p.Tasks[task].Options):
		c.report(Shape, task, int(a.Node), "option %d doesn't exist", a.Option)
		return false
	case c.p.Tasks[task].Options[a.Option].Response == nil:
		c.report(Shape, task, int(a.Node), "option %d has no model", a.Option)
		return false
	}
	for _, part := range a.More {
		if part.Node < 0 || int(part.Node) >= len(c.plan.Nodes) {
			c.report(Shape, task, int(part.Node), "there is no such node")
			return false
		}
		if !c.validNode[part.Node] {
			return false
		}
	}
	return c.validNode[a.Node]
}

// parts returns what a task has of each of its nodes, the first one's first.
func (c *checker) parts(task int) []planner.Part {
	a := &c.plan.Assignments[task]
	c.buffer = append(append(c.buffer[:0], planner.Part{Node: a.Node, GPUs: a.GPUs}), a.More...)
	return c.buffer
}

// checkListing checks that each task is accounted for once, and that the status
// agrees with the lists. Misses are checked with the deadlines.
func (c *checker) checkListing() {
	unplaced := make([]bool, len(c.p.Tasks))
	last := -1
	for _, u := range c.plan.Unplaced {
		if u.Task < 0 || u.Task >= len(unplaced) {
			c.report(Shape, -1, -1, "unplaced job %d doesn't exist", u.Task)
			continue
		}
		if u.Task <= last {
			c.report(Listing, u.Task, -1, "out of order or twice among the unplaced")
		}
		last = u.Task
		unplaced[u.Task] = true
	}
	for i := range c.plan.Assignments {
		switch node := c.plan.Assignments[i].Node; {
		case node == -1 && !unplaced[i]:
			c.report(Listing, i, -1, "no node, and not listed as unplaced")
		case node >= 0 && unplaced[i]:
			c.report(Listing, i, int(node), "placed, and listed as unplaced")
		}
	}
	want := planner.Complete
	if len(c.plan.Misses) > 0 {
		want = planner.Missed
	}
	if len(c.plan.Unplaced) > 0 {
		want = planner.Partial
	}
	if c.plan.Status != want {
		c.report(Status, -1, -1, "status %d with %d jobs unplaced and %d late, want %d",
			c.plan.Status, len(c.plan.Unplaced), len(c.plan.Misses), want)
	}
}

// exceeds reports whether a is above b by more than rounding. NaN always is.
func exceeds(a, b float64) bool { return !(a <= b+rounding(b)) }

// rounding returns the error that a value may carry.
func rounding(x float64) float64 { return tolerance * max(1, math.Abs(x)) }

// differs reports whether two values differ by more than rounding at the given
// scale. NaN always does.
func differs(a, b, scale float64) bool { return !(math.Abs(a-b) <= tolerance*scale) }
