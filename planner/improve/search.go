package improve

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Temperatures of the annealing, in parts of what idling for the mean run time
// costs.
const (
	hotTemperature  = 1e-2
	warmTemperature = 5e-3
	coldTemperature = 1e-5
)

// gpuAnnealing is simulated annealing over the places of tasks. A move is judged with
// the ends of the nodes as they are; once taken, they move to their optimum.
type gpuAnnealing struct {
	s      *gpuSchedule
	rng    *rand.Rand
	byTime []int32 // items by natural run time
	scale  float64 // of the temperature, joules
	limit  float64 // most that the move under test may add, joules
	spread int     // how far from the ideal partner for a swap to look
	moves  [2]int  // of all searches for the batch: those before this one, and in all
}

// newGPUAnnealing prepares a search that works on the state itself.
func newGPUAnnealing(s *gpuSchedule, rng *rand.Rand) *gpuAnnealing {
	a := &gpuAnnealing{s: s, rng: rng, byTime: make([]int32, len(s.items)-1)}
	sum := 0.0
	for i := range a.byTime {
		a.byTime[i] = int32(i)
		sum += s.items[i].time[freeOptimum]
	}
	a.scale = s.idle * sum / float64(len(a.byTime))
	slices.SortFunc(a.byTime, func(i, j int32) int {
		return cmp.Or(cmp.Compare(s.items[i].time[freeOptimum], s.items[j].time[freeOptimum]),
			cmp.Compare(i, j))
	})
	return a
}

// anneal tries so many moves while the temperature falls from hot to cold, by the
// same factor every coolEvery moves.
func (a *gpuAnnealing) anneal(ctx context.Context, moves int, hot, cold float64) error {
	const (
		coolEvery  = 1 << 8  // moves
		checkEvery = 1 << 12 // moves between two looks at the context
	)
	monitor := planner.MonitorOf(ctx)
	if len(a.s.gpus) < 2 {
		return planner.Cancelled(ctx)
	}
	temperature := hot * a.scale
	cool := math.Pow(cold/hot, coolEvery/float64(max(moves, coolEvery)))
	for m := range moves {
		if m%coolEvery == 0 {
			temperature *= cool
			a.spread = 1 + int(float64(len(a.byTime))*spreadPart*(1-float64(m)/float64(moves)))
		}
		if m%checkEvery == 0 {
			if ctx.Err() != nil {
				break
			}
			monitor.Count(min(checkEvery, moves-m))
			monitor.SetPhase(planner.Searching, a.moves[0]+m, a.moves[1])
		}
		a.limit = temperature * a.rng.ExpFloat64()
		a.tryMove()
	}
	for j := range a.s.servers {
		a.s.chooseEnd(int32(j), fullEndTries)
	}
	return planner.Cancelled(ctx)
}

// spreadPart is the part of all tasks from which the partner of a swap is drawn at
// first; as it cools, ever closer to the ideal one.
const spreadPart = 1.0 / 32

// tryMove tests a random move: of 16, one moves a task, one exchanges two GPUs, two swap
// any two tasks, and the others swap a task with one that suits its GPU. These last
// pay most often by far.
func (a *gpuAnnealing) tryMove() {
	i, q := a.randomItem(), a.randomGPU()
	switch a.rng.IntN(16) {
	case 0:
		a.move(i, q)
	case 1:
		a.swapGPUs(a.randomGPU(), q)
	case 2, 3:
		a.swap(i, a.randomItem())
	default:
		a.swap(i, a.partner(i))
	}
}

// randomItem and gpu are random ones.
func (a *gpuAnnealing) randomItem() int32 { return int32(a.rng.IntN(len(a.byTime))) }
func (a *gpuAnnealing) randomGPU() int32  { return int32(a.rng.IntN(len(a.s.gpus))) }

// partner returns a task that takes about as much longer than i as the GPU of i has
// room to its node's end.
func (a *gpuAnnealing) partner(i int32) int32 {
	s := a.s
	u := &s.gpus[s.gpuOf[i]]
	want := s.items[i].time[freeOptimum] + s.servers[u.server].end - u.time[freeOptimum]
	r, _ := slices.BinarySearchFunc(a.byTime, want, func(j int32, t float64) int {
		return cmp.Compare(s.items[j].time[freeOptimum], t)
	})
	r += a.rng.IntN(2*a.spread+1) - a.spread
	return a.byTime[min(max(r, 0), len(a.byTime)-1)]
}

// tryExchange tests an exchange of item i on GPU p for item j on GPU q, where either
// may be the stand-in for no task.
func (a *gpuAnnealing) tryExchange(p, q, i, j int32) bool {
	s := a.s
	u, v := &s.gpus[p], &s.gpus[q]
	most := u.excess + v.excess + a.limit
	fu, ok := s.fitTo(u, i, j, s.servers[u.server].end)
	if !ok || fu.excess > most {
		return false
	}
	fv, ok := s.fitTo(v, j, i, s.servers[v.server].end)
	return ok && fu.excess+fv.excess < most
}

func (a *gpuAnnealing) move(i, q int32) {
	s := a.s
	p := s.gpuOf[i]
	if p == q || !a.tryExchange(p, q, i, s.dummyItem()) {
		return
	}
	s.remove(i)
	s.place(i, q)
	a.updateNodes(p, q)
}

func (a *gpuAnnealing) swap(i, j int32) {
	s := a.s
	p, q := s.gpuOf[i], s.gpuOf[j]
	if p == q || !a.tryExchange(p, q, i, j) {
		return
	}
	s.remove(i)
	s.remove(j)
	s.place(i, q)
	s.place(j, p)
	a.updateNodes(p, q)
}

// swapGPUs exchanges two GPUs of different nodes with all their tasks.
func (a *gpuAnnealing) swapGPUs(p, q int32) {
	s := a.s
	u, v := &s.gpus[p], &s.gpus[q]
	if u.server == v.server {
		return
	}
	none := s.dummyItem()
	fu, ok := s.fitTo(u, none, none, s.servers[v.server].end)
	if !ok {
		return
	}
	fv, ok := s.fitTo(v, none, none, s.servers[u.server].end)
	if !ok || fu.excess+fv.excess >= u.excess+v.excess+a.limit {
		return
	}
	hu, hv := s.servers[u.server].gpus, s.servers[v.server].gpus
	hu[slices.Index(hu, p)] = q
	hv[slices.Index(hv, q)] = p
	u.server, v.server = v.server, u.server
	a.updateNodes(p, q)
}

func (a *gpuAnnealing) updateNodes(p, q int32) {
	s := a.s
	j, k := s.gpus[p].server, s.gpus[q].server
	s.chooseEnd(j, quickEndTries)
	if k != j {
		s.chooseEnd(k, quickEndTries)
	}
}
