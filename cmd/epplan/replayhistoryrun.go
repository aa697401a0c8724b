package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/tune"
)

const baselinePolicy = "baseline"

type historyRun struct {
	name   string
	draws  []historyCost
	clocks map[string]dvfsmodel.Point // of all jobs, by GPU model; nil: each job has its own
}

// historyCost is what one run comes to. Groups are by user and by partition.
type historyCost struct {
	jobs, total   float64 // J: of GPUs that run jobs; of the whole cluster
	wait, longest float64 // s: mean and longest
	stretch       float64 // run time by the one at default clocks, all jobs together
	overLimit     int     // jobs that would have broken their limit
	unplaced      int
	groups        [2]map[string]groupCost
}

type groupCost struct {
	jobs   int // one that is split counts once
	tasks  int // one for each of its nodes
	joules float64
	wait   float64 // s, of all
}

// Groups of jobs.
const (
	byUser = iota
	byPartition
)

// constantSchedule is Slurm's schedule at the best constant clocks.
const constantSchedule = policy.Constant + ",pick=fcfs,place=soonest"

// constantClocks is Slurm's schedule, first come, first served, at the clock pairs that
// would have been the best for all jobs of a GPU model by what is expected of them.
func (h *historyReplay) constantClocks(
	ctx context.Context,
) (p *planner.Policy, clocks map[string]dvfsmodel.Point, err error) {
	if p, err = policy.Parse(constantSchedule, h.setup.params); err != nil {
		return nil, nil, err
	}
	plan, err := policy.SolveChecked(ctx, h.setup.problem, p, &planner.Options{Seed: h.setup.seed})
	if err != nil {
		return nil, nil, withFileLocation(h.setup.config, err)
	}
	p.Name, p.Tune, p.Improve, p.Hindsight = policy.Constant, tune.Constant(plan.Clocks), nil, false
	return p, plan.Clocks, nil
}

// run plans the history by the baseline, which comes first, and by constant clocks
// and each policy in each draw.
func (h *historyReplay) run(ctx context.Context) ([]historyRun, error) {
	progress := report.NewProgress(h.terminal.stderr, h.terminal.progress, time.Now, "replay",
		2+(1+len(h.policies))*h.draws)
	defer progress.Finish()
	baseline, err := policy.Parse(baselinePolicy, h.setup.params)
	if err != nil {
		return nil, err
	}
	cost, err := h.planCost(ctx, h.setup.problem, baseline)
	if err != nil {
		return nil, err
	}
	progress.Add(1)
	// Default clocks are the same in all draws.
	runs := []historyRun{{name: baseline.Name, draws: slices.Repeat([]historyCost{*cost}, h.draws)}}
	constant, clocks, err := h.constantClocks(ctx)
	if err != nil {
		return nil, err
	}
	progress.Add(1)
	policies := append([]*planner.Policy{constant}, h.policies...)
	for _, p := range policies {
		runs = append(runs, historyRun{name: p.Name})
	}
	runs[1].clocks = clocks
	for i := range h.draws {
		p, err := h.problemFor(&responseDraw{seed: h.setup.seed + uint64(i)})
		if err != nil {
			return nil, err
		}
		for k := range policies {
			if cost, err = h.planCost(ctx, p, policies[k]); err != nil {
				return nil, err
			}
			runs[1+k].draws = append(runs[1+k].draws, *cost)
			progress.Add(1)
		}
	}
	return runs, nil
}

func (h *historyReplay) planCost(
	ctx context.Context, problem *planner.Problem, p *planner.Policy,
) (*historyCost, error) {
	plan, err := policy.SolveChecked(ctx, problem, p, &planner.Options{Seed: h.setup.seed, NoImprove: true})
	if err != nil {
		return nil, withFileLocation(h.setup.config, err)
	}
	return h.costOf(problem, plan), nil
}

func (h *historyReplay) costOf(p *planner.Problem, plan *planner.Plan) *historyCost {
	c := &historyCost{total: float64(plan.Ledger.Total()), unplaced: len(plan.Unplaced)}
	for g := range c.groups {
		c.groups[g] = make(map[string]groupCost)
	}
	placed, took, would, seen := 0, 0.0, 0.0, -1
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		placed++
		j, past := &h.jobs[i], &h.past[h.jobs[i].past]
		energy, wait := float64(a.Energy(&p.Tasks[i])), a.Start-p.Tasks[i].Arrival
		took, would = took+a.End-a.Start, would+j.span
		c.jobs += energy
		c.wait += wait
		c.longest = max(c.longest, wait)
		if a.End-a.Start > j.limit*(1+costTolerance) {
			c.overLimit++
		}
		for g, name := range [...]string{byUser: past.User, byPartition: past.Partition} {
			one := c.groups[g][name]
			if one.tasks++; j.past != seen {
				one.jobs++
			}
			one.joules += energy
			one.wait += wait
			c.groups[g][name] = one
		}
		seen = j.past
	}
	c.wait /= float64(max(1, placed))
	c.stretch = took / would
	return c
}

// costTolerance is by which part times or watts may differ that are the same.
const costTolerance = 1e-9

// quantile is that of a quantity over draws, between the two next to it.
func quantile(values []float64, part float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	at := part * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-math.Floor(at))*(sorted[i+1]-sorted[i])
}
