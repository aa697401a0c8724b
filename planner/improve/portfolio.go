package improve

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Portfolio plans anew by other policies, improves each plan by Then, and the best of
// all by Last: the fewest tasks left out, then the fewest missed deadlines, then the fewest that end after
// their due times, then the least of the problem's objective.
// Where every task takes one whole GPU of the only class from time 0 on, Then alone
// does better than any start, and nothing else is tried unless tasks are late or
// waiting has a price.
type Portfolio struct {
	Others []StartPolicy
	// Rescue are further starts, tried as long as tasks are late, and all of them where
	// Then and Last have little to say, or found little from what sites run. Plans in
	// which tasks share GPUs by profile don't count.
	Rescue []StartPolicy
	// Online makes a plan without knowing what arrives, than which none that knows it costs more.
	Online  StartPolicy
	Then    planner.Improver
	Last    planner.Improver
	Shorter Shorten // of the best of all
}

// StartPolicy is a policy whose plans are worth improving.
type StartPolicy struct {
	planner.Policy
	MaxTasks     int  // tasks of a problem for which it is quick enough; 0: any number
	IsSitePolicy bool // it is what sites run, at default clocks
}

// Improve is [planner.Improver]. Unlike others, a plan that leaves fewer tasks out
// or late may take more energy than the one it was given.
func (f Portfolio) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	least, err := f.search(ctx, p, plan, rng)
	if err != nil {
		return nil, err
	}
	best := candidateOf(p, least)
	// Deadlines are kept before due times: those yield once.
	if loose := p.DueByDeadlines(); loose != nil && best.rank.Misses > 0 && !planner.StopRequested(ctx) {
		if least, err = f.search(ctx, loose, plan, rng); err != nil {
			return nil, err
		}
		best.takeIfBetter(p, least)
	}
	return f.Shorter.Improve(ctx, p, best.Plan, rng)
}

// search returns the best plan that it finds.
func (f Portfolio) search(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	improved, err := f.Then.Improve(ctx, p, plan, rng)
	if err != nil {
		return nil, err
	}
	best := candidateOf(p, improved)
	planner.MonitorOf(ctx).Found(p, improved)
	if f.isUniform(p) && best.rank.Late == 0 && p.WaitWeight == 0 {
		return improved, nil
	}
	if len(p.Tasks) > manyJobs && isSearchable(p) { // its own start does better than others
		if best, err = f.last(ctx, p, best, rng); err != nil {
			return nil, err
		}
		if best.rank.Unplaced == 0 && best.rank.Late == 0 {
			best.Policy, best.Clocks = plan.Policy, nil
			return best.Plan, nil
		}
	}
	if best, err = f.tryStarts(ctx, p, f.Others, best, rng); err != nil {
		return nil, err
	}
	before := best.rank.Cost
	if best, err = f.last(ctx, p, best, rng); err != nil {
		return nil, err
	}
	enough := (areAllMovable(p) || isSearchable(p)) &&
		!(f.isSitePolicy(best.From) && best.rank.Cost > smallGain*before)
	rescued, err := f.rescue(ctx, p, best, enough, rng)
	if err != nil {
		return nil, err
	}
	if rescued.Plan != best.Plan {
		if best, err = f.last(ctx, p, rescued, rng); err != nil {
			return nil, err
		}
	}
	if p.Mode == planner.Clairvoyant && len(p.Tasks) <= f.Online.MaxTasks {
		if best.Plan, err = f.noWorseThanOnline(ctx, p, best.Plan, rng); err != nil {
			return nil, err
		}
	}
	best.Policy, best.Clocks = plan.Policy, nil // each task has its own
	return best.Plan, nil
}

// rescue returns the best of a plan and the plans by the policies of Rescue, which are tried until no task is
// late, if the gain is enough by then.
func (f Portfolio) rescue(
	ctx context.Context, p *planner.Problem, best candidate, enough bool, rng *rand.Rand,
) (_ candidate, err error) {
	for i := range f.Rescue {
		if best.rank.Late == 0 && enough || planner.StopRequested(ctx) {
			break
		}
		if best, err = f.tryStarts(ctx, p, f.Rescue[i:i+1], best, rng); err != nil {
			return best, err
		}
	}
	return best, nil
}

// noWorseThanOnline returns the plan, or where an online plan costs less one that costs less still, and ends
// no task later than that or than it is due.
func (f Portfolio) noWorseThanOnline(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	blind := *p
	blind.Mode = planner.Online
	online, err := planner.Solve(ctx, &blind, &f.Online.Policy, nil)
	if err != nil {
		return nil, err
	}
	best, other := candidateOf(p, plan), candidateOf(p, online)
	if !other.isBetter(&best) {
		return plan, nil
	}
	better, err := Hindsight{Longer: true}.Improve(ctx, p, online, rng)
	if err != nil {
		return nil, err
	}
	better.From = f.Online.Name
	best.takeIfBetter(p, better)
	return best.Plan, nil
}

// smallGain is the part of a cost that remains where hardly anything was gained.
const smallGain = 0.9

// isSitePolicy reports whether a start is one of what sites run.
func (f Portfolio) isSitePolicy(name string) bool {
	return slices.ContainsFunc(f.Others, func(s StartPolicy) bool { return s.IsSitePolicy && s.Name == name })
}

func (f Portfolio) last(
	ctx context.Context, p *planner.Problem, best candidate, rng *rand.Rand,
) (candidate, error) {
	from := best.From
	improved, err := f.Last.Improve(ctx, p, best.Plan, rng)
	if err != nil {
		return best, err
	}
	best = candidateOf(p, improved)
	best.From = from
	return best, nil
}

// tryStarts returns the best of the given plan and those of some policies.
func (f Portfolio) tryStarts(
	ctx context.Context, p *planner.Problem, starts []StartPolicy, best candidate, rng *rand.Rand,
) (candidate, error) {
	for i := range starts {
		planner.MonitorOf(ctx).SetPhase(starts[i].Name, i, len(starts))
		if most := starts[i].MaxTasks; most > 0 && len(p.Tasks) > most ||
			planner.StopRequested(ctx) && best.rank.Late == 0 {
			continue // a search that is cut keeps its promises
		}
		start, err := startPlan(ctx, p, &starts[i].Policy, nil)
		if err != nil {
			return best, err
		}
		if start.Shared != nil {
			continue
		}
		other := candidateOf(p, start)
		if len(p.Tasks) <= largeBatch || other.isBetter(&best) {
			if start, err = f.Then.Improve(ctx, p, start, rng); err != nil {
				return best, err
			}
			other = candidateOf(p, start)
		}
		if other.isBetter(&best) {
			planner.MonitorOf(ctx).Found(p, start)
			best = other
			best.From = starts[i].Name
		}
	}
	return best, nil
}

// startPlan returns the plan of another policy. Of tasks that arrive over time it is
// also asked for the one that it would make without knowing them.
func startPlan(
	ctx context.Context, p *planner.Problem, policy *planner.Policy, options *planner.Options,
) (*planner.Plan, error) {
	plan, err := planner.Solve(ctx, p, policy, options)
	if err != nil || p.Mode != planner.Clairvoyant {
		return plan, err
	}
	blind := *p
	blind.Mode = planner.Online
	online, err := planner.Solve(ctx, &blind, policy, options)
	if err != nil {
		return nil, err
	}
	if a, b := candidateOf(p, online), candidateOf(p, plan); a.isBetter(&b) {
		return online, nil
	}
	return plan, nil
}

// isUniform reports whether the problem is of the EDL paper's kind: one class with as
// many nodes as wanted, and tasks of one whole GPU that are all there at 0.
func (f Portfolio) isUniform(p *planner.Problem) bool {
	if p.Snapshot != nil || len(p.Cluster.Classes) > 1 || p.Mode != planner.Offline ||
		p.Cluster.Classes[0].Count > 0 {
		return false
	}
	for i := range p.Tasks {
		for j := range p.Tasks[i].Options {
			if p.Tasks[i].Options[j].GPUs != 1 {
				return false
			}
		}
	}
	return !p.AnyNeedsMoreThanGPUs()
}
