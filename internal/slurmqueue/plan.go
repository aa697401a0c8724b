package slurmqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/slurm"
)

// planTimeLimit is how long making a plan may take. A search is cut then, and its best
// plan counts; a policy that has none by then fails.
const planTimeLimit = 30 * time.Second

// NewPlan plans what waits as [PlanQueue] does, from a moment on: the order in which
// records are listed changes nothing. GPUs whose clocks aren't known take part with default ones.
// A queue in which nothing waits has an empty plan.
func NewPlan(
	ctx context.Context, q *epdapi.Queue, terms *PlanTerms, wanted *config.Planning, at time.Time,
) (*live.Plan, error) {
	made := &live.Plan{
		Policy: wanted.Policy, At: at, Until: at.Add(live.Known(wanted.Stale).Duration()),
		Jobs: []live.PlannedJob{}, CountsDeadlines: wanted.CountsDeadlines(),
	}
	chosen, err := wanted.Parse()
	if err != nil {
		return nil, err
	}
	q = limitArrays(sortedQueue(q), wanted.Window)
	own := *terms
	if own.Profiles, err = withEPDProfiles(terms.Profiles, q); err != nil {
		return nil, err
	}
	if q.Nodes, own.Profiles, err = assumeClocks(q.Nodes, own.Profiles); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(q.Jobs, waitsForGPUs) {
		return made, nil
	}
	var w WhatIf
	problem, err := w.problem(q, &own, PlanOptions{MaxTasks: wanted.Window})
	if w.Batch != nil {
		made.Without = w.Batch.Left.total() + w.Batch.Unasked
		made.NextEnd = w.Batch.nextEnd(at)
	}
	if errors.Is(err, ErrNothingWaits) {
		return made, nil
	}
	if err != nil {
		return nil, err
	}
	monitor := new(planner.Monitor)
	monitored, end := monitor.Begin(ctx)
	defer end()
	search, done := context.WithTimeoutCause(monitored, searchTime(wanted), planner.ErrCut)
	defer done()
	plan, decided, err := solveEach(search, problem, chosen, terms.Safety.MaxTurnaround)
	if err != nil {
		return nil, fmt.Errorf("plan the queue: %w", err)
	}
	w.takePlan(made, problem, plan, decided, q, &own)
	return made, nil
}

// searchTime returns how long a better plan may be looked for: the next one is to be made in time, though
// planning takes a tenth of a processor at most.
func searchTime(wanted *config.Planning) time.Duration {
	return min(planTimeLimit, live.Known(wanted.Every/(1+renewBusyFactor)).Duration())
}

// maxReplans is how often a queue is planned at most until each task has a place.
const maxReplans = 3

// solveEach plans a queue without the deadlines that can't be met: Slurm runs those jobs all the same. Which
// ones are lost to others shows only when it is planned: then it is once more. decided is, by task, as which
// one the policy decided about it.
func solveEach(
	ctx context.Context, problem *planner.Problem, chosen *planner.Policy, maxTurnaround float64,
) (plan *planner.Plan, decided []int, err error) {
	dropImpossibleDeadlines(problem)
	for round := range maxReplans {
		// Those without a deadline any more are due as others without one.
		if err := policy.ImplyDue(planner.WithoutMonitor(ctx), problem, maxTurnaround); err != nil {
			return nil, nil, err
		}
		count := 0
		decided = make([]int, len(problem.Tasks))
		plan, err = policy.SolveChecked(ctx, problem, chosen, &planner.Options{
			Seed: planner.DefaultSeed, Started: func(task int) {
				if decided[task] == 0 {
					count++
					decided[task] = count
				}
			},
		})
		if err != nil || round == maxReplans-1 || !dropMissedDeadlines(problem, plan) {
			break
		}
	}
	return plan, decided, err
}

// dropImpossibleDeadlines takes away the deadlines that tasks would miss on GPUs of their own, too: no plan
// has a place for them.
func dropImpossibleDeadlines(problem *planner.Problem) {
	for i := range problem.Tasks {
		t := &problem.Tasks[i]
		fastest := math.Inf(1)
		for k := range t.Options {
			fastest = min(fastest, t.Options[k].Response.MinTime())
		}
		if !dvfsmodel.MeetsLimit(fastest, t.Deadline-t.Arrival) {
			t.Deadline, t.Due = math.Inf(1), math.Inf(1)
		}
	}
}

// dropMissedDeadlines takes away the deadlines of tasks that have no place in a plan, and reports whether
// there are any.
func dropMissedDeadlines(problem *planner.Problem, plan *planner.Plan) (dropped bool) {
	for i := range problem.Tasks {
		if t := &problem.Tasks[i]; plan.Assignments[i].Node < 0 && !math.IsInf(t.Deadline, 1) {
			t.Deadline, t.Due, dropped = math.Inf(1), math.Inf(1), true
		}
	}
	return dropped
}

// withEPDProfiles returns the GPU models of a site with those that epd describes.
func withEPDProfiles(known *config.Profiles, q *epdapi.Queue) (*config.Profiles, error) {
	further, err := Profiles(q)
	if err != nil || further == nil {
		return known, err
	}
	return known.With(further), nil
}

func waitsForGPUs(j epdapi.QueuedJob) bool { return j.State == string(slurm.Pending) && !j.Held }

// sortedQueue returns a queue in an order of its own.
func sortedQueue(q *epdapi.Queue) *epdapi.Queue {
	out := *q
	out.Jobs, out.Nodes = slices.Clone(q.Jobs), slices.Clone(q.Nodes)
	slices.SortStableFunc(out.Jobs, func(a, b epdapi.QueuedJob) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(out.Nodes, func(a, b epdapi.QueueNode) int {
		return cmp.Or(strings.Compare(a.GPUModel, b.GPUModel), cmp.Compare(a.GPUs, b.GPUs),
			slices.Compare(a.Partitions, b.Partitions), cmp.Compare(a.Count, b.Count))
	})
	return &out
}

// nextEnd returns when the first of the jobs that run is expected to end.
func (b *Batch) nextEnd(at time.Time) time.Time {
	var next time.Time
	for i := range b.runningJobs {
		end := at.Add(live.Known(b.runningJobs[i].remaining).Duration())
		if next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next
}

// takePlan notes what is planned for each task, in the order of their starts; of those that start
// together the one comes first about which the policy decided first.
func (w *WhatIf) takePlan(
	made *live.Plan, problem *planner.Problem, plan *planner.Plan, decided []int, q *epdapi.Queue,
	terms *PlanTerms,
) {
	records := make(map[slurm.JobID]*epdapi.QueuedJob, len(q.Jobs))
	for i := range q.Jobs {
		records[slurm.JobID(q.Jobs[i].ID)] = &q.Jobs[i] //nolint:gosec // it was one of Slurm's
	}
	order := make([]int, 0, len(w.Jobs))
	for i := range w.Jobs {
		if plan.Assignments[i].Node < 0 {
			made.Without++
			continue
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(plan.Assignments[a].Start, plan.Assignments[b].Start),
			cmp.Compare(decided[a], decided[b]))
	})
	made.Needs = nodeNeeds(made, problem, plan)
	after := func(seconds float64) time.Time { return made.At.Add(live.Known(seconds).Duration()) }
	for _, i := range order {
		a, id := &plan.Assignments[i], w.Batch.RecordOf[i].ID
		task, class := &problem.Tasks[i], &problem.Cluster.Classes[plan.Nodes[a.Node].Class]
		record := records[id]
		arm := terms.arm(id, class.Model)
		p := live.PlannedJob{
			Job: uint32(id), Task: task.ID, User: record.User, Partition: record.Partition,
			Start: after(a.Start), End: after(a.End), NodeClass: class.Name, GPUModel: class.Model,
			GPUs: a.GPUCount(), TimeS: a.Point.Time, EnergyJ: float64(a.Energy(task)),
			HeldOut: arm != live.ArmTreated, Reason: a.Reason.String(),
		}
		standard := task.Options[a.Option].Response.Default()
		if arm == live.ArmConstant { // its own clocks are all that the job has
			if hardware, err := w.Batch.catalog.Hardware(class.Model); err == nil {
				standard = hardware.Default
			}
		}
		if a.Point.Core != standard.Core || a.Point.Mem != standard.Mem {
			p.Setting = dvfsmodel.Setting{Core: a.Point.Core, Mem: a.Point.Mem}
			if p.Mem == standard.Mem { // as decisions say it
				p.Mem = 0
			}
			if arm == live.ArmConstant {
				p.Reason = "drawn at random to run at constant clocks"
			}
		}
		made.EnergyJ += p.EnergyJ
		made.Jobs = append(made.Jobs, p)
	}
}

// nodeNeeds returns the nodes that run nothing at the present and get a task, the first first.
func nodeNeeds(made *live.Plan, problem *planner.Problem, plan *planner.Plan) []live.NodeNeed {
	runs := problem.RunningTasks()
	busy, first := make(map[int32]bool), make(map[int32]float64)
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		for part := range a.Parts {
			if runs != nil && runs[i] {
				busy[part.Node] = true
			} else if at, seen := first[part.Node]; !seen || a.Start < at {
				first[part.Node] = a.Start
			}
		}
	}
	needs := make([]live.NodeNeed, 0, len(first))
	for node, at := range first {
		if !busy[node] {
			class := &problem.Cluster.Classes[plan.Nodes[node].Class]
			needs = append(needs, live.NodeNeed{
				GPUModel: class.Model, GPUs: class.GPUs, Partitions: class.Partitions,
				At: made.At.Add(live.Known(at).Duration()),
			})
		}
	}
	slices.SortFunc(needs, func(a, b live.NodeNeed) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.GPUModel, b.GPUModel), cmp.Compare(a.GPUs, b.GPUs),
			slices.Compare(a.Partitions, b.Partitions))
	})
	return needs
}
