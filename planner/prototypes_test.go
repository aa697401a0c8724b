package planner_test

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/tune"
)

// The policies of this file are thin prototypes of kinds of scheduler that
// differ most from EDL: they show that the stages' interfaces carry them.

// residents is what a Place stage that books no future remembers of each node:
// the tasks that run there. It learns of starts by Committed and of ends by
// their times.
type residents struct {
	v     *planner.View
	nodes []int // that are on
	runs  map[int][]run
}

type run struct {
	task int
	end  float64
	gpus planner.GPUSet
}

func newResidents(v *planner.View) residents { return residents{v: v, runs: map[int][]run{}} }

func (r *residents) Opened(node int) { r.nodes = append(r.nodes, node) }

func (r *residents) Closed(node int) {
	r.nodes = slices.DeleteFunc(r.nodes, func(n int) bool { return n == node })
	delete(r.runs, node)
}

func (r *residents) Committed(task int, a *planner.Assignment) {
	r.runs[int(a.Node)] = append(r.runs[int(a.Node)], run{task, a.End, a.GPUs})
}

// running returns what runs on a node now.
func (r *residents) running(node int) []run {
	r.runs[node] = slices.DeleteFunc(r.runs[node], func(x run) bool { return x.end <= r.v.Now })
	return r.runs[node]
}

// nextEnd returns when something ends; +Inf: nothing runs.
func (r *residents) nextEnd() float64 {
	next := math.Inf(1)
	for _, node := range r.nodes {
		for _, x := range r.running(node) {
			next = min(next, x.end)
		}
	}
	return r.v.StartAfter(next)
}

// now places a task on a node that is on if it can start there at once, or on
// a fresh one for node -1.
func (r *residents) now(task, class, node int) (pl planner.Placement, ok bool) {
	p := r.v.Problem
	pl = planner.Placement{
		Node: node, Class: class, Option: p.Tasks[task].Option(p.Cluster.Classes[class].Model),
	}
	if pl.Option < 0 {
		return pl, false
	}
	if node < 0 {
		pl.GPUs, pl.Start = planner.FirstGPUs(p.Tasks[task].Options[pl.Option].GPUs),
			r.v.StartOnNew(task, class)
		ok = r.v.CanOpen(task, pl.Option, class)
	} else {
		pl.Start, pl.GPUs, ok = r.v.Earliest(task, pl.Option, node)
		ok = ok && pl.Start == r.v.StartAfter(r.v.Now)
	}
	q, fits := r.v.Tuner.Want(task, pl.Option, class, p.Tasks[task].TimeBudgetFrom(pl.Start))
	pl.Point, pl.Reason = q.Point, planner.Reason{Clocks: q.Clocks, Want: q.Want}
	return pl, ok && fits
}

// choices returns all placements of a task that could start at once on a class.
func (r *residents) choices(task, class int) []planner.Placement {
	var all []planner.Placement
	for _, node := range r.nodes {
		if r.v.Node(node).Class == class {
			if pl, ok := r.now(task, class, node); ok {
				all = append(all, pl)
			}
		}
	}
	if pl, ok := r.now(task, class, -1); ok {
		all = append(all, pl)
	}
	return all
}

// value ranks pairs of a waiting job and a node class by what the job is worth
// for each GPU-second there, starts the best pair that can start at once, and
// else sleeps until a GPU is free. A job that is worth nothing is left.
type value struct {
	*valuePlace
	worth   func(task int) float64
	waiting []int
	wake    float64
}

// valuePlace starts the pair that Pick has chosen.
type valuePlace struct {
	residents
	class int
}

func (p *valuePlace) Place(task int) (planner.Placement, planner.Verdict) {
	if all := p.choices(task, p.class); len(all) > 0 {
		return all[0], planner.Start
	}
	return planner.Placement{}, planner.Wait
}

func (p *value) Arrive(tasks []int) { p.waiting = append(p.waiting, tasks...) }

func (p *value) Refused(task int) { p.waiting = append(p.waiting, task) }

func (p *value) Wake() float64 { return p.wake }

func (p *value) Next() (int, bool) {
	best, at := 0.0, -1
	for i, task := range p.waiting {
		for class := range p.v.Problem.Cluster.Classes {
			for _, pl := range p.choices(task, class) {
				density := p.worth(task) / (pl.Point.Time * float64(pl.GPUs.Len()))
				if density > best {
					best, at, p.class = density, i, class
				}
			}
		}
	}
	if at < 0 {
		p.wake = p.nextEnd()
		return 0, false
	}
	task := p.waiting[at]
	p.waiting = slices.Delete(p.waiting, at, at+1)
	return task, true
}

// valuePolicy returns the two of them with clocks of their own.
func valuePolicy(worth func(task int) float64) *planner.Policy {
	return &planner.Policy{
		Name: "value", Tune: tune.Optimum(1), Park: park.DRS{Rho: 2},
		Place: func(v *planner.View) planner.Placer { return &valuePlace{residents: newResidents(v)} },
		Pick: func(_ *planner.View, place planner.Placer) planner.Picker {
			return &value{valuePlace: place.(*valuePlace), worth: worth, wake: math.Inf(1)} //nolint:errcheck // its own
		},
	}
}

// fifo offers what waits in order of arrival, and is asked again when something
// ends.
type fifo struct {
	place   interface{ nextEnd() float64 }
	waiting []int
	refused []int
}

func newFIFO(_ *planner.View, place planner.Placer) planner.Picker {
	return &fifo{place: place.(interface{ nextEnd() float64 })} //nolint:errcheck // of this file
}

func (f *fifo) Arrive(tasks []int) {
	f.waiting = slices.Concat(f.refused, f.waiting, tasks)
	f.refused = nil
}

func (f *fifo) Next() (int, bool) {
	if len(f.waiting) == 0 {
		return 0, false
	}
	task := f.waiting[0]
	f.waiting = f.waiting[1:]
	return task, true
}

func (f *fifo) Refused(task int) { f.refused = append(f.refused, task) }

func (f *fifo) Wake() float64 {
	if len(f.refused) == 0 {
		return math.Inf(1)
	}
	return f.place.nextEnd()
}

// fgd places a share on the GPU where it adds the least fragmentation: what is
// left of GPUs and too little for tasks of the usual sizes.
type fgd struct{ residents }

// usual are the sizes of tasks that fragments are measured by.
var usual = []float64{0.5, 1}

func fragments(left float64) float64 {
	sum := 0.0
	for _, size := range usual {
		if left < size-1e-9 {
			sum += left
		}
	}
	return sum
}

func (f *fgd) Place(task int) (planner.Placement, planner.Verdict) {
	t := &f.v.Problem.Tasks[task]
	least, best, verdict := math.Inf(1), planner.Placement{}, planner.Wait
	for class := range f.v.Problem.Cluster.Classes {
		for _, pl := range f.choices(task, class) {
			for _, gpus := range f.gpus(t, &pl) {
				added := 0.0
				for _, g := range gpus.Indexes() {
					left := f.left(pl.Node, g)
					added += fragments(left-t.Share) - fragments(left)
				}
				if added < least {
					least, best, verdict = added, pl, planner.Start
					best.GPUs = gpus
				}
			}
		}
	}
	return best, verdict
}

// gpus lists the GPUs among which a share can choose on a node.
func (f *fgd) gpus(t *planner.Task, pl *planner.Placement) []planner.GPUSet {
	if t.Share == 1 {
		return []planner.GPUSet{pl.GPUs}
	}
	var all []planner.GPUSet
	for g := range f.v.Problem.Cluster.Classes[pl.Class].GPUs {
		if f.left(pl.Node, g) >= t.Share-1e-9 {
			all = append(all, 1<<uint(g))
		}
	}
	return all
}

// left returns how much of a GPU nothing uses now.
func (f *fgd) left(node, gpu int) float64 {
	left := 1.0
	for _, x := range f.running(node) {
		if x.gpus.Has(gpu) {
			left -= f.v.Problem.Tasks[x.task].Share
		}
	}
	return left
}

// fgdPolicy is fgd with first come, first served.
func fgdPolicy() *planner.Policy {
	return &planner.Policy{
		Name: "fgd", Tune: tune.None, Park: park.DRS{Rho: 2}, Pick: newFIFO,
		Place: func(v *planner.View) planner.Placer { return &fgd{newResidents(v)} },
	}
}

// cats places a task beside those whose needs are least like its own.
type cats struct{ residents }

func (c *cats) Place(task int) (planner.Placement, planner.Verdict) {
	least, best, verdict := math.Inf(1), planner.Placement{}, planner.Wait
	for class := range c.v.Problem.Cluster.Classes {
		for _, pl := range c.choices(task, class) {
			if like := c.likeness(task, pl.Node); like < least {
				least, best, verdict = like, pl, planner.Start
			}
		}
	}
	return best, verdict
}

// likeness returns the mean correlation of a task's needs with those of a node's
// tasks; an empty node counts as one that is just not unlike.
func (c *cats) likeness(task, node int) float64 {
	runs, sum := c.running(node), 0.0
	if len(runs) == 0 {
		return 0.5
	}
	a := &c.v.Problem.Tasks[task]
	for _, x := range runs {
		b := &c.v.Problem.Tasks[x.task]
		sum += (a.CPUs*b.CPUs + a.MemGiB*b.MemGiB) /
			(1e-9 + math.Hypot(a.CPUs, a.MemGiB)*math.Hypot(b.CPUs, b.MemGiB))
	}
	return sum / float64(len(runs))
}

// periodic lets idle nodes go to sleep at whole periods only.
type periodic struct{ seconds float64 }

func (p periodic) OffAt(_ *planner.Cluster, lastEnd float64) float64 {
	return (math.Floor(lastEnd/p.seconds) + 1) * p.seconds
}

// catsPolicy is cats with first come, first served and periodic sleep.
func catsPolicy() *planner.Policy {
	return &planner.Policy{
		Name: "cats", Tune: tune.Optimum(1), Park: periodic{30}, Pick: newFIFO,
		Place: func(v *planner.View) planner.Placer { return &cats{newResidents(v)} },
	}
}
