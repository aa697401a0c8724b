package share

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// scratchState is a state that is quick to change and to change back.
type scratchState struct {
	in               *sharing.Instance
	curve            *sharing.Curve // of contention; nil: load alone slows tasks down
	slopes           []float64      // of the curve
	pieces           []int          // by GPU, where there is a curve
	gpus             []sharing.GPU
	slots            int
	load             []float64 // by GPU and slot, percent
	on               []scratchGPU
	running          []int // GPUs with tasks
	busy             []int // by server: how many of them
	limit            []float64
	power            []float64
	expectedWork     [][]float64 // by server: the work that each of its GPUs may be expected to hold, falling
	meanExpectedWork float64     // the mean of it
	hostW            float64     // the least that a server takes by GPU

	undo     []undoEntry
	undoLoad []float64
}

// scratchGPU is a GPU of a sketch.
type scratchGPU struct {
	mean, freeGB, kappa float64
	watts               float64 // 0: asleep
}

// undoEntry is a GPU as it was.
type undoEntry struct {
	gpu    int
	before scratchGPU
}

// newScratchState returns a state as a sketch, for tasks like those seen.
func newScratchState(s *sharing.State, seen []sampledTask) *scratchState {
	k := &scratchState{
		in: s.Instance(), curve: CurveOf(s.Instance(), Safe), gpus: s.Instance().GPUs(), slots: s.Slots(),
		load: make([]float64, 0, s.GPUs()*s.Slots()), on: make([]scratchGPU, s.GPUs()),
		busy: make([]int, len(s.Instance().Servers)),
	}
	for g := range s.GPUs() {
		k.load = append(k.load, s.Load(g)...)
	}
	for server := range k.busy {
		k.busy[server] = s.BusyGPUs(server)
	}
	if k.curve != nil {
		k.slopes, k.pieces = slopesOf(k.curve), make([]int, s.GPUs())
		for g := range k.pieces {
			k.pieces[g] = len(s.Tasks(g))
		}
	}
	p := &s.Instance().Physics
	for _, mhz := range p.LevelsMHz {
		k.limit, k.power = append(k.limit, 1/p.Stretch(mhz)), append(k.power, p.PowerAt(mhz))
	}
	for g := range k.on {
		k.on[g] = scratchGPU{mean: s.MeanPct(g) / fullPct, freeGB: s.FreeGB(g), kappa: s.Kappa(g)}
		if s.IsBusy(g) {
			k.running = append(k.running, g)
			k.on[g].watts = k.lowestW(s.Overload(g), s.Kappa(g))
		}
	}
	k.estimateCapacity(seen)
	return k
}

// estimateCapacity works out how much work GPUs may be expected to hold: as much as fits
// their memory if tasks are like those seen, or their time.
func (k *scratchState) estimateCapacity(seen []sampledTask) {
	const byTime, byMemory, little = 1.05, 0.85, 0.05
	memory, work := 0.0, 0.0
	for i := range seen {
		memory, work = memory+seen[i].memGB, work+seen[i].mean
	}
	k.hostW = math.Inf(1)
	for i := range k.in.Servers {
		server := &k.in.Servers[i]
		worth := make([]float64, len(server.GPUMemGB))
		for g, mem := range server.GPUMemGB {
			worth[g] = byTime
			if most := byMemory * mem * work / memory; most < byTime {
				worth[g] = max(little, most)
			}
			k.meanExpectedWork += worth[g] / float64(len(k.gpus))
		}
		slices.Sort(worth)
		slices.Reverse(worth)
		k.expectedWork = append(k.expectedWork, worth)
		k.hostW = min(k.hostW, server.HostW()/float64(max(1, len(worth))))
	}
}

// lowestW returns the power at the lowest level that keeps an SLA, watts.
func (k *scratchState) lowestW(overload, kappa float64) float64 {
	level := len(k.limit) - 1
	for level > 0 && overload <= (kappa+sharing.Tolerance)*k.limit[level-1] {
		level--
	}
	return k.power[level]
}

// overload is that of a GPU with another piece.
func (k *scratchState) overload(t *sampledTask, gpu int) float64 {
	over := 0.0
	util := t.util
	for i, u := range k.load[gpu*k.slots:][:len(util)] {
		over += max(0, u+util[i]-fullPct)
	}
	return 1 + over/(fullPct*float64(max(1, k.slots)))
}

// fits reports whether a GPU that runs keeps everybody's SLA with a piece, and
// has the memory.
func (k *scratchState) fits(t *sampledTask, gpu int) bool {
	g := &k.on[gpu]
	kappa := min(g.kappa, t.kappa) + sharing.Tolerance
	if t.memGB > g.freeGB+sharing.SlackGB || g.mean+t.mean > kappa {
		return false
	}
	if k.curve != nil {
		return k.isFastEnough(t, gpu, kappa)
	}
	return k.overload(t, gpu) <= kappa
}

// begin starts a stretch of changes that rollback takes back.
func (k *scratchState) begin() { k.undo, k.undoLoad = k.undo[:0], k.undoLoad[:0] }

func (k *scratchState) rollback() {
	for i := len(k.undo) - 1; i >= 0; i-- {
		u := &k.undo[i]
		copy(k.load[u.gpu*k.slots:][:k.slots], k.undoLoad[i*k.slots:])
		k.on[u.gpu] = u.before
		if k.curve != nil {
			k.pieces[u.gpu]--
		}
		if u.before.watts == 0 {
			k.busy[k.gpus[u.gpu].Server]--
			k.running = k.running[:len(k.running)-1]
		}
	}
}

func (k *scratchState) add(t *sampledTask, gpu int) {
	g, load := &k.on[gpu], k.load[gpu*k.slots:][:k.slots]
	k.undo, k.undoLoad = append(k.undo, undoEntry{gpu, *g}), append(k.undoLoad, load...)
	if g.watts == 0 {
		k.busy[k.gpus[gpu].Server]++
		k.running = append(k.running, gpu)
	}
	g.kappa = min(g.kappa, t.kappa)
	if k.curve == nil {
		g.watts = k.lowestW(k.overload(t, gpu), g.kappa)
	} else {
		g.watts = k.lowestCurveW(t, gpu, g.kappa)
		k.pieces[gpu]++
	}
	g.freeGB -= t.memGB
	g.mean += t.mean
	for i, u := range t.util {
		load[i] += u
	}
}

// slack returns what is left of a running GPU with a piece: time, and half of it
// memory. The simple rule is to leave least.
func (k *scratchState) slack(t *sampledTask, gpu int) float64 {
	const memory = 0.5
	g := &k.on[gpu]
	return memory*(g.freeGB-t.memGB)/k.gpus[gpu].MemGB - g.mean
}

// chooseTightest returns the simple rule: the tightest running GPU, else one wakes, given
// how much work is to come.
func (k *scratchState) chooseTightest(t *sampledTask, taken []int, load float64) (best int, ok bool) {
	least := math.Inf(1)
	for _, gpu := range k.running {
		if x := k.slack(t, gpu); x < least && k.fits(t, gpu) && !slices.Contains(taken, gpu) {
			best, least, ok = gpu, x, true
		}
	}
	if ok {
		return best, true
	}
	return k.gpuToWake(t, taken, load)
}

// gpuToWake returns the GPU to wake by the simple rule: the largest of a server that is
// on, else of the one that takes least for the work that is to come.
func (k *scratchState) gpuToWake(t *sampledTask, taken []int, load float64) (best int, ok bool) {
	leastW, memGB := math.Inf(1), 0.0
	for gpu := range k.on {
		if k.on[gpu].watts > 0 || t.memGB > k.gpus[gpu].MemGB+sharing.SlackGB || slices.Contains(taken, gpu) {
			continue
		}
		watts := 0.0
		if server := k.gpus[gpu].Server; k.busy[server] == 0 {
			watts = k.wattsByWork(server, load)
		}
		if watts < leastW || watts == leastW && k.gpus[gpu].MemGB > memGB {
			best, leastW, memGB, ok = gpu, watts, k.gpus[gpu].MemGB, true
		}
	}
	return best, ok
}

// wattsByWork returns what a server takes by GPUs' work, with as many of its GPUs
// as the work that is to come needs.
func (k *scratchState) wattsByWork(server int, load float64) float64 {
	const little = 0.2
	load = max(little, load)
	watts, work := k.in.Servers[server].HostW(), 0.0
	for _, worth := range k.expectedWork[server] {
		watts += k.power[len(k.power)-1]
		if work += worth; work >= load {
			return watts / load
		}
	}
	return watts / work
}

// maxOptions is how many running GPUs are looked at, the tightest first.
const maxOptions = 8

// candidateGPUs returns the GPUs that come into question for a piece: running ones that
// keep everybody's SLA, the tightest first, and one of each kind that sleeps.
func (k *scratchState) candidateGPUs(t *sampledTask, taken []int) []int {
	var all []int
	for _, gpu := range k.running {
		if k.fits(t, gpu) && !slices.Contains(taken, gpu) {
			all = append(all, gpu)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(k.slack(t, a), k.slack(t, b)), cmp.Compare(a, b))
	})
	all = all[:min(len(all), maxOptions)]
	var kinds []sleepingKind
	for gpu := range k.on {
		if k.on[gpu].watts > 0 || t.memGB > k.gpus[gpu].MemGB+sharing.SlackGB || slices.Contains(taken, gpu) {
			continue
		}
		kind := k.sleeping(gpu)
		if !slices.ContainsFunc(kinds, kind.isDominatedBy) {
			kinds, all = append(kinds, kind), append(all, gpu)
		}
	}
	return all
}

// sleepingKind is a kind of GPUs that sleep.
type sleepingKind struct {
	serverOn            bool // whether the server is
	hostW, memGB, allGB float64
	gpus                int
}

func (k *scratchState) sleeping(gpu int) sleepingKind {
	server := k.gpus[gpu].Server
	kind := sleepingKind{serverOn: k.busy[server] > 0, memGB: k.gpus[gpu].MemGB}
	if kind.serverOn {
		return kind
	}
	kind.hostW, kind.gpus = k.in.Servers[server].HostW(), len(k.in.Servers[server].GPUMemGB)
	for _, mem := range k.in.Servers[server].GPUMemGB {
		kind.allGB += mem
	}
	return kind
}

// isDominatedBy reports whether the kind is no better than another one in anything.
func (s *sleepingKind) isDominatedBy(other sleepingKind) bool {
	if s.serverOn || other.serverOn {
		return *s == other
	}
	return other.hostW <= s.hostW && other.gpus >= s.gpus && other.memGB >= s.memGB && other.allGB >= s.allGB
}

// watts returns the power by then, less what the room that is left saves those
// tasks of the future that come later: GPUs of servers that are on, and what
// may still run on GPUs that do.
func (k *scratchState) watts(f *taskScenario) float64 {
	sum, idle := 0.0, 0.0
	for _, gpu := range k.running {
		sum += k.on[gpu].watts
	}
	for server, busy := range k.busy {
		if busy > 0 {
			sum += k.in.Servers[server].HostW()
			idle += float64(len(k.in.Servers[server].GPUMemGB) - busy)
		}
	}
	if f.beyond == 0 {
		return sum
	}
	const wattsByWork = 100 // less than a GPU and its part of a server: the room may not be used
	return sum - k.hostW*min(idle, f.beyond/k.meanExpectedWork) -
		wattsByWork*min(k.spareWork(f.sample), f.beyond)
}

// spareWork returns how much work of a sample of tasks the running GPUs still hold.
func (k *scratchState) spareWork(sample []sampledTask) float64 {
	const tries, nearly = 5, 0.98
	work, next := 0.0, 0
	for _, gpu := range k.running {
		g := k.on[gpu]
		for range tries {
			t := &sample[next%len(sample)]
			next++
			if t.memGB <= g.freeGB+sharing.SlackGB && g.mean+t.mean <= nearly*min(g.kappa, t.kappa) {
				g.mean += t.mean
				g.freeGB -= t.memGB
				work += t.mean
			}
		}
	}
	return work
}

// A scratch state under a curve of contention counts how many pieces are on a GPU and
// how full its memory is, as [sharing.State] and [Evaluate] do. A piece alone is as fast as
// ever, so a GPU that sleeps keeps the SLA of any task that it has the memory
// for. To raise a load to the exponent takes long: what two straight lines agree
// on, one on each side of the curve, is decided by those.

// slopeSteps is how many slopes a GPU's load has, maxBeyond up to how many
// GPUs beyond the first.
const slopeSteps, maxBeyond = 8, 4

// slopesOf returns the most slots that a slot takes for each slot of load beyond the
// first, where at most (i+1)/slopeSteps are beyond it: the curve's exponent is 1
// or more, so that chords lie above it and get steeper.
func slopesOf(c *sharing.Curve) []float64 {
	all := make([]float64, slopeSteps*maxBeyond)
	for i := range all {
		beyond := float64(i+1) / slopeSteps
		all[i] = (c.Work(1+beyond) - 1) / beyond
	}
	return all
}

// slowdownBounds returns the least and the most that [scratchState.slowdown] can be: by the
// curve's tangent where a GPU has just enough time, and by a chord from there.
func (k *scratchState) slowdownBounds(t *sampledTask, gpu int) (least, most float64) {
	over, top := 0.0, 0.0
	util := t.util
	for i, u := range k.load[gpu*k.slots:][:len(util)] {
		beyond := max(0, u+util[i]-fullPct)
		over += beyond
		top = max(top, beyond)
	}
	beside := k.interferenceWith(t, gpu)
	if over == 0 {
		return beside, beside
	}
	over /= fullPct * float64(k.slots)
	least, most = beside*(1+k.curve.Exponent*over), math.Inf(1)
	if i := int(top / fullPct * slopeSteps); i < len(k.slopes) {
		most = beside * (1 + k.slopes[i]*over)
	}
	return least, most
}

// slowdown returns how many times as long as alone the tasks of a GPU take with
// another piece, by the curve.
func (k *scratchState) slowdown(t *sampledTask, gpu int) float64 {
	work, util := 0.0, t.util
	for i, u := range k.load[gpu*k.slots:][:len(util)] {
		work += k.curve.Work((u + util[i]) / fullPct)
	}
	return work / float64(k.slots) * k.interferenceWith(t, gpu)
}

// interferenceWith returns what the pieces of a GPU with another one cost each other beside
// the overload.
func (k *scratchState) interferenceWith(t *sampledTask, gpu int) float64 {
	g, size := &k.on[gpu], k.gpus[gpu].MemGB
	return k.curve.OverheadFactor(&sharing.Occupancy{
		Tasks: k.pieces[gpu] + 1, Memory: min(1, max(0, (size-g.freeGB+t.memGB)/size)),
	})
}

// isFastEnough reports whether a GPU with a piece is no slower than that.
func (k *scratchState) isFastEnough(t *sampledTask, gpu int, kappa float64) bool {
	least, most := k.slowdownBounds(t, gpu)
	return most <= kappa || least <= kappa && k.slowdown(t, gpu) <= kappa
}

// lowestCurveW returns the power at the lowest level at which a GPU with a piece keeps
// an SLA, watts.
func (k *scratchState) lowestCurveW(t *sampledTask, gpu int, kappa float64) float64 {
	least, most := k.slowdownBounds(t, gpu)
	if watts := k.lowestW(least, kappa); watts == k.lowestW(most, kappa) {
		return watts
	}
	return k.lowestW(k.slowdown(t, gpu), kappa)
}
