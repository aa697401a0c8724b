package tune

import "github.com/epplan/epplan/planner"

// Stretched is [Optimum] that lets no run time grow beyond such a multiple of
// the one at default clocks: where others wait for the GPUs, slow clocks cost
// more than their energy says.
func Stretched(theta, stretch float64) func(*planner.Problem) planner.Tuner {
	return func(p *planner.Problem) planner.Tuner {
		return &stretched{Tuner: Optimum(theta)(p), p: p, stretch: stretch}
	}
}

type stretched struct {
	planner.Tuner // the optimum
	p             *planner.Problem
	stretch       float64
}

// Want returns the optimum within the stretch, which counts as the free one.
func (s *stretched) Want(task, option, class int, room float64) (planner.Quote, bool) {
	longest := s.stretch * s.p.Tasks[task].Options[option].Response.Default().Time
	if longest >= room {
		return s.Tuner.Want(task, option, class, room)
	}
	q, ok := s.Tuner.Want(task, option, class, longest)
	if ok && q.Clocks == planner.ClocksDeadline {
		q.Clocks, q.Want = planner.ClocksFree, q.Point.Time
	}
	return q, ok
}
