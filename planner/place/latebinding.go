package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// LateBinding binds late: a task waits in a pool until it must start, and a GPU that
// comes free takes the waiting task that suits it best. So running nodes have
// no idle gaps while something waits, and a node is switched on only when a
// task cannot wait any longer. It plans online and uses of the future only
// what the arrivals so far suggest. Whenever it is asked it does the first of
// these that applies:
//
//   - A task whose latest start has come goes to a free GPU, waits for the next
//     one at faster clocks, or gets a fresh node, whichever costs least.
//   - A node is opened when those that are on can't do the work in time that
//     waits and is expected ([lateBinding.demand]). Those that aren't needed for it
//     close: they take only what ends no later than they do anyway.
//   - A free GPU gets the task that wastes least there ([lateBinding.fillGap]): run times
//     are stretched or shortened a little so that the GPUs of a node end
//     together, and at whole slots where starts are bound to them.
//   - With little waiting and little to come, all that waits is planned to the
//     end, and what the plan starts now is started ([lateBinding.planTail]).
//
// A LateBinding is its own [planner.Picker], for what starts next and where is one
// decision (pick.ByPlacer leaves it to the LateBinding). Tasks of several GPUs or of shares,
// several node classes, known futures and objectives that aren't energy and time
// fall back to [Marginal].
//
// The numbers in these files without another reason were chosen on the online
// reference sets (lab/docs/figures.md, "Online: late-binding").
func LateBinding(v *planner.View) planner.Placer {
	if h := newLateBinding(v); h != nil {
		return h
	}
	return Marginal(v)
}

// newLateBinding returns nil where a LateBinding falls back.
func newLateBinding(v *planner.View) *lateBinding {
	p := v.Problem
	price := p.ClassObjective(0)
	if p.Mode != planner.Online || !v.OnlyWholeGPUs || len(p.Cluster.Classes) > 1 || price.DelayPower > 0 ||
		price.EnergyWeight <= 0 {
		return nil
	}
	k := &p.Cluster.Classes[0]
	costs := nodeCosts{
		v: v, price: price, gpus: float64(k.GPUs), delay: k.TurnOnDelay,
		idle:   float64(k.IdleW+k.HostW) * price.EnergyWeight,
		turnOn: float64(k.TurnOn) * price.EnergyWeight,
	}
	return &lateBinding{nodeCosts: costs, others: Marginal(v), task: -1, asked: math.Inf(-1)}
}

type lateBinding struct {
	nodeCosts
	others   planner.Placer // answers offers that another picker makes
	arrivals arrivalStream

	pool         []deferredTask // tasks that wait, by latest start, then number
	work         float64        // run time that waits in the pool, seconds
	mustStartNow []int          // tasks that no clocks of the tuner do in time: they don't wait
	// Nodes that are on; once look has brought them up to date, those that end last come
	// first.
	openNodes openNodes

	// What demand answered last, and for which time and number of rows. It is
	// asked again when one of these changes, or tasks arrive.
	keepOpen int     // nodes that go on taking tasks
	shortage float64 // GPUs that are needed beyond those that are on
	asked    float64
	on       int

	// What Next decided, for Place to repeat.
	task    int // -1: nothing
	ready   planner.Placement
	verdict planner.Verdict
}

// openNode is a node that is on, as it is now.
type openNode struct {
	node      int
	first     int     // its lowest GPU
	gpus      int     // that it has
	end       float64 // when its last task ends, or now
	freeCount int     // GPUs that run nothing
	keepsOpen bool    // goes on taking tasks beyond end
}

type openNodes []openNode

// eachGPU visits the GPUs of the nodes that are on with the earliest start
// behind what they run.
func (all openNodes) eachGPU(v *planner.View, visit func(r, gpu int, free float64)) {
	for r := range all {
		first, count := all[r].first, all[r].gpus
		for g := range count {
			visit(r, g, v.StartAfter(v.FreeFrom(first+g)))
		}
	}
}

// busyUntil lists when the GPUs that are busy come free.
func (all openNodes) busyUntil(v *planner.View) []float64 {
	soon := []float64{}
	all.eachGPU(v, func(_, _ int, free float64) {
		if free > v.Now {
			soon = append(soon, free)
		}
	})
	slices.Sort(soon)
	return soon
}

func (h *lateBinding) Opened(node int) {
	h.others.Opened(node)
	n := h.v.Node(node)
	h.openNodes = append(h.openNodes, openNode{node: node, first: n.FirstGPU, gpus: n.GPUs})
}

func (h *lateBinding) Closed(node int) {
	h.others.Closed(node)
	h.openNodes = slices.DeleteFunc(h.openNodes, func(r openNode) bool { return r.node == node })
}

// Committed tells those who answer other offers, too.
func (h *lateBinding) Committed(task int, a *planner.Assignment) { h.others.Committed(task, a) }

// Place answers with the start that Next decided on.
func (h *lateBinding) Place(task int) (planner.Placement, planner.Verdict) {
	if task != h.task {
		return h.others.Place(task)
	}
	h.task = -1
	return h.ready, h.verdict
}

// Refused is never called: what Next offers starts.
func (h *lateBinding) Refused(int) {}

// Arrive puts tasks into the pool.
func (h *lateBinding) Arrive(tasks []int) {
	for _, task := range tasks {
		if _, _, ok := h.v.Want(task, 0); !ok {
			h.mustStartNow = append(h.mustStartNow, task)
			continue
		}
		j := newDeferred(&h.nodeCosts, task)
		i, _ := slices.BinarySearchFunc(h.pool, j, func(a, b deferredTask) int {
			return cmp.Or(cmp.Compare(a.latest, b.latest), cmp.Compare(a.task, b.task))
		})
		h.pool = slices.Insert(h.pool, i, j)
		h.work += j.want
		h.arrivals.noteArrival(h.v.Now, h.v.Problem.Tasks[task].Due-h.v.Now, j.want)
	}
	h.asked = math.Inf(-1)
}

// Wake returns when a GPU comes free or a task must start.
func (h *lateBinding) Wake() float64 {
	next := math.Inf(1)
	if len(h.pool) == 0 {
		return next
	}
	i, _ := slices.BinarySearchFunc(h.pool, h.v.Now, func(j deferredTask, now float64) int {
		if j.latest > now {
			return 1
		}
		return -1
	})
	if i < len(h.pool) {
		next = h.pool[i].latest
	}
	h.openNodes.eachGPU(h.v, func(_, _ int, free float64) {
		if free > h.v.Now {
			next = min(next, free)
		}
	})
	return next
}

// Next decides what starts now and where; Place repeats it.
func (h *lateBinding) Next() (task int, ok bool) {
	if n := len(h.mustStartNow); n > 0 {
		task, h.mustStartNow = h.mustStartNow[0], h.mustStartNow[1:]
		return task, true // where Marginal says
	}
	if len(h.pool) == 0 {
		return 0, false
	}
	i, ok := h.nextByRules()
	if !ok {
		return 0, false
	}
	h.task = h.pool[i].task
	h.work -= h.pool[i].want
	h.pool = slices.Delete(h.pool, i, i+1)
	return h.task, true
}

// nextByRules returns the place in the pool of the task to start now, by the first of the
// rules of [LateBinding] that applies; where it starts is in ready.
func (h *lateBinding) nextByRules() (i int, ok bool) {
	frees, gaps := h.refreshNodes()
	if i, ok = h.startUrgent(gaps); ok {
		return i, true
	}
	if frees == 0 {
		return 0, h.shortage >= openShortage*h.gpus && h.startFresh(&h.pool[0])
	}
	if h.isTailing() {
		return h.planTail()
	}
	return h.fillGap()
}

// refreshNodes brings the rows up to date. It counts the GPUs that are free, and sums up
// the gaps: the GPU-seconds that nothing is planned for before their nodes end.
func (h *lateBinding) refreshNodes() (frees int, gaps float64) {
	now := h.v.Now
	for i := range h.openNodes {
		r := &h.openNodes[i]
		r.end, r.freeCount = max(now, h.v.Node(r.node).LastEnd), 0
	}
	h.openNodes.eachGPU(h.v, func(i, _ int, free float64) {
		r := &h.openNodes[i]
		gaps += max(0, r.end-free)
		if free <= now {
			r.freeCount++
			frees++
		}
	})
	slices.SortStableFunc(h.openNodes, func(a, b openNode) int { return cmp.Compare(b.end, a.end) })
	if h.asked != now || h.on != len(h.openNodes) {
		h.asked, h.on = now, len(h.openNodes)
		h.keepOpen, h.shortage = h.demand()
	}
	for i := range h.openNodes {
		h.openNodes[i].keepsOpen = i < h.keepOpen
	}
	return frees, gaps
}

// start runs a task now for t seconds on a GPU of a node.
func (h *lateBinding) start(j *deferredTask, node, gpu int, t float64) {
	h.ready, h.verdict = j.placementAt(node, gpu, h.v.Now, t, planner.PlaceHeld), planner.Start
}

// startOn runs a task now for t seconds on the first free GPU of a row's node.
func (h *lateBinding) startOn(j *deferredTask, r *openNode, t float64) {
	for g := range r.gpus {
		if h.v.StartAfter(h.v.FreeFrom(r.first+g)) <= h.v.Now {
			h.start(j, r.node, g, t)
			return
		}
	}
}

// startFresh runs a task on a node that is off, if there is one on which it
// ends in time.
func (h *lateBinding) startFresh(j *deferredTask) bool {
	start := h.v.StartOnNew(j.task, 0)
	t := min(j.want, j.timeBudget(start))
	if t < j.min || !h.v.CanOpen(j.task, int(j.option), 0) {
		return false
	}
	h.ready, h.verdict = j.placementAt(-1, 0, start, t, planner.PlaceOpened), planner.Start
	return true
}
