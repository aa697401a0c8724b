package powerbudget

import (
	"context"
	"errors"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/steps"
)

// Flex is what a plan can do without in a window of time.
type Flex struct {
	Window planner.Interval
	// Mean and Peak are what the plan takes in the window, W.
	Mean, Peak dvfsmodel.Watt
	// Kept is a plan that takes Cap at most at every moment of the window and KeptMean in the mean: the least
	// cap with which every job is placed that the plan places, and ends by its due time if it does there.
	Kept          *planner.Plan
	Cap, KeptMean dvfsmodel.Watt
}

// Reduction returns how much less the plan that keeps the cap takes at most in the window.
func (f *Flex) Reduction() dvfsmodel.Watt { return f.Peak - f.Cap }

// Caps that are tried: some at even distances, the least first, as a cap may be kept though a plan within a
// higher one wasn't found; then the range below the first that is kept is halved so often.
const (
	evenCaps    = 8
	capSteps    = 6
	ordersByCap = 100 // that are tried for each cap, at most
	// Of the cap found, so that its plan costs about as much as the one that [Keep] finds.
	ordersAtLast = 1000
)

// NewFlex finds the least cap of a window that keeps all promises of a plan, to a fifth of a per cent of the
// plan's peak there, as far as [Keep] finds plans, and a plan of little cost within it. The context's end is an
// error.
func NewFlex(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, window planner.Interval,
) (*Flex, error) {
	load := powerOf(p, plan)
	f := &Flex{Window: window, Kept: plan}
	f.Mean, f.Peak = load.MeanAndPeak(window)
	f.Cap, f.KeptMean = f.Peak, f.Mean
	low, high := -f.Peak/evenCaps, f.Peak
	for i := range evenCaps {
		try := f.Peak * dvfsmodel.Watt(i) / evenCaps
		kept, err := f.tryCap(ctx, p, plan, try)
		if err != nil {
			return nil, err
		}
		if kept {
			high = min(try, f.Cap)
			break
		}
		low = try
	}
	for range capSteps {
		try := (low + high) / 2
		if low < 0 {
			break
		}
		kept, err := f.tryCap(ctx, p, plan, try)
		switch {
		case err != nil:
			return nil, err
		case kept:
			high = min(try, f.Cap)
		default:
			low = try
		}
	}
	if found := f.Kept; found != plan { // the search for it ended when all promises were kept
		others := []*planner.Plan{found}
		kept, err := keep(planner.WithoutMonitor(ctx), p, plan, windowBudget(window, f.Cap), ordersAtLast, others)
		switch {
		case errors.Is(err, errAsleep): // nodes that are on take less
		case err != nil:
			return nil, err
		case p.Cost(kept) < p.Cost(found):
			f.take(p, plan, kept, f.Cap)
		}
	}
	return f, planner.Cancelled(ctx)
}

// tryCap takes the plan within a cap, if one is found that keeps the promises.
func (f *Flex) tryCap(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, most dvfsmodel.Watt,
) (kept bool, err error) {
	if err := planner.Cancelled(ctx); err != nil {
		return false, err
	}
	s, err := newSearch(ctx, p, plan, windowBudget(f.Window, most))
	switch {
	case errors.Is(err, errAsleep):
		return false, nil
	case err != nil:
		return false, err
	}
	orders := orderCount(p, ordersByCap)
	for _, s := range []*search{s.asPlanned(), s} {
		s.improve(ctx, orders, func() bool { return keepsPromises(p, plan, s.best) })
		if f.take(p, plan, s.best, most) {
			return true, planner.Cancelled(ctx)
		}
	}
	return false, planner.Cancelled(ctx)
}

// take takes another plan if it keeps the promises of a plan within a cap.
func (f *Flex) take(p *planner.Problem, plan, kept *planner.Plan, most dvfsmodel.Watt) bool {
	mean, peak := powerOf(p, kept).MeanAndPeak(f.Window)
	if !keepsPromises(p, plan, kept) || peak > most*(1+rounding) { // by what runs already
		return false
	}
	f.Kept, f.KeptMean, f.Cap = kept, mean, peak
	return true
}

// windowBudget is a budget in a window, and none before and after.
func windowBudget(window planner.Interval, watts dvfsmodel.Watt) (b Budget) {
	none := dvfsmodel.Watt(math.Inf(1))
	if window.From > 0 {
		b = append(b, Step{From: 0, Watts: none})
	}
	return append(b, Step{From: window.From, Watts: watts}, Step{From: window.To, Watts: none})
}

// keepsPromises reports whether another plan places every task that a plan places, and ends each by its due
// time that ends by it there.
func keepsPromises(p *planner.Problem, plan, other *planner.Plan) bool {
	if len(other.Unplaced) > len(plan.Unplaced) {
		return false
	}
	late := make(map[int]bool)
	for _, task := range plan.PastDue(p) {
		late[task] = true
	}
	for _, task := range other.PastDue(p) {
		if !late[task] {
			return false
		}
	}
	return true
}

// powerOf returns the power of a plan over time.
func powerOf(p *planner.Problem, plan *planner.Plan) steps.Function[dvfsmodel.Watt] {
	k := newKeeper(p, plan, nil)
	for n := range plan.Nodes {
		for _, on := range plan.Nodes[n].On {
			k.load.Add(on, k.awakePower(n))
		}
	}
	for _, task := range k.order {
		a := &plan.Assignments[task]
		run := k.runPower(a, &p.Tasks[task])
		k.load.Add(run.Interval, run.Watts)
	}
	return k.load
}
