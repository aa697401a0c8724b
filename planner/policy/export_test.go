package policy

import (
	"cmp"
	"context"
	"math"

	"github.com/epplan/epplan/planner"
)

// OwnStage returns the value that a stage's key has for a policy without options.
func OwnStage(name, key string) string {
	return cmp.Or(policyNamed(name), &placedPolicy).stages[key]
}

// DescendClocks returns the best plan with constant clocks that coordinate descent finds,
// before anything but clocks is looked for.
func DescendClocks(ctx context.Context, p *planner.Problem) (*planner.Plan, error) {
	s := constantSearch(p)
	err := s.choose(ctx)
	return s.best.plan, err
}

// EnumerateClocks returns the best one of all that the tables allow, placed in the same
// ways.
func EnumerateClocks(ctx context.Context, p *planner.Problem) (*planner.Plan, error) {
	s := constantSearch(p)
	s.left = math.MaxInt
	for i := range s.ladders {
		l := &s.ladders[i]
		l.pairs = nil
		for _, pair := range pairsOf(optionsOn(p, l.model)) {
			l.pairs = append(l.pairs, pair.at)
		}
	}
	choices := 1
	for i := range s.ladders {
		choices *= len(s.ladders[i].pairs)
	}
	for choice := range choices {
		rungs := make([]int, len(s.ladders))
		for i := range rungs {
			rungs[i] = choice % len(s.ladders[i].pairs)
			choice /= len(s.ladders[i].pairs)
		}
		if _, err := s.try(ctx, rungs, len(s.ways), hurryFactors[0]); err != nil {
			return nil, err
		}
	}
	return s.best.plan, nil
}

// constantSearch returns the search of policy constant, not begun.
func constantSearch(p *planner.Problem) *clockSearch {
	return constantClockSearchOf(constantClocks(DefaultParams()).Improve).newSearch(p)
}
