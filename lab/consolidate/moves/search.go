package moves

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

const (
	fullPct         = 100.0 // utilisation of a GPU that is always at work, percent
	usualSkipChance = 0.03  // the chance that a GPU isn't looked at
)

// search is the search of [Rearrange]: tasks at their places on real GPUs.
type search struct {
	in        *sharing.Instance
	problem   share.Problem
	s         *sharing.State
	rng       *rand.Rand
	home      [][]int // by task: where it is at the start; nil: nowhere
	at        [][]int // by task: where it is now
	seed      uint64
	rounds    int
	most      int     // tasks that may be away from home
	away      int     // tasks that are
	limit     int     // tasks that may be in this descent
	moveCostW float64 // watts that one of them counts for
	faultW    float64 // watts that a limit that is broken counts for: more than any GPUs and servers save

	means      []float64   // by task: its utilisation over the slots, percent
	mean       []float64   // by GPU: its load over the slots, percent
	excluded   emptyTarget // where nothing goes for now
	skipChance float64     // the chance that a GPU isn't looked at
	gpuCost    []float64   // by GPU: what it takes, faults among it
	cost       float64     // watts of GPUs and servers, faults among them
	least      []float64   // by tasks away: the least cost that was found; +Inf: none
	best       solution    // of all
	load       []float64   // a buffer
	kind       []sleepingKind

	touched      []int // tasks of this round
	formerPlaces [][]int
}

func newSearch(in *sharing.Instance, problem share.Problem, from [][]int, opt Options) *search {
	m := &search{
		in: in, problem: problem, s: sharing.NewState(in),
		rng:  rand.New(rand.NewPCG(opt.Seed, 0x6d6f7665)),
		home: from, at: make([][]int, len(in.Tasks)), most: max(0, opt.Most), seed: opt.Seed,
		rounds:   opt.Rounds,
		excluded: emptyTarget{-1, -1}, mean: make([]float64, len(in.GPUs())),
		gpuCost: make([]float64, len(in.GPUs())),
		load:    make([]float64, in.Slots()),
	}
	m.faultW = 10 * in.Physics.PowerAt(in.Physics.Max()) * float64(len(m.gpuCost))
	for i := range in.Servers {
		m.faultW += 10 * in.Servers[i].HostW()
	}
	var homeless []int
	for task := range in.Tasks {
		m.means = append(m.means, sharing.MeanPct(in.Tasks[task].UtilPct))
		if len(from[task]) > 0 {
			m.put(task, from[task])
		} else {
			homeless = append(homeless, task)
		}
	}
	m.most = min(m.most, len(in.Tasks)-len(homeless))
	m.least = make([]float64, m.most+1)
	for k := range m.least {
		m.least[k] = math.Inf(1)
	}
	m.best.cost = math.Inf(1)
	for _, task := range m.bySize(homeless) {
		m.placeCheapest(task)
	}
	m.noteBest()
	return m
}

// bySize sorts tasks, those with the most work or memory first.
func (m *search) bySize(tasks []int) []int {
	size := func(task int) float64 {
		t := &m.in.Tasks[task]
		return float64(t.GPUs) * max(m.means[task]/fullPct, t.MemGB/m.s.GPU(0).MemGB)
	}
	slices.SortStableFunc(tasks, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	return tasks
}

// descend searches from where the tasks are, ever colder.
func (m *search) descend(ctx context.Context, rounds int, by descentLimits) {
	const hottest, cooling = 1. / 12, 1. / 30
	m.moveCostW, m.limit, m.skipChance = by.moveCostW, by.maxMoved, usualSkipChance
	hot := m.gpuW(hottest)
	for round := range rounds {
		if ctx.Err() != nil {
			return
		}
		m.round(hot * math.Pow(cooling, float64(round)/float64(rounds)))
	}
}

// jumpTo puts all tasks somewhere; those for which there is nothing stay.
func (m *search) jumpTo(to [][]int) {
	for task := range m.at {
		if len(to[task]) > 0 {
			m.lift(task)
		}
	}
	for task := range m.at {
		if len(to[task]) > 0 {
			m.put(task, to[task])
		}
	}
}

// round takes some tasks away, puts each somewhere, and keeps the outcome or
// goes back.
func (m *search) round(heat float64) {
	before := m.score()
	m.touched, m.formerPlaces = m.touched[:0], m.formerPlaces[:0]
	m.ruin()
	order := slices.Clone(m.touched)
	m.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	if m.rng.IntN(3) > 0 {
		m.bySize(order)
	}
	for _, task := range order {
		m.placeCheapest(task)
	}
	if worse := m.score() - before; worse > 0 && worse > -heat*math.Log(m.rng.Float64()) || m.away > m.limit {
		m.undo()
		return
	}
	m.noteBest()
}

// score is what the search makes small.
func (m *search) score() float64 { return m.cost + m.moveCostW*float64(m.away) }

func (m *search) undo() {
	for _, task := range m.touched {
		m.lift(task)
	}
	for i, task := range m.touched {
		m.put(task, m.formerPlaces[i])
	}
}

// noteBest keeps the best answer, of those that take the same the one with the fewest
// tasks away, and what others take by how many are.
func (m *search) noteBest() {
	const better = 1e-6 // watts; sums that were kept over many rounds are no more exact
	if m.cost >= m.least[m.away]-better {
		return
	}
	m.cost = 0 // added up anew
	for _, watts := range m.gpuCost {
		m.cost += watts
	}
	for server := range m.in.Servers {
		if m.s.IsServerOn(server) {
			m.cost += m.in.Servers[server].HostW()
		}
	}
	for _, gpus := range m.at {
		if len(gpus) == 0 {
			m.cost += m.faultW
		}
	}
	m.least[m.away] = m.cost
	if b := &m.best; m.cost < b.cost-better || m.cost < b.cost+better && m.away < b.away {
		b.cost, b.away, b.at = m.cost, m.away, append(b.at[:0], m.at...)
	}
}

// saveAndLift notes a task's place and takes it off its GPUs.
func (m *search) saveAndLift(task int) {
	if !slices.Contains(m.touched, task) {
		m.touched, m.formerPlaces = append(m.touched, task), append(m.formerPlaces, m.at[task])
		m.lift(task)
	}
}

// ruin takes tasks off their GPUs: all of a GPU or of a server, some of those away, or
// a few of any.
func (m *search) ruin() {
	switch m.rng.IntN(8) {
	case 0, 1, 2:
		m.clear(m.rng.IntN(len(m.gpuCost)))
	case 3:
		m.clear(m.rng.IntN(len(m.gpuCost)))
		m.clear(m.rng.IntN(len(m.gpuCost)))
	case 4:
		server := m.s.GPU(m.rng.IntN(len(m.gpuCost))).Server
		for gpu := range m.s.GPUs() {
			if m.s.GPU(gpu).Server == server {
				m.clear(gpu)
			}
		}
	case 5:
		for task := range m.at {
			if m.isAway(task) && m.rng.IntN(2) == 0 {
				m.saveAndLift(task)
			}
		}
	}
	for range m.rng.IntN(4) {
		m.saveAndLift(m.rng.IntN(len(m.at)))
	}
}

func (m *search) clear(gpu int) {
	for _, task := range slices.Clone(m.s.Tasks(gpu)) {
		m.saveAndLift(task)
	}
}

func (m *search) isAway(task int) bool {
	return len(m.home[task]) > 0 && !samePlaces(m.home[task], m.at[task])
}

// placeCheapest puts a task where it costs least: home, or elsewhere where a move is
// left.
func (m *search) placeCheapest(task int) {
	home := m.home[task]
	if len(home) == 0 {
		m.put(task, m.cheapest(task))
		return
	}
	if m.away >= m.limit {
		m.put(task, home)
		return
	}
	before := m.score()
	m.put(task, home)
	atHome := m.score() - before
	m.lift(task)
	m.put(task, m.cheapest(task))
	if len(m.at[task]) == 0 || m.score()-before > atHome {
		m.lift(task)
		m.put(task, home)
	}
}

// cheapest are the GPUs where a task's pieces cost least, one after the other;
// nil where there aren't enough.
func (m *search) cheapest(task int) []int {
	want := m.in.Tasks[task].GPUs
	gpus := make([]int, 0, want)
	for len(gpus) < want {
		gpu := m.cheapestGPU(task, gpus)
		if gpu < 0 {
			break
		}
		gpus = append(gpus, gpu)
		m.add(task, gpu)
	}
	for _, gpu := range gpus {
		m.remove(task, gpu)
	}
	if len(gpus) < want {
		return nil
	}
	return gpus
}

// cheapestGPU is where a piece costs least beside those that are taken; -1:
// there is none.
func (m *search) cheapestGPU(task int, taken []int) int {
	best, least := -1, math.Inf(1)
	m.kind = m.kind[:0]
	for gpu := range m.gpuCost {
		if !m.s.Fits(task, gpu) || m.excluded.has(m.s, gpu) || slices.Contains(taken, gpu) ||
			!m.s.IsBusy(gpu) && !m.isNewSleepingKind(gpu) {
			continue
		}
		if best >= 0 && (m.isOverfull(task, gpu) || m.skipChance > 0 && m.rng.Float64() < m.skipChance) {
			continue
		}
		if extra := m.insertionCost(task, gpu); extra < least {
			best, least = gpu, extra
		}
	}
	return best
}

// isOverfull reports whether a GPU is full whatever the slots are.
func (m *search) isOverfull(task, gpu int) bool {
	if m.problem != share.Safe || m.in.Contention != nil {
		return false
	}
	return m.mean[gpu]+m.means[task] > fullPct*(min(m.s.Kappa(gpu), m.in.Tasks[task].Kappa)+sharing.Tolerance)
}

type sleepingKind struct {
	on           bool // whether the server is
	hostW, memGB float64
	gpus         int
}

// isNewSleepingKind reports whether a GPU that sleeps is the first of its kind since the
// kinds were cleared: on a server that is on or takes as much, with as much memory.
func (m *search) isNewSleepingKind(gpu int) bool {
	server := m.s.GPU(gpu).Server
	kind := sleepingKind{on: m.s.IsServerOn(server), memGB: m.s.GPU(gpu).MemGB}
	if !kind.on {
		kind.hostW, kind.gpus = m.in.Servers[server].HostW(), len(m.in.Servers[server].GPUMemGB)
	}
	if slices.Contains(m.kind, kind) {
		return false
	}
	m.kind = append(m.kind, kind)
	return true
}

// insertionCost is what a piece costs on a GPU, watts; of places that cost the same
// the fuller one counts less.
func (m *search) insertionCost(task, gpu int) float64 {
	const tie = 1e-3
	t := &m.in.Tasks[task]
	overload := 1.0
	if m.problem == share.Safe {
		overload, m.load = m.s.OverloadWith(task, gpu, m.load)
	}
	watts := m.watts(gpu, overload, min(m.s.Kappa(gpu), t.Kappa), m.s.FreeGB(gpu)-t.MemGB)
	extra := watts - m.gpuCost[gpu] - tie*(m.mean[gpu]/fullPct+1-m.s.FreeGB(gpu)/m.s.GPU(gpu).MemGB)
	if server := m.s.GPU(gpu).Server; !m.s.IsServerOn(server) {
		extra += m.in.Servers[server].HostW()
	}
	return extra
}

// watts is what a GPU with tasks takes, and what is broken there.
func (m *search) watts(gpu int, overload, kappa, freeGB float64) float64 {
	mhz, ok := m.in.Physics.LowestLevel(overload, kappa)
	watts := m.in.Physics.PowerAt(mhz)
	if !ok {
		watts += m.faultW * (1 + overload/kappa)
	}
	if freeGB < -sharing.SlackGB {
		watts += m.faultW * (1 - freeGB/m.s.GPU(gpu).MemGB)
	}
	return watts
}

// put places a task that has no place; nowhere, where there are no GPUs.
func (m *search) put(task int, gpus []int) {
	for _, gpu := range gpus {
		m.add(task, gpu)
	}
	if m.at[task] = gpus; len(gpus) == 0 {
		m.cost += m.faultW
	}
	if m.isAway(task) {
		m.away++
	}
}

func (m *search) lift(task int) {
	if m.isAway(task) {
		m.away--
	}
	for _, gpu := range m.at[task] {
		m.remove(task, gpu)
	}
	if len(m.at[task]) == 0 {
		m.cost -= m.faultW
	}
}

func (m *search) add(task, gpu int) {
	server := m.s.GPU(gpu).Server
	if !m.s.IsServerOn(server) {
		m.cost += m.in.Servers[server].HostW()
	}
	m.s.Add(task, gpu)
	m.reprice(gpu)
}

func (m *search) remove(task, gpu int) {
	m.s.Remove(task, gpu)
	if server := m.s.GPU(gpu).Server; !m.s.IsServerOn(server) {
		m.cost -= m.in.Servers[server].HostW()
	}
	m.reprice(gpu)
}

func (m *search) reprice(gpu int) {
	watts, overload := 0.0, 1.0
	m.mean[gpu] = m.s.MeanPct(gpu)
	if m.s.IsBusy(gpu) {
		if m.problem == share.Safe {
			overload = m.s.Overload(gpu)
		}
		watts = m.watts(gpu, overload, m.s.Kappa(gpu), m.s.FreeGB(gpu))
	}
	m.cost += watts - m.gpuCost[gpu]
	m.gpuCost[gpu] = watts
}
