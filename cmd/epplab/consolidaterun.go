package main

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

const exactMethod = "exact"

// windowMethod is the policy that looks at tasks that wait.
const windowMethod = "cats-safe"

// method is a policy of the command. Those that search get a context that ends
// with their time.
type method struct {
	name, about string
	place       func(ctx context.Context, r *consolidation, seed uint64) placementResult
}

type placementResult struct {
	placement share.Placement
	boundW    float64 // no plan that keeps the problem's limits draws less
	proven    bool    // that nothing draws less than this
}

// methods returns the policies, the simplest first.
func methods() []method {
	policies := share.Policies()
	all := make([]method, 0, len(policies)+2)
	for _, policy := range policies {
		all = append(all, method{
			policy.Name, policy.About,
			func(ctx context.Context, r *consolidation, seed uint64) placementResult {
				p := policy
				if _, random := p.Rule.(share.CATSSafe); random {
					// By default the policy of the registry, whose seed is 0.
					p.Rule = deadlineRule{ctx, share.CATSSafe{Seed: seed - 1}}
				}
				return placementResult{placement: share.PlaceWindows(r.instance, p.Rule, p.Clocks,
					max(1, r.window))}
			},
		})
	}
	return append(all,
		method{"improve", "groups of tasks taken apart and put together again and again, from " +
			"online-sla's plan on", searchLocally},
		method{"exact", "improve, then branch and price: the least power of all, proven unless the " +
			"time runs out", searchExactly},
	)
}

// deadlineRule is a rule that takes its time until the context ends, and places the rest
// as online-sla does.
type deadlineRule struct {
	ctx  context.Context //nolint:containedctx // a rule is asked for one task after another
	rule share.Rule
}

// Choose is by the rule while there is time.
func (h deadlineRule) Choose(s *sharing.State, task int, taken []int) (gpu int, ok bool) {
	if h.ctx.Err() != nil {
		return share.OnlineSLA{}.Choose(s, task, taken)
	}
	return h.rule.Choose(s, task, taken)
}

// initialPlacement returns the plan that a search sets out from.
func initialPlacement(in *sharing.Instance) share.Placement {
	return share.Place(in, share.OnlineSLA{}, share.LowestClock)
}

// searchLocally returns the plan of local search.
func searchLocally(ctx context.Context, r *consolidation, seed uint64) placementResult {
	placement, _ := consolidate.Improve(ctx, r.instance, r.problem, initialPlacement(r.instance),
		consolidate.ImproveOptions{Seed: seed})
	return placementResult{placement: placement}
}

func searchExactly(ctx context.Context, r *consolidation, seed uint64) placementResult {
	found := consolidate.Exact(ctx, r.instance, r.problem, consolidate.ExactOptions{
		Start: initialPlacement(r.instance), Seed: seed,
	})
	return placementResult{placement: found.Placement, boundW: found.BoundW, proven: found.Proven}
}

// solve finds the plan and what it is worth.
func (r *consolidation) solve(ctx context.Context, t *terminal.Terminal, limit time.Duration, seed uint64) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer countdown(ctx, t, limit)()
	r.placementResult = r.method.place(ctx, r, seed)
	r.verdict = share.Evaluate(r.instance, r.placement)
	r.boundW = max(r.boundW, consolidate.QuickBound(r.instance, r.problem))
	reached := r.verdict.FeasibleFor(r.problem) && r.verdict.PowerW <= r.boundW*(1+powerTolerance)
	if r.proven = r.proven || reached; r.proven {
		r.boundW = r.verdict.PowerW // both are sums, of the same watts in another order
	}
}

// countdownInterval is how often the time that is spent is drawn.
const countdownInterval = 200 * time.Millisecond

// countdown shows on a terminal how much of its time a search has spent, until the
// search is over.
func countdown(ctx context.Context, t *terminal.Terminal, limit time.Duration) (over func()) {
	progress := report.NewProgress(t.Stderr, t.Progress, time.Now, "consolidate",
		int(limit/countdownInterval))
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(countdownInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				progress.Finish()
				return
			case <-ticker.C:
				progress.Add(1)
			}
		}
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// waitS returns how long tasks wait for their window, on average, seconds.
func (r *consolidation) waitS() float64 {
	sum := 0.0
	for tasks := range slices.Chunk(r.instance.Tasks, r.window) {
		last := 0.0
		for i := range tasks {
			last = max(last, tasks[i].Arrival)
		}
		for i := range tasks {
			sum += last - tasks[i].Arrival
		}
	}
	return sum / float64(max(1, len(r.instance.Tasks)))
}

// gap returns how much more than the bound the plan draws, as a part of the bound;
// NaN where there is none.
func (r *consolidation) gap() float64 {
	if r.boundW <= 0 || math.IsInf(r.boundW, 1) {
		return math.NaN()
	}
	return r.verdict.PowerW/r.boundW - 1
}

func (r *consolidation) violations() string {
	v := &r.verdict
	slow := v.Violations
	if r.problem == share.AsPrinted {
		slow = v.TooSlow
	}
	parts := terminal.TextsOf(terminal.Present(
		terminal.Count(v.Unplaced, report.Plural(v.Unplaced, "task has no place", "tasks have no place")),
		terminal.Count(slow,
			report.Plural(slow, "task is slowed down too much", "tasks are slowed down too much")),
		terminal.Count(v.OverMemory,
			report.Plural(v.OverMemory, "GPU has too little memory", "GPUs have too little memory")),
	), func(part terminal.Counted) string { return part.What })
	for _, fault := range v.Faults {
		parts = append(parts, fault+", please report this")
	}
	return strings.Join(parts, ", ")
}

// powerTolerance is by which part powers may differ that are the same.
const powerTolerance = 1e-9
