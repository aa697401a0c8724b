package place

import (
	"slices"

	"github.com/epplan/epplan/planner"
)

// Lightest places a task on the GPU that is free first, if it fits there before
// its due time as it is or readjusted by Tune, and opens a GPU otherwise (EDL
// algorithms 2 and 5). Equal GPUs are taken in opening order. While the batch
// at time 0 is placed, a deadline-prior task always opens a GPU.
func Lightest(v *planner.View) planner.Placer {
	if !v.OnlyWholeGPUs || len(v.Problem.Cluster.Classes) > 1 {
		return Scan(v, LightestRule)
	}
	return &lightest{
		v: v, heap: make(planner.Agenda, 0, min(len(v.Problem.Tasks)/2, maxReserved)),
	}
}

// lightest keeps the GPUs by when they are free. Those of a node that was opened just now
// wait beside the heap: the task that it was opened for is about to change when one of
// them is free.
type lightest struct {
	v      *planner.View
	heap   planner.Agenda // of GPUs
	opened []planner.Event
}

// maxReserved bounds the room that the heap has from the start.
const maxReserved = 1 << 12

func (l *lightest) Opened(node int) {
	n := l.v.Node(node)
	for g := n.FirstGPU; g < n.FirstGPU+n.GPUs; g++ {
		l.opened = append(l.opened, planner.Event{At: l.v.FreeFrom(g), What: g})
	}
}

// Closed leaves stale entries; Place drops them when they come up.
func (l *lightest) Closed(int) {}

func (l *lightest) Committed(_ int, a *planner.Assignment) {
	gpu := l.v.Node(int(a.Node)).FirstGPU + a.GPUs.First()
	if len(l.heap) > 0 && l.heap[0].What == gpu {
		l.heap.Move(0, a.End)
		return
	}
	for i, e := range slices.Backward(l.opened) {
		if e.What == gpu {
			l.opened[i].At = a.End
			return
		}
	}
	for i, e := range slices.Backward(l.heap) {
		if e.What == gpu {
			l.heap.Move(i, a.End)
			return
		}
	}
}

func (l *lightest) Place(task int) (planner.Placement, planner.Verdict) {
	const class = 0
	want, option, ok := l.v.Want(task, class)
	if !ok {
		return placeAsLastResort(l.v, task)
	}
	if l.v.Now == 0 && want.Clocks == planner.ClocksDeadline {
		return l.openFresh(task)
	}
	gpu, found := l.freestGPU()
	if !found {
		return l.openFresh(task)
	}
	start := l.v.StartFor(task, l.v.FreeFrom(gpu))
	room := l.v.Problem.Tasks[task].TimeBudgetFrom(start)
	if want.Point.Time <= room {
		node, set := l.nodeOf(gpu)
		return newPlacement(node, class, option, set, start, want, room, planner.PlaceLightest), planner.Start
	}
	if q, fits := l.v.Tuner.Fit(task, option, class, *want, room); fits {
		node, set := l.nodeOf(gpu)
		return newPlacement(node, class, option, set, start, &q, room, planner.PlaceLightest), planner.Start
	}
	return l.openFresh(task)
}

// openFresh takes a fresh GPU, or, when there is none, the lightest one by force.
func (l *lightest) openFresh(task int) (planner.Placement, planner.Verdict) {
	if pl, ok := onFreshNodeOfClass(l.v, task, 0); ok {
		return pl, planner.Start
	}
	gpu, found := l.freestGPU()
	if !found {
		return placeAsLastResort(l.v, task)
	}
	option := l.v.Option(task, 0)
	start := l.v.StartFor(task, l.v.FreeFrom(gpu))
	if q, room, ok := askQuote(l.v, task, option, 0, start); ok {
		node, set := l.nodeOf(gpu)
		return newPlacement(node, 0, option, set, start, &q, room, planner.PlaceForced), planner.Start
	}
	return placeAsLastResort(l.v, task)
}

// nodeOf returns a GPU as its node, and the set of it alone on that node.
func (l *lightest) nodeOf(gpu int) (node int, set planner.GPUSet) {
	node = l.v.NodeOf(gpu)
	first := l.v.Node(node).FirstGPU
	return node, 1 << uint(gpu-first)
}

// freestGPU returns the GPU that is free first and whose node is on.
func (l *lightest) freestGPU() (gpu int, ok bool) {
	for _, e := range l.opened {
		l.heap.Add(e)
	}
	l.opened = l.opened[:0]
	for len(l.heap) > 0 {
		gpu = l.heap[0].What
		if l.v.Node(l.v.NodeOf(gpu)).On && l.heap[0].At == l.v.FreeFrom(gpu) {
			return gpu, true
		}
		l.heap.Pop()
	}
	return 0, false
}
