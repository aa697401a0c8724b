package place

import (
	"github.com/epplan/epplan/planner"
)

// Lightest places a task on the GPU that is free first, if it fits there before
// its due time as it is or readjusted by Tune, and opens a GPU otherwise (EDL
// algorithms 2 and 5). Equal GPUs are taken in opening order. While the batch
// at time 0 is placed, a deadline-prior task always opens a GPU.
func Lightest(v *planner.View) planner.Placer {
	if !v.Simple() || len(v.Problem.Cluster.Classes) > 1 {
		return Scan(v, LightestRule{})
	}
	return &lightest{opening: opening{v}, heap: make([]freeGPU, 0, min(len(v.Problem.Tasks), mostReserved))}
}

// lightest keeps the GPUs in a heap by (free time, number). Those of a node
// that was opened just now wait behind it: the task that it was opened for is
// about to change when one of them is free.
type lightest struct {
	opening
	heap []freeGPU
	size int // of the heap; what follows isn't in it yet
}

// mostReserved bounds the room that the heap has from the start.
const mostReserved = 1 << 12

type freeGPU struct {
	free float64
	gpu  int32
}

func (a freeGPU) before(b freeGPU) bool {
	return a.free < b.free || (a.free == b.free && a.gpu < b.gpu)
}

func (l *lightest) Opened(node int) {
	first, count := l.v.GPUs(node)
	for g := first; g < first+count; g++ {
		l.heap = append(l.heap, freeGPU{l.v.Free(g), int32(g)}) //nolint:gosec // index of a slice
	}
}

// Closed leaves stale entries; Place drops them when they come up.
func (l *lightest) Closed(int) {}

func (l *lightest) Committed(_ int, a *planner.Assignment) {
	first, _ := l.v.GPUs(int(a.Node))
	gpu := int32(first + a.GPUs.First()) //nolint:gosec // as above
	if l.size > 0 && l.heap[0].gpu == gpu {
		l.heap[0].free = a.End
		l.down(0)
		return
	}
	for i := len(l.heap) - 1; i >= 0; i-- {
		if l.heap[i].gpu == gpu { // opened just now: near the end
			l.heap[i].free = a.End
			if i < l.size {
				l.down(i)
			}
			return
		}
	}
}

func (l *lightest) Place(task int) (planner.Placement, planner.Verdict) {
	const class = 0
	t := &l.v.Problem.Tasks[task]
	want, ok := l.v.Want(task, class)
	if !ok {
		return l.rescue(task)
	}
	gpu, found := l.top()
	if !found || (l.v.Now == 0 && want.Clocks == planner.ClocksDeadline) {
		return l.open(task, gpu, found)
	}
	option := l.v.Option(task, class)
	start := l.v.StartFor(task, l.v.Free(gpu))
	room := t.RoomFrom(start)
	if want.Point.Time <= room {
		return l.on(gpu, option, start, want, room, planner.PlaceLightest), planner.Start
	}
	if q, fits := l.v.Tuner.Fit(task, option, class, *want, room); fits {
		return l.on(gpu, option, start, &q, room, planner.PlaceLightest), planner.Start
	}
	return l.open(task, gpu, true)
}

// open takes a fresh GPU, or, when there is none, the lightest one by force.
func (l *lightest) open(task, gpu int, found bool) (planner.Placement, planner.Verdict) {
	if pl, ok := l.fresh(task); ok {
		return pl, planner.Start
	}
	if !found {
		return l.rescue(task)
	}
	option := l.v.Option(task, 0)
	start := l.v.StartFor(task, l.v.Free(gpu))
	if q, room, ok := l.quote(task, option, 0, start); ok {
		return l.on(gpu, option, start, &q, room, planner.PlaceForced), planner.Start
	}
	return l.rescue(task)
}

func (l *lightest) on(gpu, option int, start float64, q *planner.Quote, room float64, why planner.PlaceReason) planner.Placement {
	node := l.v.Owner(gpu)
	first, _ := l.v.GPUs(node)
	return placement(node, 0, option, planner.GPUSet(1)<<uint(gpu-first), start, q, room, why)
}

// top is the GPU that is free first and whose node is on.
func (l *lightest) top() (gpu int, ok bool) {
	for l.size < len(l.heap) {
		l.size++
		l.up(l.size - 1)
	}
	for len(l.heap) > 0 {
		e := l.heap[0]
		if gpu = int(e.gpu); l.v.On(l.v.Owner(gpu)) && e.free == l.v.Free(gpu) {
			return gpu, true
		}
		l.size--
		l.heap[0] = l.heap[l.size]
		l.heap = l.heap[:l.size]
		l.down(0)
	}
	return 0, false
}

func (l *lightest) up(i int) {
	e := l.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(l.heap[parent]) {
			break
		}
		l.heap[i] = l.heap[parent]
		i = parent
	}
	l.heap[i] = e
}

func (l *lightest) down(i int) {
	heap := l.heap[:l.size]
	if i >= len(heap) {
		return
	}
	e := heap[i]
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(e) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = e
}
