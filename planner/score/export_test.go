package score

import "github.com/epplan/epplan/planner/fleet"

// NewForgetfulIndex returns an Index that starts afresh all the time.
func NewForgetfulIndex(r Rule, s *fleet.State) *Index {
	return newIndex(r, s, limits{ranked: 2, classes: s.Len() + 2, memo: 4})
}

// Factor returns how many times their price scarce things cost.
func (p *Potential) Factor() float64 { return p.factor }
