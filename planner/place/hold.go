package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Hold binds late: a task waits in a pool until it must start, and a GPU that
// comes free takes the waiting task that suits it best. So running nodes have
// no idle gaps while something waits, and a node is switched on only when a
// task cannot wait any longer. It plans online and uses of the future only
// what the arrivals so far suggest. Whenever it is asked it does the first of
// these that applies:
//
//   - A task whose latest start has come goes to a free GPU, waits for the next
//     one at faster clocks, or gets a fresh node, whichever costs least.
//   - A node is opened when those that are on can't do the work in time that
//     waits and is expected ([hold.demand]). Those that aren't needed for it
//     close: they take only what ends no later than they do anyway.
//   - A free GPU gets the task that wastes least there ([hold.fill]): run times
//     are stretched or shortened a little so that the GPUs of a node end
//     together, and at whole slots where starts are bound to them.
//   - With little waiting and little to come, all that waits is planned to the
//     end, and what the plan starts now is started ([hold.drain]).
//
// A Hold is its own [planner.Picker], for what starts next and where is one
// decision (pick.ByPlacer leaves it to the Hold). Tasks of several GPUs or of shares,
// several node classes, known futures and objectives that aren't energy and time
// fall back to [Marginal].
//
// The numbers in these files without another reason were chosen on the online
// reference sets (docs/performance.md, "Online: late-binding").
func Hold(v *planner.View) planner.Placer {
	p := v.Problem
	price := p.Price(0)
	if p.Mode != planner.Online || !v.Simple() || len(p.Cluster.Classes) > 1 || price.DelayPower > 0 || price.EnergyWeight <= 0 {
		return Marginal(v)
	}
	k := &p.Cluster.Classes[0]
	return &hold{
		marginal: marginal{opening: opening{v}},
		gpus:     float64(k.GPUs),
		idle:     float64(k.IdleW+k.HostW) * price.EnergyWeight,
		turnOn:   float64(k.TurnOn) * price.EnergyWeight,
		delay:    k.TurnOnDelay,
		price:    price,
		task:     -1,
		asked:    math.Inf(-1),
	}
}

type hold struct {
	marginal // answers offers that another picker makes
	stream

	gpus         float64 // GPUs of a node
	idle, turnOn float64 // cost of an idle second, and of switching on, by GPU, joules, joules
	delay        float64 // of switching on, seconds
	price        dvfsmodel.Objective

	pool []held  // tasks that wait, by latest start, then number
	work float64 // run time that waits in the pool, seconds
	rush []int   // tasks that no clocks of the tuner do in time: they don't wait
	rows []row   // nodes that are on; once look has brought them up to date, those that end last come first

	// What demand answered last, and for which time and number of rows. It is
	// asked again when one of these changes, or tasks arrive.
	keep  int     // nodes that go on taking tasks
	lack  float64 // GPUs that are needed beyond those that are on
	asked float64
	on    int

	// What Next decided, for Place to repeat.
	task    int // -1: nothing
	ready   planner.Placement
	verdict planner.Verdict
}

// row is a node that is on, as it is now.
type row struct {
	node  int
	end   float64 // when its last task ends, or now
	frees int     // GPUs that run nothing
	open  bool    // goes on taking tasks beyond end
}

func (h *hold) Opened(node int) {
	h.marginal.Opened(node)
	h.rows = append(h.rows, row{node: node})
}

func (h *hold) Closed(node int) {
	h.marginal.Closed(node)
	h.rows = slices.DeleteFunc(h.rows, func(r row) bool { return r.node == node })
}

// Place answers with the start that Next decided on.
func (h *hold) Place(task int) (planner.Placement, planner.Verdict) {
	if task != h.task {
		return h.marginal.Place(task)
	}
	h.task = -1
	return h.ready, h.verdict
}

// Refused is never called: what Next offers starts.
func (h *hold) Refused(int) {}

// Arrive puts tasks into the pool.
func (h *hold) Arrive(tasks []int) {
	for _, task := range tasks {
		if _, ok := h.v.Want(task, 0); !ok {
			h.rush = append(h.rush, task)
			continue
		}
		j := h.newHeld(task)
		i, _ := slices.BinarySearchFunc(h.pool, j, func(a, b held) int {
			return cmp.Or(cmp.Compare(a.latest, b.latest), cmp.Compare(a.task, b.task))
		})
		h.pool = slices.Insert(h.pool, i, j)
		h.work += j.want
		h.saw(h.v.Now, h.v.Problem.Tasks[task].Due-h.v.Now, j.want)
	}
	h.asked = math.Inf(-1)
}

// Wake is when a GPU comes free or a task must start.
func (h *hold) Wake() float64 {
	next := math.Inf(1)
	if len(h.pool) == 0 {
		return next
	}
	i, _ := slices.BinarySearchFunc(h.pool, h.v.Now, func(j held, now float64) int {
		if j.latest > now {
			return 1
		}
		return -1
	})
	if i < len(h.pool) {
		next = h.pool[i].latest
	}
	h.eachGPU(func(_, _ int, free float64) {
		if free > h.v.Now {
			next = min(next, free)
		}
	})
	return next
}

// eachGPU visits the GPUs of the nodes that are on with the earliest start
// behind what they run.
func (h *hold) eachGPU(visit func(r, gpu int, free float64)) {
	for r := range h.rows {
		first, count := h.v.GPUs(h.rows[r].node)
		for g := range count {
			visit(r, g, h.v.StartAfter(h.v.Free(first+g)))
		}
	}
}

// Next decides what starts now and where; Place repeats it.
func (h *hold) Next() (task int, ok bool) {
	if n := len(h.rush); n > 0 {
		task, h.rush = h.rush[0], h.rush[1:]
		return task, true // where Marginal says
	}
	if len(h.pool) == 0 {
		return 0, false
	}
	i, ok := h.next()
	if !ok {
		return 0, false
	}
	h.task = h.pool[i].task
	h.work -= h.pool[i].want
	h.pool = slices.Delete(h.pool, i, i+1)
	return h.task, true
}

// next is the place in the pool of the task to start now, by the first of the
// rules of [Hold] that applies; where it starts is in ready.
func (h *hold) next() (i int, ok bool) {
	frees, gaps := h.look()
	if i, ok = h.urgent(gaps); ok {
		return i, true
	}
	if frees == 0 {
		return 0, h.lack >= lackOpens*h.gpus && h.startFresh(&h.pool[0])
	}
	if h.ending() {
		return h.drain()
	}
	return h.fill()
}

// look brings the rows up to date. It counts the GPUs that are free, and sums up
// the gaps: the GPU-seconds that nothing is planned for before their nodes end.
func (h *hold) look() (frees int, gaps float64) {
	now := h.v.Now
	for i := range h.rows {
		r := &h.rows[i]
		r.end, r.frees = max(now, h.v.LastEnd(r.node)), 0
	}
	h.eachGPU(func(i, _ int, free float64) {
		r := &h.rows[i]
		gaps += max(0, r.end-free)
		if free <= now {
			r.frees++
			frees++
		}
	})
	slices.SortStableFunc(h.rows, func(a, b row) int { return cmp.Compare(b.end, a.end) })
	if h.asked != now || h.on != len(h.rows) {
		h.asked, h.on = now, len(h.rows)
		h.keep, h.lack = h.demand()
	}
	for i := range h.rows {
		h.rows[i].open = i < h.keep
	}
	return frees, gaps
}

// start runs a task now for t seconds on a GPU of a node.
func (h *hold) start(j *held, node, gpu int, t float64) {
	h.ready, h.verdict = h.placed(j, node, gpu, h.v.Now, t, planner.PlaceHeld), planner.Start
}

// startOn runs a task now for t seconds on the first free GPU of a row's node.
func (h *hold) startOn(j *held, r *row, t float64) {
	first, count := h.v.GPUs(r.node)
	for g := range count {
		if h.v.StartAfter(h.v.Free(first+g)) <= h.v.Now {
			h.start(j, r.node, g, t)
			return
		}
	}
}

// startFresh runs a task on a node that is off, if there is one on which it
// ends in time.
func (h *hold) startFresh(j *held) bool {
	start := h.v.StartOnNew(j.task, 0)
	t := min(j.want, j.room(start))
	if t < j.min || !h.v.CanOpen(j.task, j.option, 0) {
		return false
	}
	h.ready, h.verdict = h.placed(j, -1, 0, start, t, planner.PlaceOpened), planner.Start
	return true
}
