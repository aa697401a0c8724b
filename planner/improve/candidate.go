package improve

import "github.com/epplan/epplan/planner"

// candidate is a plan and what it is preferred by.
type candidate struct {
	*planner.Plan
	rank planner.PlanRank
}

func candidateOf(p *planner.Problem, plan *planner.Plan) candidate {
	return candidate{plan, p.RankOf(plan)}
}

// isBetter reports whether a plan is to be preferred to another.
func (a *candidate) isBetter(b *candidate) bool { return a.rank.Compare(b.rank) < 0 }

// takeIfBetter takes another plan if that is to be preferred.
func (a *candidate) takeIfBetter(p *planner.Problem, plan *planner.Plan) {
	if b := candidateOf(p, plan); b.isBetter(a) {
		*a = b
	}
}
