package policy_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/powerbudget"
)

// Figures of ways to keep a power budget over drawn batches that are all there at 0, printed where they are
// asked for:
//
//	go test ./planner/policy -v -run xxx -bench BudgetFigures -benchtime 1x -budgets -jobs 40 -seeds 16001:16100
var budgetFigures = flag.Bool("budgets", false, "print figures of ways to keep a power budget")

func BenchmarkBudgetFigures(b *testing.B) {
	if !*budgetFigures {
		b.Skip("-budgets asks for them")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*onlineSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	sums, gaps := make(map[string]*figures), make(map[string][]float64)
	for seed := first; seed <= last; seed++ {
		p := drawOffline(b, seed, *offlineJobs)
		easy, _ := pastDue(b, p, policy.EasyDefault)
		free, _ := pastDue(b, p, "edl-align")
		base, most := serviceOf(p, easy), peakOf(p, easy)
		for _, part := range [...]float64{0.9, 0.8, 0.7} {
			for kind, budget := range map[string]powerbudget.Budget{
				"constant":  {{Watts: dvfsmodel.Watt(part * most)}},
				"each hour": hourly(most, part),
			} {
				for way, kept := range keptIn(b, p, free, easy, budget) {
					key := fmt.Sprintf("%s, %.0f %%, %s", kind, 100*part, way)
					if sums[key] == nil {
						sums[key] = &figures{}
					}
					if kept == nil || len(kept.Unplaced) > 0 {
						sums[key].lost++
						continue
					}
					o := serviceOf(p, kept)
					sums[key].add(p, &o, &base)
					least := bound.Of(p, kept)
					gaps[key] = append(gaps[key], float64(kept.Ledger.Total()/least.Value-1))
				}
			}
		}
	}
	keys := make([]string, 0, len(sums))
	for key := range sums {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		gap, half := meanOf(gaps[key])
		b.Logf("%s: %d of %d batches: %s, above the bound %.4f±%.4f (max %.4f)", key, len(sums[key].energy),
			last-first+1, sums[key], gap, half, slices.Max(append(gaps[key], 0)))
	}
}

// hourly is a budget of so much in one hour and of a part of it in the next, for two weeks.
func hourly(most, part float64) (b powerbudget.Budget) {
	for hour := range 14 * 24 {
		watts := most
		if hour%2 == 1 {
			watts *= part
		}
		b = append(b, powerbudget.Step{From: 3600 * float64(hour), Watts: dvfsmodel.Watt(watts)})
	}
	return b
}

// keptIn returns by its way a plan within a budget; nil: none was found.
func keptIn(
	b *testing.B, p *planner.Problem, free, easy *planner.Plan, budget powerbudget.Budget,
) map[string]*planner.Plan {
	b.Helper()
	keep := func(p *planner.Problem, plan *planner.Plan, others ...*planner.Plan) *planner.Plan {
		if within(p, plan, budget) {
			return plan
		}
		kept, err := powerbudget.Keep(b.Context(), p, plan, budget, others...)
		if err != nil {
			return nil
		}
		if err := check.Plan(p, kept); err != nil || !within(p, kept, budget) {
			b.Fatal(err)
		}
		return kept
	}
	return map[string]*planner.Plan{
		"1 epplan":         keep(p, free, easy),
		"2 default clocks": keep(fixed(p), easy),
		"3 uniform clocks": uniform(b, p, budget, clocksUpTo),
		"4 uniform limits": uniform(b, p, budget, powerUpTo),
	}
}

// within reports whether a plan is within a budget.
func within(p *planner.Problem, plan *planner.Plan, b powerbudget.Budget) bool {
	times, watts := make([]float64, len(b)), make([]float64, len(b))
	for i, step := range b {
		times[i], watts[i] = step.From, float64(step.Watts)
	}
	return check.Budget(p, plan, times, watts) == nil
}

// peakOf returns the most that a plan takes, W.
func peakOf(p *planner.Problem, plan *planner.Plan) float64 {
	low, high := 0.0, 1e6
	for high-low > 1e-4*high {
		if middle := (low + high) / 2; within(p, plan, powerbudget.Budget{{Watts: dvfsmodel.Watt(middle)}}) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// fixed is a problem whose tasks have no other clocks than the default ones.
func fixed(p *planner.Problem) *planner.Problem {
	return at(p, func(o *planner.Option) dvfsmodel.Point { return o.Response.Default() })
}

// at is a problem whose tasks run at one point.
func at(p *planner.Problem, point func(o *planner.Option) dvfsmodel.Point) *planner.Problem {
	other := *p
	other.Tasks = slices.Clone(p.Tasks)
	for i := range other.Tasks {
		t := &other.Tasks[i]
		t.Options, t.Limit = slices.Clone(t.Options), math.Inf(1)
		for k := range t.Options {
			t.Options[k].Response = &dvfsmodel.Fixed{At: point(&t.Options[k])}
		}
	}
	return &other
}

// uniform plans by EASY with the same rule for all GPUs, as high as the budget allows at every moment.
func uniform(
	b *testing.B, p *planner.Problem, budget powerbudget.Budget,
	rule func(o *planner.Option, part float64) dvfsmodel.Point,
) (best *planner.Plan) {
	b.Helper()
	low, high := 0.0, 1.0
	for range 12 {
		part := (low + high) / 2
		if best == nil && high == 1 && low == 0 {
			part = 1
		}
		other := at(p, func(o *planner.Option) dvfsmodel.Point { return rule(o, part) })
		plan, _ := pastDue(b, other, policy.EasyDefault)
		if within(other, plan, budget) {
			if best = plan; part == 1 {
				return best
			}
			low = part
		} else {
			high = min(high, part)
			if part == 1 {
				high = 0.999
			}
		}
	}
	return best
}

// clocksUpTo returns the fastest setting of a workload whose core clock is up to a part of the default one.
func clocksUpTo(o *planner.Option, part float64) dvfsmodel.Point {
	normal := o.Response.Default()
	return fastest(o, func(pt *dvfsmodel.Point) bool {
		return float64(pt.Core) <= part*float64(normal.Core)*(1+1e-9)
	})
}

// powerUpTo returns the fastest setting of a workload that draws up to a part of 300 W.
func powerUpTo(o *planner.Option, part float64) dvfsmodel.Point {
	return fastest(o, func(pt *dvfsmodel.Point) bool { return float64(pt.Power) <= part*300 })
}

// fastest returns the fastest setting that suits, no faster than the default one; the one of the least power
// if none does.
func fastest(o *planner.Option, suits func(pt *dvfsmodel.Point) bool) dvfsmodel.Point {
	normal := o.Response.Default()
	best, least := dvfsmodel.Point{Time: math.Inf(1)}, normal
	for _, at := range dvfsmodel.SupportedPoints(o.Response) {
		pt, ok := dvfsmodel.PointAt(o.Response, at)
		if !ok || pt.Time < normal.Time*(1-1e-9) {
			continue
		}
		if pt.Power < least.Power {
			least = pt
		}
		if suits(&pt) && pt.Time < best.Time {
			best = pt
		}
	}
	switch {
	case suits(&normal) && normal.Time <= best.Time:
		return normal
	case math.IsInf(best.Time, 1):
		return least
	}
	return best
}
