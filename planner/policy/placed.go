package policy

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/score"
)

// Stage returns the placement as the Place stage of a policy. Its target workload is
// what has arrived.
func (p *Placement) Stage() func(*planner.View) planner.Placer {
	return place.Scoring{Chooser: func(m fleet.Workload, s *fleet.State) score.Chooser {
		return p.Chooser(m, s, planner.DefaultSeed)
	}}.New
}
