package place

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// Soonest starts every task as early as it can, opening a GPU rather than
// waiting: what a batch system does that knows nothing of energy. Among equal
// starts it takes a GPU that is on.
func Soonest(v *planner.View) planner.Placer {
	if !v.OnlyWholeGPUs || len(v.Problem.Cluster.Classes) > 1 {
		return &soonest{v}
	}
	return &soonestGPU{lightest{v: v}}
}

// soonest looks at every place; it takes time linear in the number of GPUs.
type soonest struct{ v *planner.View }

func (s *soonest) Opened(int) {}

func (s *soonest) Closed(int) {}

func (s *soonest) Committed(int, *planner.Assignment) {}

func (s *soonest) Place(task int) (planner.Placement, planner.Verdict) {
	if s.v.Problem.Tasks[task].IsGang() {
		return placeGang(s.v, task, gangSoonest)
	}
	var best planner.Placement
	earliest := math.Inf(1)
	eachPlace(s.v, task, func(node, class, option int, gpus planner.GPUSet, start float64) {
		if start >= earliest {
			return
		}
		earliest = start
		q, room, why := quoteOrFastest(s.v, task, option, class, start, planner.PlaceSoonest)
		best = newPlacement(node, class, option, gpus, start, &q, room, why)
	})
	if math.IsInf(earliest, 1) {
		return best, planner.Reject
	}
	return best, planner.Start
}

// soonestGPU is soonest for tasks of one GPU on the nodes of one class: it finds the
// GPU in the heap of Lightest.
type soonestGPU struct{ lightest }

func (s *soonestGPU) Place(task int) (planner.Placement, planner.Verdict) {
	const class = 0
	option := usableOption(s.v, task, class)
	gpu, found := s.freestGPU()
	fresh := option >= 0 && s.v.CanOpen(task, option, class)
	if option < 0 || (!fresh && !found) {
		return planner.Placement{}, planner.Reject
	}
	start := s.v.StartOnNew(task, class)
	if found {
		if onGPU := s.v.StartFor(task, s.v.FreeFrom(gpu)); !fresh || onGPU <= start {
			q, room, why := quoteOrFastest(s.v, task, option, class, onGPU, planner.PlaceSoonest)
			node, set := s.nodeOf(gpu)
			return newPlacement(node, class, option, set, onGPU, &q, room, why), planner.Start
		}
	}
	q, room, why := quoteOrFastest(s.v, task, option, class, start, planner.PlaceSoonest)
	return newPlacement(-1, class, option, planner.FirstGPUs(1), start, &q, room, why), planner.Start
}
