package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
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
	Jobs, Total   float64 // J: of GPUs that run jobs; of the whole cluster
	Wait, Longest float64 // s: mean and longest
	Stretch       float64 // run time by the one at default clocks, all jobs together
	OverLimit     int     // jobs that would have broken their limit
	Unplaced      int
	UnplacedJobs  []string         // the first of them
	Spent         config.Footprint // on Total
	End           float64          // s
	Groups        [2]map[string]groupCost
}

type groupCost struct {
	Jobs   int // one that is split counts once
	Tasks  int // one for each of its nodes
	Joules float64
	Spent  config.Footprint
	Wait   float64 // s, of all
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
	if p, err = policy.Parse(constantSchedule, h.setup.Params); err != nil {
		return nil, nil, err
	}
	plan, err := policy.SolveChecked(ctx, h.setup.Problem, p, &planner.Options{Seed: h.setup.Seed})
	if err != nil {
		return nil, nil, setup.WithFileLocation(h.setup.Config, err)
	}
	p.Name, p.Tune, p.Improve, p.Hindsight = policy.Constant, tune.Constant(plan.Clocks), nil, false
	return p, plan.Clocks, nil
}

// historyPart is what a part of a replay comes to.
type historyPart struct {
	Cost   historyCost
	Clocks map[string]dvfsmodel.Point // the best constant ones; nil: it isn't about them
}

// run plans the history by the baseline, which comes first, and by constant clocks
// and each policy in each draw.
func (h *historyReplay) run(c *cli.Context) ([]historyRun, error) {
	baseline, err := policy.Parse(baselinePolicy, h.setup.Params)
	if err != nil {
		return nil, err
	}
	parts, err := h.parts(baseline).Run(c.Context, h.terminal)
	if err != nil {
		return nil, err
	}
	// Default clocks are the same in all draws.
	runs := []historyRun{
		{name: baseline.Name, draws: slices.Repeat([]historyCost{parts[0].Cost}, h.draws)},
		{name: policy.Constant, clocks: parts[1].Clocks},
	}
	for _, p := range h.policies {
		runs = append(runs, historyRun{name: p.Name})
	}
	for i, part := range parts[2:] {
		run := &runs[1+i%(1+len(h.policies))]
		run.draws = append(run.draws, part.Cost)
	}
	return runs, nil
}

// parts returns the baseline, the best constant clocks, and in each draw these clocks and the policies.
func (h *historyReplay) parts(baseline *planner.Policy) *terminal.PartedWork[historyPart] {
	w := &terminal.PartedWork[historyPart]{
		Label: "replay", AtOnce: 1, Names: []string{"policy " + baseline.Name, "policy " + policy.Constant},
	}
	for i := range h.draws {
		for k := range 1 + len(h.policies) {
			name := policy.Constant
			if k > 0 {
				name = h.policies[k-1].Name
			}
			w.Names = append(w.Names, fmt.Sprintf("policy %s, draw %d", name, i+1))
		}
	}
	w.Do = (&historyDraws{historyReplay: h, baseline: baseline, draw: -1}).do
	return w
}

// historyDraws does parts one after the other, so that it keeps what they have in common.
type historyDraws struct {
	*historyReplay
	baseline *planner.Policy
	constant *planner.Policy // nil: not known yet
	clocks   map[string]dvfsmodel.Point
	draw     int              // of the last part; -1: there was none
	problem  *planner.Problem // as that draw has it
}

func (d *historyDraws) do(ctx context.Context, i int) (part historyPart, err error) {
	if i > 0 && d.constant == nil {
		if d.constant, d.clocks, err = d.constantClocks(ctx); err != nil {
			return part, err
		}
	}
	problem, p := d.setup.Problem, d.baseline
	switch {
	case i == 1:
		return historyPart{Clocks: d.clocks}, nil
	case i > 1:
		draw, k := (i-2)/(1+len(d.policies)), (i-2)%(1+len(d.policies))
		if p = d.constant; k > 0 {
			p = d.policies[k-1]
		}
		if draw != d.draw {
			d.draw = -1
			if d.problem, err = d.problemFor(
				&pooled.ResponseDraw{Seed: d.setup.Seed + uint64(draw)},
			); err != nil {
				return part, err
			}
			d.draw = draw
		}
		problem = d.problem
	}
	cost, err := d.planCost(ctx, problem, p)
	if err != nil {
		return part, err
	}
	return historyPart{Cost: *cost}, nil
}

func (h *historyReplay) planCost(
	ctx context.Context, problem *planner.Problem, p *planner.Policy,
) (*historyCost, error) {
	plan, err := policy.SolveChecked(ctx, problem, p, &planner.Options{Seed: h.setup.Seed, NoImprove: true})
	if err != nil {
		return nil, setup.WithFileLocation(h.setup.Config, err)
	}
	return h.costOf(problem, plan), nil
}

func (h *historyReplay) costOf(p *planner.Problem, plan *planner.Plan) *historyCost {
	c := &historyCost{Total: float64(plan.Ledger.Total()), Unplaced: len(plan.Unplaced), End: plan.End()}
	rates := h.setup.Rates
	factors := rates.Of(p, plan)
	c.Spent = factors.Footprint(plan.Ledger.Total())
	for _, u := range plan.Unplaced[:min(len(plan.Unplaced), report.MostNames)] {
		c.UnplacedJobs = append(c.UnplacedJobs, h.past[h.jobs[u.Task].past].JobID)
	}
	for g := range c.Groups {
		c.Groups[g] = make(map[string]groupCost)
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
		factors := rates.During(planner.Interval{From: a.Start, To: a.End})
		spent := factors.Footprint(dvfsmodel.Joule(energy))
		c.Jobs += energy
		c.Wait += wait
		c.Longest = max(c.Longest, wait)
		if a.End-a.Start > j.limit*(1+costTolerance) {
			c.OverLimit++
		}
		for g, name := range [...]string{byUser: past.User, byPartition: past.Partition} {
			one := c.Groups[g][name]
			if one.Tasks++; j.past != seen {
				one.Jobs++
			}
			one.Joules += energy
			one.Spent = one.Spent.Plus(spent)
			one.Wait += wait
			c.Groups[g][name] = one
		}
		seen = j.past
	}
	c.Wait /= float64(max(1, placed))
	c.Stretch = took / would
	return c
}

// costTolerance is by which part times or watts may differ that are the same.
const costTolerance = 1e-9
