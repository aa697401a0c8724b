package moves

import (
	"cmp"
	"context"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// emptyTarget is what can be emptied: a server, or a GPU.
type emptyTarget struct{ server, gpu int } // -1: not that

func (u emptyTarget) has(s *sharing.State, gpu int) bool {
	return u.gpu == gpu || u.server >= 0 && s.GPU(gpu).Server == u.server
}

// emptyEstimate is what emptying a unit saves at best.
type emptyEstimate struct {
	emptyTarget

	tasks  []int
	moves  int     // tasks that are at home there
	mostW  float64 // what its GPUs and servers take
	byMove float64 // the most that a move saves
}

// emptyUnits takes all tasks off servers and GPUs, those first that save most power
// by move, as long as there are moves left for all of them.
func (m *search) emptyUnits(ctx context.Context) {
	const little = 1e-6
	m.moveCostW, m.limit, m.skipChance = 0, m.most, 0
	for m.away < m.most {
		best, at, most := -1, [][]int(nil), little
		units := m.units()
		for i := range units {
			u := &units[i]
			if ctx.Err() != nil {
				return
			}
			if u.byMove <= most {
				break
			}
			if savedW, to, ok := m.tryToEmpty(u); ok && savedW/float64(max(1, u.moves)) > most {
				best, at, most = i, to, savedW/float64(max(1, u.moves))
			}
		}
		if best < 0 {
			return
		}
		for _, task := range units[best].tasks {
			m.lift(task)
		}
		for i, task := range units[best].tasks {
			m.put(task, at[i])
		}
		m.noteBest()
	}
}

// units are what could be emptied with the moves that are left, what may save
// most by move first.
func (m *search) units() []emptyEstimate {
	byServer := make([]emptyEstimate, len(m.in.Servers))
	var all []emptyEstimate
	for gpu := range m.gpuCost {
		if !m.s.IsBusy(gpu) {
			continue
		}
		on := emptyEstimate{
			emptyTarget: emptyTarget{-1, gpu}, tasks: slices.Clone(m.s.Tasks(gpu)), mostW: m.gpuCost[gpu],
		}
		server := &byServer[m.s.GPU(gpu).Server]
		server.emptyTarget = emptyTarget{m.s.GPU(gpu).Server, -1}
		server.mostW += on.mostW
		for _, task := range on.tasks {
			if !slices.Contains(server.tasks, task) {
				server.tasks = append(server.tasks, task)
			}
		}
		all = append(all, on)
	}
	for i := range byServer {
		if len(byServer[i].tasks) > 0 {
			byServer[i].mostW += m.in.Servers[i].HostW()
			all = append(all, byServer[i])
		}
	}
	for i := range all {
		u := &all[i]
		for _, task := range u.tasks {
			if len(m.home[task]) > 0 && !m.isAway(task) {
				u.moves++
			}
		}
		u.byMove = u.mostW / float64(max(1, u.moves))
	}
	all = slices.DeleteFunc(all, func(u emptyEstimate) bool { return m.away+u.moves > m.most })
	slices.SortStableFunc(all, func(a, b emptyEstimate) int { return cmp.Compare(b.byMove, a.byMove) })
	return all
}

// tryToEmpty is what emptying a unit saves, watts, and where its tasks go;
// false where there is no place for one. Everything is as before afterwards.
func (m *search) tryToEmpty(u *emptyEstimate) (savedW float64, at [][]int, ok bool) {
	before := m.cost
	m.touched, m.formerPlaces, m.excluded = m.touched[:0], m.formerPlaces[:0], u.emptyTarget
	for _, task := range u.tasks {
		m.saveAndLift(task)
	}
	at = make([][]int, len(u.tasks))
	ok = true
	for _, task := range m.bySize(slices.Clone(u.tasks)) {
		gpus := m.cheapest(task)
		at[slices.Index(u.tasks, task)] = gpus
		m.put(task, gpus)
		ok = ok && len(gpus) > 0
	}
	savedW, ok = before-m.cost, ok && m.away <= m.most
	m.excluded = emptyTarget{-1, -1}
	m.undo()
	return savedW, at, ok
}
