package budget

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/heap"
)

// Demand is what a GPU could do with watts.
type Demand struct {
	// Min and Max bound its power limit; where they are equal it can't be set, and the GPU takes that.
	Min, Max dvfsmodel.Watt
	// Need is the limit at which its job is sure to keep its time limit and deadline; 0: any.
	Need dvfsmodel.Watt
	// Curve says how much longer its job takes under limits, ascending by watts; empty: nothing
	// runs there. Under less than the first one's watts it is taken to be as slow as there.
	Curve []Slowdown
	// Budgets are those that it is under, by their index.
	Budgets []int
}

// Slowdown is how many times as long as without a limit a job takes under one.
type Slowdown struct {
	Watts dvfsmodel.Watt
	Times float64
}

// Division is who gets how many watts.
type Division struct {
	Watts []dvfsmodel.Watt // by GPU
	// Short is by how much the least limits of its GPUs exceed each budget.
	Short []dvfsmodel.Watt
	// Unmet counts the GPUs of which jobs need more than they get.
	Unmet int
}

// Divide divides budgets among GPUs. Each GPU has its least limit first; then as many jobs as there is
// room for have what they need; then watts go where they take most off the sum of slowdowns; and what
// is left raises all GPUs alike, so that a job that starts on an idle one isn't slowed. A budget that the
// least limits exceed is short by that.
func Divide(gpus []Demand, budgets []dvfsmodel.Watt) Division {
	d := division{gpus: gpus, watts: make([]dvfsmodel.Watt, len(gpus)), room: slices.Clone(budgets)}
	short := make([]dvfsmodel.Watt, len(budgets))
	for i := range gpus {
		d.raise(i, gpus[i].Min)
	}
	for b, left := range d.room {
		short[b], d.room[b] = max(0, -left), max(0, left)
	}
	unmet := d.meetNeeds()
	d.speedUp()
	d.raiseAlike()
	return Division{Watts: d.watts, Short: short, Unmet: unmet}
}

// division is a division under way.
type division struct {
	gpus  []Demand
	watts []dvfsmodel.Watt
	room  []dvfsmodel.Watt // by budget
}

// raise gives a GPU more.
func (d *division) raise(gpu int, by dvfsmodel.Watt) {
	d.watts[gpu] += by
	for _, b := range d.gpus[gpu].Budgets {
		d.room[b] -= by
	}
}

// headroom returns by how much a GPU may be raised.
func (d *division) headroom(gpu int) dvfsmodel.Watt {
	room := d.gpus[gpu].Max - d.watts[gpu]
	for _, b := range d.gpus[gpu].Budgets {
		room = min(room, d.room[b])
	}
	return max(0, room)
}

// meetNeeds gives GPUs what their jobs need, those first that need the least more. It returns how many
// don't get it.
func (d *division) meetNeeds() (unmet int) {
	var needy []int
	more := func(i int) dvfsmodel.Watt { return min(d.gpus[i].Need, d.gpus[i].Max) - d.watts[i] }
	for i := range d.gpus {
		if more(i) > 0 {
			needy = append(needy, i)
		}
	}
	slices.SortStableFunc(needy, func(i, j int) int { return cmp.Compare(more(i), more(j)) })
	for _, i := range needy {
		if by := more(i); by <= d.headroom(i) {
			d.raise(i, by)
		} else {
			unmet++
		}
	}
	return unmet
}

// step is a GPU that could be raised to a point of its curve.
type step struct {
	gain float64 // of slowdown, by watt
	gpu  int
	to   dvfsmodel.Watt
}

// Compare puts what gains more by watt first, then the GPU that was named first.
func (s step) Compare(other step) int {
	return cmp.Or(cmp.Compare(other.gain, s.gain), cmp.Compare(s.gpu, other.gpu))
}

// bestStep returns to which point of its curve, of those for which there is room, a GPU gains the most by
// watt: skipping points makes a curve that isn't convex one that is. False: none is better than where it is.
func (d *division) bestStep(gpu int) (best step, ok bool) {
	g := &d.gpus[gpu]
	now, room := g.slowdownAt(d.watts[gpu]), d.headroom(gpu)
	for _, point := range g.Curve {
		by := min(point.Watts, g.Max) - d.watts[gpu]
		if by <= 0 || by > room || point.Times >= now {
			continue
		}
		if gain := (now - point.Times) / float64(by); !ok || gain > best.gain {
			best, ok = step{gain, gpu, d.watts[gpu] + by}, true
		}
	}
	return best, ok
}

// slowdownAt returns how much longer a GPU's job takes under a limit.
func (g *Demand) slowdownAt(limit dvfsmodel.Watt) float64 {
	if len(g.Curve) == 0 {
		return 1
	}
	times := g.Curve[0].Times
	for _, point := range g.Curve[1:] {
		if point.Watts > limit {
			break
		}
		times = min(times, point.Times)
	}
	return times
}

// speedUp gives watts where they take most off the sum of slowdowns.
func (d *division) speedUp() {
	var steps heap.Heap[step]
	for i := range d.gpus {
		if s, ok := d.bestStep(i); ok {
			steps = append(steps, s)
		}
	}
	steps.Init()
	for len(steps) > 0 {
		s := steps.Pop()
		if by := s.to - d.watts[s.gpu]; by <= d.headroom(s.gpu) {
			d.raise(s.gpu, by)
		}
		if next, ok := d.bestStep(s.gpu); ok {
			steps.Push(next)
		}
	}
}

// raiseAlike raises all GPUs alike by what is left, in rounds: each ends when a budget or a GPU is full.
func (d *division) raiseAlike() {
	open := make([]int, len(d.gpus))
	for i := range open {
		open[i] = i
	}
	const dust = dvfsmodel.Watt(1e-6)
	for {
		open = slices.DeleteFunc(open, func(i int) bool { return d.headroom(i) <= dust })
		if len(open) == 0 {
			return
		}
		sharers := make([]dvfsmodel.Watt, len(d.room))
		for _, i := range open {
			for _, b := range d.gpus[i].Budgets {
				sharers[b]++
			}
		}
		by := unlimited
		for _, i := range open {
			by = min(by, d.gpus[i].Max-d.watts[i])
			for _, b := range d.gpus[i].Budgets {
				by = min(by, d.room[b]/sharers[b])
			}
		}
		for _, i := range open {
			d.raise(i, by)
		}
	}
}
