package share

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// LowestLevel returns the lowest level at which a GPU with that load keeps kappa, by what the
// problem counts and without a measured curve.
func LowestLevel(
	p *sharing.Physics, problem Problem, loadPct []float64, kappa float64,
) (mhz dvfsmodel.MHz, ok bool) {
	overload := 1.0
	if problem == Safe {
		overload = sharing.LinearCurve().Slowdown(sharing.Occupancy{LoadPct: loadPct})
	}
	return p.LowestLevel(overload, kappa)
}
