package place

import (
	"math"
	"math/bits"

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
		v: v, heap: make([]freeGPU, 0, min(len(v.Problem.Tasks)/2, maxReserved)),
	}
}

// lightest keeps the GPUs in a heap by (free time, number). Those of a node
// that was opened just now wait behind it: the task that it was opened for is
// about to change when one of them is free.
type lightest struct {
	v    *planner.View
	heap []freeGPU
	size int // of the heap; what follows isn't in it yet
}

// maxReserved bounds the room that the heap has from the start.
const maxReserved = 1 << 12

// freeGPU is a GPU by when it is free. As times aren't negative, their bits are
// in the order of the times.
type freeGPU struct {
	free uint64 // bits of the time
	gpu  uint64
}

func freeFrom(time float64, gpu int) freeGPU {
	return freeGPU{free: math.Float64bits(time), gpu: uint64(gpu)}
}

// before is 1 if a is free before b, and 0 otherwise. The pair is subtracted
// like one long number: a branch would be guessed wrong every other time.
func (a freeGPU) before(b freeGPU) int {
	_, borrow := bits.Sub64(a.gpu, b.gpu, 0)
	_, borrow = bits.Sub64(a.free, b.free, borrow)
	return int(borrow)
}

func (l *lightest) Opened(node int) {
	n := l.v.Node(node)
	for g := n.FirstGPU; g < n.FirstGPU+n.GPUs; g++ {
		l.heap = append(l.heap, freeFrom(l.v.FreeFrom(g), g))
	}
}

// Closed leaves stale entries; Place drops them when they come up.
func (l *lightest) Closed(int) {}

func (l *lightest) Committed(_ int, a *planner.Assignment) {
	first := l.v.Node(int(a.Node)).FirstGPU
	now := freeFrom(a.End, first+a.GPUs.First())
	if l.size > 0 && l.heap[0].gpu == now.gpu {
		l.heap[0] = now
		l.siftDown(0)
		return
	}
	for i := len(l.heap) - 1; i >= 0; i-- {
		if l.heap[i].gpu == now.gpu { // opened just now: near the end
			l.heap[i] = now
			if i < l.size {
				l.siftDown(i)
			}
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
	gpu, found := l.top()
	if !found {
		return l.openFresh(task)
	}
	start := l.v.StartFor(task, l.v.FreeFrom(gpu))
	room := l.v.Problem.Tasks[task].TimeBudgetFrom(start)
	if want.Point.Time <= room {
		node, set := l.nodeOf(gpu)
		return placement(node, class, option, set, start, want, room, planner.PlaceLightest), planner.Start
	}
	if q, fits := l.v.Tuner.Fit(task, option, class, *want, room); fits {
		node, set := l.nodeOf(gpu)
		return placement(node, class, option, set, start, &q, room, planner.PlaceLightest), planner.Start
	}
	return l.openFresh(task)
}

// openFresh takes a fresh GPU, or, when there is none, the lightest one by force.
func (l *lightest) openFresh(task int) (planner.Placement, planner.Verdict) {
	if pl, ok := onFreshNodeOfClass(l.v, task, 0); ok {
		return pl, planner.Start
	}
	gpu, found := l.top()
	if !found {
		return placeAsLastResort(l.v, task)
	}
	option := l.v.Option(task, 0)
	start := l.v.StartFor(task, l.v.FreeFrom(gpu))
	if q, room, ok := quote(l.v, task, option, 0, start); ok {
		node, set := l.nodeOf(gpu)
		return placement(node, 0, option, set, start, &q, room, planner.PlaceForced), planner.Start
	}
	return placeAsLastResort(l.v, task)
}

// nodeOf is a GPU as its node, and the set of it alone on that node.
func (l *lightest) nodeOf(gpu int) (node int, set planner.GPUSet) {
	node = l.v.NodeOf(gpu)
	first := l.v.Node(node).FirstGPU
	return node, 1 << uint(gpu-first)
}

// top is the GPU that is free first and whose node is on.
func (l *lightest) top() (gpu int, ok bool) {
	for l.size < len(l.heap) {
		l.size++
		l.siftUp(l.size - 1)
	}
	for len(l.heap) > 0 {
		e := l.heap[0]
		gpu = int(e.gpu)
		if l.v.Node(l.v.NodeOf(gpu)).On && e == freeFrom(l.v.FreeFrom(gpu), gpu) {
			return gpu, true
		}
		l.size--
		l.heap[0] = l.heap[l.size]
		l.heap = l.heap[:l.size]
		l.siftDown(0)
	}
	return 0, false
}

// siftUp moves an entry that may be earlier than its parents to where it belongs.
func (l *lightest) siftUp(i int) {
	e := l.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if e.before(l.heap[parent]) == 0 {
			break
		}
		l.heap[i] = l.heap[parent]
		i = parent
	}
	l.heap[i] = e
}

// siftDown moves an entry that became later to where it belongs: nearly always to
// the bottom, so it goes there first, and then up again as far as it must.
func (l *lightest) siftDown(i int) {
	heap := l.heap[:l.size]
	if i >= len(heap) {
		return
	}
	e := heap[i]
	child := 2*i + 1
	for child+1 < len(heap) {
		child += heap[child+1].before(heap[child])
		heap[i] = heap[child]
		i, child = child, 2*child+1
	}
	if child < len(heap) {
		heap[i] = heap[child]
		i = child
	}
	heap[i] = e
	l.siftUp(i)
}
