package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// HP are the tunables.
var HP = struct {
	Tau, Phi, OpenW, RateH, RateTau, FitBase, FitSlope, Accept, OpenFit, NewIdle                                                        float64
	Margin, Eta, Lack, Horizon, KeepMargin, KeepLow, KeepC, LongW, Later, Comp, Lindy, Silence, Tail, Crowd, Near, PhiOpen, Soon, SoonW float64
	Trace                                                                                                                               bool
}{Tau: 300, Phi: 1, OpenW: 1, RateH: 200, RateTau: 40, FitBase: 15, FitSlope: 0.05, Accept: 0.9, OpenFit: 5, NewIdle: 1, Margin: 1.05, Eta: 0.8, Lack: 1e9, Horizon: 3, KeepMargin: 1.5, KeepLow: 1.5, KeepC: 0.5, LongW: 0, Later: 0, Comp: 0.5, Lindy: 0.5, Silence: 0.25, Tail: 0.7, Crowd: 0.5, Near: 10, PhiOpen: 0.1, Soon: 100, SoonW: 30}

func Hold(v *planner.View) planner.Placer {
	if !v.Simple() || len(v.Problem.Cluster.Classes) > 1 {
		return Marginal(v)
	}
	k := &v.Problem.Cluster.Classes[0]
	h := &hold{opening: opening{v}, idle: float64(k.IdleW + k.HostW), l: float64(k.GPUs), turnOn: float64(k.TurnOn)}
	h.now, h.asked = -1, -1
	return h
}

type hold struct {
	opening
	idle                        float64 // cost of an idle GPU's second
	l                           float64
	turnOn                      float64
	now, lastTrace              float64
	asked, lack                 float64
	keep, nodesAsked            int
	count, lastArrival, flowNow float64
	share                       [bins]float64
	pool                        []held // by latest start
	nodes                       []nodeRow
	spans                       []span
	seen, seenWork              float64
	work                        float64 // Σ want over pool
	rate                        float64 // arriving work per second
	rateAt                      float64
	ready                       planner.Placement
}

type held struct {
	task     int
	latest   float64
	due      float64 // end at the latest
	limit    float64
	want     float64 // run time it wants
	cost     float64
	min, max float64
	down, up curve
	option   int
	stretch  bool
}

type nodeRow struct {
	node  int
	end   float64
	gap   float64 // GPU seconds until end on its GPUs
	frees int
	open  bool
}

func (h *hold) Opened(node int) { h.nodes = append(h.nodes, nodeRow{node: node}) }

func (h *hold) Closed(node int) {
	h.nodes = slices.DeleteFunc(h.nodes, func(r nodeRow) bool { return r.node == node })
}

func (h *hold) Committed(int, *planner.Assignment) {}

func (h *hold) Place(int) (planner.Placement, planner.Verdict) { return h.ready, planner.Start }

func (h *hold) Refused(int) {}

// Arrive adds tasks to the pool.
func (h *hold) Arrive(tasks []int) {
	h.decay()
	for _, t := range tasks {
		j := h.newHeld(t)
		i, _ := slices.BinarySearchFunc(h.pool, j, func(a, b held) int {
			return cmp.Or(cmp.Compare(a.latest, b.latest), cmp.Compare(a.task, b.task))
		})
		h.pool = slices.Insert(h.pool, i, j)
		h.work += j.want
		h.seen++
		h.seenWork += j.want
		w := span{j.latest + j.want - h.v.Now, j.want}
		k, _ := slices.BinarySearchFunc(h.spans, w, func(a, b span) int { return cmp.Compare(a.window, b.window) })
		h.spans = slices.Insert(h.spans, k, w)
		if h.v.Now > 0 {
			h.rate += j.want / HP.RateTau
			h.count += 1 / HP.RateTau
			h.lastArrival = h.v.Now
		}
	}
}

func (h *hold) decay() {
	h.rate *= math.Exp(-(h.v.Now - h.rateAt) / HP.RateTau)
	h.count *= math.Exp(-(h.v.Now - h.rateAt) / HP.RateTau)
	h.rateAt = h.v.Now
}

// flow is the work per second that is expected to arrive. It fades fast when
// nothing comes for much longer than usual.
func (h *hold) flow() float64 {
	h.decay()
	silent := h.v.Now - h.lastArrival
	return h.rate * math.Exp(-HP.Silence*silent*h.count)
}

func (h *hold) price(task int, pt dvfsmodel.Point) float64 { return h.v.Problem.Price(0).Cost(pt) }

func (h *hold) newHeld(task int) held {
	t := &h.v.Problem.Tasks[task]
	j := held{task: task, due: t.Due, limit: t.Limit, option: t.Option(h.v.Problem.Cluster.Classes[0].Model)}
	start := h.v.StartFor(task, 0)
	want, ok := h.v.Want(task, 0)
	if !ok {
		j.latest = math.Inf(-1)
		return j
	}
	j.stretch = want.Clocks == planner.ClocksFree || want.Clocks == planner.ClocksDeadline
	pt := h.rounded(&j, t.RoomFrom(start), want)
	j.want, j.cost = pt.Time, h.price(task, pt)
	j.min = t.Options[j.option].Response.MinTime()
	j.max = j.want
	if c, ok := t.Options[j.option].Response.(*dvfsmodel.Continuous); ok && j.stretch {
		j.max = c.Range.MaxTime(c.Params)
		j.down, j.up = h.curveOf(&j, c, 0.96, 0.84), h.curveOf(&j, c, 1.04, 1.2)
	}
	j.latest = t.Due - j.want
	if math.IsInf(t.Due, 1) {
		j.latest = start + j.want
	}
	if h.v.Problem.Start == planner.StartSlot {
		s := h.v.Problem.Cluster.Slot
		j.latest = math.Floor(j.latest/s+1e-9) * s
	}
	return j
}

// rounded is the point that a task wants if nothing hurries it, with a run
// time of whole slots where that costs less than idling to the next slot.
func (h *hold) rounded(j *held, room float64, want *planner.Quote) dvfsmodel.Point {
	best := want.Point
	c, ok := h.v.Problem.Tasks[j.task].Options[j.option].Response.(*dvfsmodel.Continuous)
	if !ok || !j.stretch || h.v.Problem.Start != planner.StartSlot {
		return best
	}
	s := h.v.Problem.Cluster.Slot
	down := math.Floor(best.Time/s) * s
	cost := h.price(j.task, best) + h.idle*min(s, math.Ceil(best.Time/s)*s-best.Time)
	for _, t := range [...]float64{down, down + s} {
		if p, ok := c.Range.ForTime(c.Params, t); ok && t <= room && h.price(j.task, p) < cost {
			best, cost = p, h.price(j.task, p)
		}
	}
	return best
}

// exact is the cheapest point that takes t seconds, or room if that is less.
func (h *hold) exact(j *held, t, room float64, want *planner.Quote) dvfsmodel.Point {
	if c, ok := h.v.Problem.Tasks[j.task].Options[j.option].Response.(*dvfsmodel.Continuous); ok && j.stretch {
		if p, ok := c.Range.ForTime(c.Params, min(t, room)); ok {
			if t > room {
				q := planner.Quote{Point: p}
				return h.rounded(j, room, &q)
			}
			return p
		}
	}
	if want.Point.Time <= room {
		return want.Point
	}
	if q, ok := h.v.Tuner.Want(j.task, j.option, 0, room); ok {
		return q.Point
	}
	return h.v.Tuner.Fastest(j.task, j.option, 0).Point
}

// extra estimates the added cost of running j for t instead of what it wants.
func (j *held) extra(t float64) float64 {
	r := t/j.want - 1
	switch {
	case t < j.min || t > j.max:
		return math.Inf(1)
	case r < 0:
		return (j.down.square*r - j.down.slope) * r
	case r == 0:
		return 0
	default:
		return (j.up.square*r + j.up.slope) * r
	}
}

// paced is the run time at which shortening stops paying when every second of
// it costs price.
func (j *held) paced(price float64) float64 {
	if j.down.square <= 0 {
		if j.down.slope < price*j.want {
			return j.min
		}
		return j.want
	}
	r := (price*j.want - j.down.slope) / (2 * j.down.square)
	return max(j.min, j.want*(1-max(0, r)))
}

// curve is the added cost of a relative change r of the run time, one way:
// slope·|r| + square·r².
type curve struct{ slope, square float64 }

// curveOf fits the curve through two run times.
func (h *hold) curveOf(j *held, c *dvfsmodel.Continuous, near, far float64) curve {
	rise := func(t float64) (r, e float64, ok bool) {
		p, ok := c.Range.ForTime(c.Params, min(max(t, j.min), j.max))
		return math.Abs(p.Time/j.want - 1), max(0, h.price(j.task, p)-j.cost), ok
	}
	r1, e1, ok1 := rise(near * j.want)
	r2, e2, ok2 := rise(far * j.want)
	if !ok1 || !ok2 || r1 < 1e-9 {
		return curve{slope: math.Inf(1)}
	}
	if r2 <= r1*1.01 {
		return curve{slope: e1 / r1}
	}
	q := max(0, (e2/r2-e1/r1)/(r2-r1))
	return curve{slope: max(0, e1/r1-q*r1), square: q}
}

func (h *hold) room(j *held, start float64) float64 { return min(j.due-start, j.limit) }

// Wake is the next time at which a GPU comes free or a task must start.
func (h *hold) Wake() float64 {
	if len(h.pool) == 0 {
		return math.Inf(1)
	}
	next := math.Inf(1)
	for i := range h.pool {
		if l := h.pool[i].latest; l > h.v.Now {
			next = l
			break
		}
	}
	for i := range h.nodes {
		first, count := h.v.GPUs(h.nodes[i].node)
		for g := first; g < first+count; g++ {
			if f := h.v.StartAfter(h.v.Free(g)); f > h.v.Now {
				next = min(next, f)
			}
		}
	}
	return next
}

func (h *hold) scan() (gaps float64, frees int) {
	now := h.v.Now
	for i := range h.nodes {
		r := &h.nodes[i]
		r.end, r.gap, r.frees = max(now, h.v.LastEnd(r.node)), 0, 0
		first, count := h.v.GPUs(r.node)
		for g := first; g < first+count; g++ {
			f := h.v.Free(g)
			if f <= now {
				f = now
				r.frees++
			}
			r.gap += r.end - f
		}
		gaps += r.gap
		frees += r.frees
	}
	return gaps, frees
}

func (h *hold) surplus(gaps float64) float64 {
	h.decay()
	return h.work + h.flow()*min(h.ahead(), HP.RateH) - gaps
}

// Next decides what starts now.
func (h *hold) Next() (int, bool) {
	if len(h.pool) == 0 {
		return 0, false
	}
	gaps, frees := h.scan()
	x := h.surplus(gaps)
	slices.SortStableFunc(h.nodes, func(a, b nodeRow) int { return cmp.Compare(b.end, a.end) })
	if h.asked != h.v.Now || h.nodesAsked != len(h.nodes) {
		h.asked, h.nodesAsked = h.v.Now, len(h.nodes)
		h.keep, h.lack = h.demand()
	}
	keep, lack := h.keep, h.lack
	if HP.Trace && (h.lastTrace+20 <= h.v.Now || len(h.spans) < 100) {
		h.lastTrace = h.v.Now
		println("T", int(h.v.Now), "pool", len(h.pool), "work", int(h.work), "rate", int(h.rate*100), "gaps", int(gaps), "x", int(x), "keep", keep, "nodes", len(h.nodes), "frees", frees, "lack", int(lack))
	}
	for i := range h.nodes {
		h.nodes[i].open = i < keep
	}
	if i, ok := h.urgent(x); ok {
		return h.take(i), true
	}
	if lack >= HP.Lack*h.l && frees == 0 {
		j := &h.pool[0]
		if h.v.CanOpen(j.task, j.option, 0) {
			h.startFresh(j, min(j.want, h.room(j, h.v.Now)))
			return h.take(0), true
		}
	}
	if frees > 0 && h.l > 1 && h.lastArrival > 0 && float64(len(h.pool)) < min(400, HP.Crowd*h.l*float64(len(h.nodes))) &&
		h.flow()*min(1, h.ahead()*h.seen/h.seenWork) < HP.Tail*h.l*float64(len(h.nodes)) {
		if i, ok := h.drain(); ok {
			return h.take(i), true
		}
		return 0, false
	}
	if frees > 0 {
		if i, ok := h.fill(x); ok {
			return h.take(i), true
		}
	}
	return 0, false
}

const bins = 32

// demand is how many of the nodes, in their order, have to go on taking tasks
// so that all due times can be met, and how many GPUs are lacking beyond.
func (h *hold) demand() (keep int, lack float64) {
	now := h.v.Now
	mean := h.seenWork / max(1, h.seen)
	width := mean * HP.Horizon / bins
	var need [bins]float64
	at := func(t float64) int { return int(min(max(0, (t-now)/width), bins)) }
	for i := range h.pool {
		j := &h.pool[i]
		if b := at(j.latest + j.want); b < bins {
			need[b] += j.want
		}
	}
	sum := 0.0
	var base, slope [bins + 1]float64
	for i := range h.nodes {
		r := &h.nodes[i]
		first, count := h.v.GPUs(r.node)
		for g := first; g < first+count; g++ {
			f := max(now, h.v.Free(g))
			h.ramp(&base, &slope, f, r.end, width, HP.Eta)
		}
	}
	// forecast
	fc, arrived := 0.0, 0.0
	h.shares(width)
	km := HP.KeepLow + (HP.KeepMargin-HP.KeepLow)*min(1, h.work/(HP.KeepC*mean*h.l*float64(max(1, len(h.nodes)))))
	h.flowNow = h.flow()
	level, rise := 0.0, 0.0
	for b := range bins {
		sum += need[b]
		if width*float64(b) < h.ahead() {
			arrived = float64(b + 1)
		}
		fc = 0
		cum := 0.0
		_ = cum
		fc = h.forecast(width, b, arrived)
		rise += slope[b]
		level += base[b]
		_ = rise
		d := (sum + fc) - level
		all := 0.0
		for i := range h.nodes {
			all += h.l * max(0, now+width*float64(b+1)-h.nodes[i].end)
		}
		lack = max(lack, ((sum+fc)*HP.Margin-level-all)/(width*float64(b+1)))
		need[b] = d + (sum+fc)*(km-1)
	}
	if h.l == 1 {
		return len(h.nodes), lack
	}
	short := func() bool {
		for b := range bins {
			if need[b] > 0 {
				return true
			}
		}
		return false
	}
	for keep < len(h.nodes) && short() {
		r := &h.nodes[keep]
		for b := range bins {
			need[b] -= h.l * max(0, now+width*float64(b+1)-r.end)
		}
		keep++
	}
	return keep, lack
}

// ahead is how long the stream is expected to go on: as long as it has.
func (h *hold) ahead() float64 { return HP.Lindy * h.v.Now }

// shares notes the share of work whose window ends in each bin, cumulated.
func (h *hold) shares(width float64) {
	sum := 0.0
	for b := range bins {
		sum += h.windows(width*float64(b), width*float64(b+1))
		h.share[b] = sum
	}
}

// forecast is the work that will arrive in the first bins and be due by the
// end of bin b.
func (h *hold) forecast(width float64, b int, arriving float64) float64 {
	sum := 0.0
	for i := 0; i <= b && float64(i) < arriving; i++ {
		sum += h.share[b-i]
	}
	return sum * width * h.flowNow
}

// ramp adds the capacity that a GPU gives between two times to each bin.
func (h *hold) ramp(base, _ *[bins + 1]float64, from, to, width, eta float64) {
	now := h.v.Now
	for b := int((from - now) / width); b < bins; b++ {
		lo, hi := now+width*float64(b), now+width*float64(b+1)
		c := min(hi, to) - max(lo, from)
		if c <= 0 {
			return
		}
		base[b] += c * eta
	}
}

// windows is the share of the work seen whose windows are in a span.
func (h *hold) windows(lo, hi float64) float64 {
	c := 0.0
	i, _ := slices.BinarySearchFunc(h.spans, lo, func(s span, x float64) int { return cmp.Compare(s.window, x) })
	for ; i < len(h.spans) && h.spans[i].window < hi; i++ {
		c += h.spans[i].work
	}
	return c / max(1, h.seenWork)
}

type span struct{ window, work float64 }

func (h *hold) take(i int) int {
	j := h.pool[i]
	h.pool = slices.Delete(h.pool, i, i+1)
	h.work -= j.want
	return j.task
}

// urgent looks at the tasks whose latest start has come.
func (h *hold) urgent(x float64) (int, bool) {
	waiting := 0
	var soon []float64
	for i := range h.pool {
		j := &h.pool[i]
		if j.latest > h.v.Now {
			break
		}
		if math.IsInf(j.latest, -1) {
			if pl, v := h.rescue(j.task); v == planner.Start {
				h.ready = pl
				return i, true
			}
		}
		now := h.v.Now
		room := h.room(j, now)
		t := min(j.want, room)
		base := j.extra(t)
		best, row := math.Inf(1), -1
		for n := range h.nodes {
			r := &h.nodes[n]
			if r.frees == 0 {
				continue
			}
			cost := 0.0
			e := max(0, now+t-r.end)
			if !r.open {
				cost = h.idlePart(x, (h.l-1)*e)
			} else {
				cost = 1e-3 * (h.l - 1) * e
			}
			if cost < best {
				best, row = cost, n
			}
		}
		if soon == nil {
			soon = h.soon()
		}
		wait := math.Inf(1)
		if waiting < len(soon) {
			f := soon[waiting]
			if rm := h.room(j, f); rm >= j.min {
				wait = j.extra(min(j.want, rm)) - base
			}
		}
		fresh := math.Inf(1)
		if h.v.CanOpen(j.task, j.option, 0) {
			fresh = h.turnOn*h.l*HP.OpenW + 2*h.idle*h.l*HP.OpenW + HP.NewIdle*h.idlePart(x, (h.l-1)*t)
		}
		switch {
		case row >= 0 && best <= wait && best <= fresh:
			h.start(j, row, t, planner.PlaceHeld)
			return i, true
		case wait <= fresh && !math.IsInf(wait, 1):
			waiting++
		case !math.IsInf(fresh, 1):
			h.startFresh(j, t)
			return i, true
		default:
			pl, _ := h.rescue(j.task)
			h.ready = pl
			return i, true
		}
	}
	return 0, false
}

// idlePart is the idle cost of capacity that the surplus work may not fill.
func (h *hold) idlePart(x, capacity float64) float64 {
	return HP.Phi * h.idle * max(0, capacity-max(0, x))
}

func (h *hold) soon() []float64 {
	var s []float64
	for i := range h.nodes {
		first, count := h.v.GPUs(h.nodes[i].node)
		for g := first; g < first+count; g++ {
			if f := h.v.StartAfter(h.v.Free(g)); f > h.v.Now {
				s = append(s, f)
			}
		}
	}
	slices.Sort(s)
	return s
}

func (h *hold) start(j *held, row int, t float64, why planner.PlaceReason) {
	r := &h.nodes[row]
	first, count := h.v.GPUs(r.node)
	for g := range count {
		if h.v.Free(first+g) <= h.v.Now {
			h.set(j, r.node, planner.GPUSet(1)<<uint(g), t, why)
			return
		}
	}
}

func (h *hold) startFresh(j *held, t float64) {
	h.set(j, -1, 1, t, planner.PlaceOpened)
}

func (h *hold) set(j *held, node int, gpus planner.GPUSet, t float64, why planner.PlaceReason) {
	now := h.v.StartFor(j.task, h.v.Now)
	room := h.room(j, now)
	want, _ := h.v.Want(j.task, 0)
	pt := h.exact(j, t, room, want)
	clocks := want.Clocks
	if pt.Time > want.Point.Time*(1+1e-12) {
		clocks = planner.ClocksStretched
	} else if pt.Time < want.Point.Time*(1-1e-12) && clocks == planner.ClocksFree {
		clocks = planner.ClocksShrunk
	}
	h.ready = planner.Placement{
		Node: node, Option: j.option, GPUs: gpus, Start: now, Point: pt,
		Reason: planner.Reason{Clocks: clocks, Place: why, Want: want.Point.Time, Room: room},
	}
}

// drain plans the whole pool as if nothing more came, longest task first, each
// where it makes a node end later by least, and starts what the plan starts now.
func (h *hold) drain() (int, bool) {
	now := h.v.Now
	order := make([]int, len(h.pool))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(h.pool[b].want, h.pool[a].want), cmp.Compare(a, b))
	})
	type gpu struct {
		row, set int
		free     float64
		first    int // pool index planned to start now
		n        int
		run      float64
	}
	var gpus []gpu
	ends := make([]float64, len(h.nodes))
	for n := range h.nodes {
		first, count := h.v.GPUs(h.nodes[n].node)
		ends[n] = h.nodes[n].end
		for g := range count {
			gpus = append(gpus, gpu{row: n, set: g, free: h.v.StartAfter(h.v.Free(first + g)), first: -1})
		}
	}
	opened := 0
	for _, i := range order {
		j := &h.pool[i]
		best, at, run := math.Inf(1), -1, 0.0
		for k := range gpus {
			u := &gpus[k]
			t := min(j.want, h.room(j, u.free))
			if t < j.min {
				continue
			}
			if over := u.free + t - ends[u.row]; over > 0 && h.l > 1 {
				t = max(j.min, min(t, max(t-over, h.slots(j.paced(h.idle*h.l)))))
			}
			cost := j.extra(t)
			if d := u.free + t - ends[u.row]; d > 0 {
				cost += h.idle * h.l * d
			} else {
				cost -= d * 0.01 * h.idle
			}
			if cost < best {
				best, at, run = cost, k, t
			}
		}
		if fresh := h.l * (h.turnOn + h.idle*(2+j.want)); fresh < best && h.v.CanOpen(j.task, j.option, 0) {
			// a node that will be opened when its first task must start
			opened++
			base := max(now, j.latest)
			ends = append(ends, base+j.want)
			for g := range int(h.l) {
				u := gpu{row: len(ends) - 1, set: g, free: base, first: -1}
				if g == 0 {
					u.free, u.n = base+j.want, 1
				}
				gpus = append(gpus, u)
			}
			continue
		}
		if at < 0 {
			continue
		}
		u := &gpus[at]
		if u.n == 0 && u.free <= now && u.row < len(h.nodes) {
			u.first, u.run = i, run
		}
		u.n++
		u.free += run
		ends[u.row] = max(ends[u.row], u.free)
	}
	for k := range gpus {
		u := &gpus[k]
		if u.first < 0 {
			continue
		}
		j := &h.pool[u.first]
		r := &h.nodes[u.row]
		run := u.run
		if u.n == 1 {
			other := r.end
			for m := range gpus {
				if m != k && gpus[m].row == u.row {
					other = max(other, gpus[m].free)
				}
			}
			cost := func(t float64) float64 {
				if over := now + t - other; over > 0 {
					return j.extra(t) + h.idle*h.l*over
				} else {
					return j.extra(t) - h.idle*over
				}
			}
			best := cost(run)
			for _, t := range [...]float64{other - now, h.slots(j.paced(h.idle * h.l)), j.want} {
				if t < j.min || t > min(j.max, h.room(j, now)) {
					continue
				}
				if c := cost(t); c < best {
					best, run = c, t
				}
			}
		}
		h.set(j, r.node, planner.GPUSet(1)<<uint(u.set), run, planner.PlaceHeld)
		return u.first, true
	}
	return 0, false
}

// fill gives a free GPU a task of the pool.
func (h *hold) fill(x float64) (int, bool) {
	now := h.v.Now
	if j := &h.pool[0]; j.latest < now+HP.Near {
		best, row, run := math.Inf(1), -1, 0.0
		for n := range h.nodes {
			if r := &h.nodes[n]; r.frees > 0 && r.open {
				if t, w := h.score(j, r, x); w < best {
					best, row, run = w, n, t
				}
			}
		}
		if row >= 0 {
			h.start(j, row, run, planner.PlaceHeld)
			return 0, true
		}
	}
	for n := len(h.nodes) - 1; n >= 0; n-- {
		r := &h.nodes[n]
		if r.frees == 0 {
			continue
		}
		best, waste, run := -1, math.Inf(1), 0.0
		for i := range h.pool {
			if t, w := h.score(&h.pool[i], r, x); w < waste {
				best, waste, run = i, w, t
			}
		}
		if best >= 0 && (r.open || waste < HP.Accept*h.idle*(r.end-now)) {
			h.start(&h.pool[best], n, run, planner.PlaceHeld)
			return best, true
		}
	}
	return 0, false
}

// score is the least cost of running j on a free GPU of the node beyond what
// it takes at its own pace, and the run time for it.
func (h *hold) score(j *held, r *nodeRow, x float64) (run, waste float64) {
	g := r.end - h.v.Now
	room := h.room(j, h.v.Now)
	if room < j.min {
		return 0, math.Inf(1)
	}
	waste = math.Inf(1)
	try := func(t float64) {
		if t = min(t, room); t < j.min {
			return
		}
		w := j.extra(t)
		if t <= g {
			w += h.rest(g - t)
		} else if r.open {
			w += h.idle * HP.PhiOpen * (h.l - 1) * (t - g)
		} else {
			w += h.idle * (h.l - 1) * (t - g)
		}
		if w < waste {
			run, waste = t, w
		}
	}
	try(j.want)
	if j.want > g {
		phi := 1.0
		if r.open {
			phi = HP.PhiOpen
		}
		try(max(g, h.slots(j.paced(h.idle*phi*(h.l-1)))))
	}
	if g > 0 {
		try(min(g, j.max))
	}
	waste -= h.idle*HP.LongW*run + HP.Later*h.idle*max(0, (h.l-1)*j.want-HP.Comp*(h.work-j.want+h.flow()*min(max(0, j.latest-h.v.Now), h.ahead(), HP.RateH)))
	if d := j.latest - h.v.Now; d < HP.Soon {
		waste -= h.idle * HP.SoonW * (1 - d/HP.Soon)
	}
	return run, waste
}

// slots rounds a run time down to whole slots where starts are.
func (h *hold) slots(t float64) float64 {
	if h.v.Problem.Start != planner.StartSlot {
		return t
	}
	s := h.v.Problem.Cluster.Slot
	return max(s, math.Floor(t/s)*s)
}

func (h *hold) rest(g float64) float64 {
	return h.idle * min(g, HP.FitBase+HP.FitSlope*g)
}
