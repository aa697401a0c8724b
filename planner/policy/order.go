package policy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/epplan/epplan/planner"
)

// Solve is [planner.Solve] in an order of its own: tasks by ID, node classes by
// name. What is equal otherwise is decided by that, and not by the order in which a
// file happens to list it. A problem that turns out otherwise than predicted keeps the
// order that it has.
func Solve(
	ctx context.Context, p *planner.Problem, policy *planner.Policy, options *planner.Options,
) (*planner.Plan, error) {
	if options != nil && options.Truth != nil {
		return planner.Solve(ctx, p, policy, options)
	}
	o := problemOrderOf(p)
	if o.tasks == nil && o.classes == nil {
		return planner.Solve(ctx, p, policy, options)
	}
	if options != nil && options.Started != nil && o.tasks != nil {
		told, started := *options, options.Started
		told.Started = func(task int) { started(o.tasks[task]) }
		options = &told
	}
	plan, err := planner.Solve(ctx, o.problem(p), policy, options)
	if err != nil {
		return nil, o.translateError(err)
	}
	o.restore(plan)
	return plan, nil
}

// problemOrder is where the tasks and classes of an ordered problem are in the one as it was
// given; nil: they are in order.
type problemOrder struct{ tasks, classes []int }

func problemOrderOf(p *planner.Problem) problemOrder {
	var o problemOrder
	if !slices.IsSortedFunc(p.Tasks, func(a, b planner.Task) int { return compareIDs(a.ID, b.ID) }) {
		o.tasks = sortedIndexes(len(p.Tasks), func(a, b int) int {
			return compareIDs(p.Tasks[a].ID, p.Tasks[b].ID)
		})
	}
	byName := func(a, b int) int { return compareIDs(p.Cluster.Classes[a].Name, p.Cluster.Classes[b].Name) }
	if all := sortedIndexes(len(p.Cluster.Classes), byName); !slices.IsSorted(all) {
		o.classes = all
	}
	return o
}

// sortedIndexes returns the numbers below n in an order, as they come where that has them equal.
func sortedIndexes(n int, compare func(a, b int) int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, compare)
	return all
}

// problem returns the ordered one.
func (o problemOrder) problem(p *planner.Problem) *planner.Problem {
	ordered := *p
	if o.tasks != nil {
		ordered.Tasks = make([]planner.Task, len(p.Tasks))
		for i, from := range o.tasks {
			ordered.Tasks[i] = p.Tasks[from]
		}
	}
	if o.classes != nil {
		ordered.Cluster.Classes = make([]planner.NodeClass, len(p.Cluster.Classes))
		for i, from := range o.classes {
			ordered.Cluster.Classes[i] = p.Cluster.Classes[from]
		}
	}
	if p.Snapshot != nil {
		ordered.Snapshot = o.snapshot(p.Snapshot)
	}
	return &ordered
}

// snapshot returns what runs, by the numbers of the ordered problem.
func (o problemOrder) snapshot(p *planner.Snapshot) *planner.Snapshot {
	ordered := &planner.Snapshot{Now: p.Now, Running: slices.Clone(p.Running)}
	for i := range ordered.Running {
		r := &ordered.Running[i]
		if o.tasks != nil {
			r.Task = slices.Index(o.tasks, r.Task)
		}
		if o.classes != nil {
			r.Class = slices.Index(o.classes, r.Class)
		}
	}
	return ordered
}

// restore makes a plan of the ordered problem one of the problem as it was given.
func (o problemOrder) restore(plan *planner.Plan) {
	if o.classes != nil {
		for i := range plan.Nodes {
			plan.Nodes[i].Class = o.classes[plan.Nodes[i].Class]
		}
	}
	if o.tasks == nil {
		return
	}
	assignments := make([]planner.Assignment, len(plan.Assignments))
	for i, to := range o.tasks {
		assignments[to] = plan.Assignments[i]
	}
	plan.Assignments = assignments
	for i := range plan.Unplaced {
		plan.Unplaced[i].Task = o.tasks[plan.Unplaced[i].Task]
	}
	slices.SortFunc(plan.Unplaced, func(a, b planner.Unplaced) int { return cmp.Compare(a.Task, b.Task) })
	o.restoreList(plan.Misses)
	if plan.Shared != nil {
		o.restoreList(plan.Shared.Tasks)
		o.restoreList(plan.Shared.Slowed)
	}
}

func (o problemOrder) restoreList(tasks []int) {
	for i, task := range tasks {
		tasks[i] = o.tasks[task]
	}
	slices.Sort(tasks)
}

// translateError is an error about the ordered problem as one about the problem as it was given.
func (o problemOrder) translateError(err error) error {
	if class, ok := errors.AsType[*planner.ClassError](err); ok && o.classes != nil {
		class.Class = o.classes[class.Class]
	}
	return err
}

// compareIDs orders names as people do: numbers in them by size, so that job-9 comes
// before job-10.
func compareIDs(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		if isDigit(x[0]) && isDigit(y[0]) {
			var n, m string
			n, x = leadingDigits(x)
			m, y = leadingDigits(y)
			if c := cmp.Or(cmp.Compare(len(n), len(m)), strings.Compare(n, m)); c != 0 {
				return c
			}
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// leadingDigits takes the digits at the beginning, without leading zeros.
func leadingDigits(text string) (digits, rest string) {
	end := 0
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	return strings.TrimLeft(text[:end], "0"), text[end:]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
