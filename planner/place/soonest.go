package place

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// Soonest starts every task as early as it can, opening a GPU rather than
// waiting: what a batch system does that knows nothing of energy. Among equal
// starts it takes a GPU that is on.
func Soonest(v *planner.View) planner.Placer {
	if !v.OnlyWholeGPUs() || len(v.Problem.Cluster.Classes) > 1 {
		return &soonest{stageBase{v}}
	}
	return &soonestGPU{lightest{stageBase: stageBase{v}}}
}

// soonest looks at every place; it takes time linear in the number of GPUs.
type soonest struct{ stageBase }

func (s *soonest) Opened(int) {}

func (s *soonest) Closed(int) {}

func (s *soonest) Committed(int, *planner.Assignment) {}

func (s *soonest) Place(task int) (planner.Placement, planner.Verdict) {
	if s.isGang(task) {
		return s.placeGang(task, gangSoonest)
	}
	var best planner.Placement
	earliest := math.Inf(1)
	s.eachPlace(task, func(node, class, option int, gpus planner.GPUSet, start float64) {
		if start >= earliest {
			return
		}
		earliest = start
		q, room, why := s.quoteOrFastest(task, option, class, start)
		best = placement(node, class, option, gpus, start, &q, room, why)
	})
	if math.IsInf(earliest, 1) {
		return best, planner.Reject
	}
	return best, planner.Start
}

// quoteOrFastest is quote for a start that is not up for choice: where the due time
// is lost there, it answers with the fastest clocks.
func (o stageBase) quoteOrFastest(
	task, option, class int, start float64,
) (q planner.Quote, room float64, why planner.PlaceReason) {
	q, room, ok := o.quote(task, option, class, start)
	if !ok {
		return o.v.Tuner.Fastest(task, option, class), room, planner.PlaceLate
	}
	return q, room, planner.PlaceSoonest
}

// soonestGPU is soonest for tasks of one GPU on the nodes of one class: it finds the
// GPU in the heap of Lightest.
type soonestGPU struct{ lightest }

func (s *soonestGPU) Place(task int) (planner.Placement, planner.Verdict) {
	const class = 0
	option := s.usableOption(task, class)
	gpu, found := s.top()
	fresh := option >= 0 && s.v.CanOpen(task, option, class)
	if option < 0 || (!fresh && !found) {
		return planner.Placement{}, planner.Reject
	}
	start := s.v.StartOnNew(task, class)
	if found {
		if onGPU := s.v.StartFor(task, s.v.FreeFrom(gpu)); !fresh || onGPU <= start {
			q, room, why := s.quoteOrFastest(task, option, class, onGPU)
			node, set := s.nodeOf(gpu)
			return placement(node, class, option, set, onGPU, &q, room, why), planner.Start
		}
	}
	q, room, why := s.quoteOrFastest(task, option, class, start)
	return placement(-1, class, option, planner.FirstGPUs(1), start, &q, room, why), planner.Start
}
