package consolidate

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// LowestLevel is the lowest level at which a GPU with that load keeps the SLA of a
// task that allows kappa times its time alone. Contention counts where the
// problem is [Safe] only. It is f_max and false where no level does.
func LowestLevel(
	p *sharing.Physics, problem Problem, loadPct []float64, kappa float64, c sharing.Contention,
) (mhz dvfsmodel.MHz, ok bool) {
	overload := 1.0
	if problem == Safe {
		overload = c.Overload(loadPct)
	}
	return p.LowestLevel(overload, kappa)
}
