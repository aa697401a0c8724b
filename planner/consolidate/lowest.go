package consolidate

import "sort"

// Lowest is the lowest level at which a GPU with that load keeps the SLA of a
// task that allows kappa times its time alone. Contention counts where the
// problem is [Safe] only. It is f_max and false where no level does.
func (in *Instance) Lowest(problem Problem, loadPct []float64, kappa float64, c Contention) (mhz float64, ok bool) {
	overload := 1.0
	if problem == Safe {
		overload = c.Overload(loadPct)
	}
	return in.Physics.lowest(overload, kappa)
}

// lowest is the lowest level at which what takes overload times as long at
// f_max takes at most kappa times as long.
func (p *Physics) lowest(overload, kappa float64) (mhz float64, ok bool) {
	level := sort.Search(len(p.LevelsMHz), func(i int) bool {
		return overload*p.Stretch(p.LevelsMHz[i]) <= kappa+tolerance
	})
	if level == len(p.LevelsMHz) {
		return p.MaxMHz(), false
	}
	return p.LevelsMHz[level], true
}
