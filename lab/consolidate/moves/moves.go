// Package moves looks for places that take less power and that only few running tasks have
// to move for, and for an order of the moves in which each finds the memory that it needs.
package moves

import (
	"context"
	"math"
	"slices"

	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// Options are how many tasks [Rearrange] may move, and how long it searches.
type Options struct {
	Most   int    // tasks that may leave their places; those without a place don't count
	Seed   uint64 // of the search
	Rounds int    // of ruin and recreate, over all restarts; 0: 24000
}

// Result is what [Rearrange] found.
type Result struct {
	share.Placement
	// ByMoves is the least power, watts, of what was found with at most so many
	// moves, from none to the most that were of use. It is +Inf where nothing
	// that was found keeps what the problem asks for.
	ByMoves []float64
}

// Rearrange looks for the places with the least power that only few tasks have
// to leave theirs for. from is where each task is, a set of GPUs; nil: it has
// no place yet and goes anywhere. GPUs run at the lowest frequency that keeps
// what the problem asks for. Where the start breaks that, moves go to mending
// it first; the answer breaks it still where so few moves don't do.
//
// The search first empties servers and GPUs, those that save most by move. Then
// it takes all tasks off a GPU or a server, or a few of any, and puts each where
// it costs least, at home or elsewhere for the price of a move (ruin and recreate
// with simulated annealing, restarted with several prices).
// The answer is never worse than the start, and depends on the arguments
// alone unless the context ends the search.
func Rearrange(
	ctx context.Context, in *sharing.Instance, problem share.Problem, from [][]int, opt Options,
) Result {
	const usualRounds = 24_000
	if len(in.Tasks) == 0 {
		return Result{Placement: placementOf(sharing.NewState(in), problem), ByMoves: []float64{0}}
	}
	if opt.Rounds <= 0 {
		opt.Rounds = usualRounds
	}
	m := newSearch(in, problem, from, opt)
	legs := m.descents()
	m.emptyUnits(ctx)
	for i, l := range legs {
		if i > 0 {
			m.jumpTo(m.home)
		}
		m.descend(ctx, opt.Rounds/len(legs), l)
	}
	if m.improveFreely(ctx) {
		m.descend(ctx, opt.Rounds/len(legs), descentLimits{m.most, m.gpuW(fewMovesCost)})
	}
	return m.bestResult()
}

// placementOf is the state as an answer, at the lowest frequencies that keep what the
// problem asks for.
func placementOf(s *sharing.State, problem share.Problem) share.Placement {
	return share.PlacementOf(s, share.LowestClockFor(problem))
}

type descentLimits struct {
	maxMoved  int     // tasks that may be away
	moveCostW float64 // watts that one of them counts for
}

// What a move counts for beside the power of a GPU.
const fewMovesCost, someMovesCost, manyMovesCost = 1. / 4, 1. / 20, 1. / 200

// gpuW is a part of the power of a GPU at its highest clock, watts.
func (m *search) gpuW(part float64) float64 {
	return part * m.in.Physics.PowerAt(m.in.Physics.Max())
}

// descents are the descents: answers with few moves are sought as well as those
// with as many as there may be.
func (m *search) descents() []descentLimits {
	all := []descentLimits{{m.most, m.gpuW(fewMovesCost)}, {m.most, m.gpuW(manyMovesCost)}}
	for most := 1; most < m.most; most *= 2 {
		all = append(all, descentLimits{most, m.gpuW(someMovesCost)})
	}
	return all
}

// improveFreely goes where [consolidate.Improve] would have everything, which is worth it where many
// tasks may move: with its groups on those GPUs where most of their tasks are
// now. It is false where that takes too many moves.
func (m *search) improveFreely(ctx context.Context) bool {
	if ctx.Err() != nil || m.most == 0 {
		return false
	}
	start := placementOf(m.s, m.problem)
	const setsByRound = 800
	rounds := max(1, m.rounds/3)
	found, watts := consolidate.Improve(ctx, m.in, m.problem, start, consolidate.ImproveOptions{
		Seed: m.seed, Rounds: rounds, Sets: setsByRound * m.rounds,
	})
	if math.IsInf(watts, 1) {
		return false
	}
	m.jumpTo(leastMovesEquivalent(m.in, m.home, found.GPUs))
	if m.away > m.most {
		m.jumpTo(m.home)
		return false
	}
	m.noteBest()
	return true
}

// Move is a task that is stopped on some GPUs and started on others.
type Move struct {
	Task     int
	From, To []int
	// Together is true where the move has to be made together with the next
	// one: no GPU that they need has the memory until both tasks are stopped.
	Together bool
}

// Between lists the tasks that have other GPUs after than before, in an order in
// which each finds the memory that it needs when its turn comes, wherever
// there is one. Tasks without a place before aren't among them; they start
// when all moves are made.
func Between(in *sharing.Instance, before, after [][]int) []Move {
	s := sharing.StateAt(in, before)
	var left, all []Move
	for task, gpus := range before {
		if len(gpus) > 0 && !samePlaces(gpus, after[task]) {
			left = append(left, Move{Task: task, From: gpus, To: after[task]})
		}
	}
	for len(left) > 0 {
		i, together := nextMove(s, left, all)
		m := left[i]
		left = slices.Delete(left, i, i+1)
		m.Together = together && len(left) > 0
		for _, gpu := range m.From {
			s.Remove(m.Task, gpu)
		}
		for _, gpu := range m.To {
			s.Add(m.Task, gpu)
		}
		all = append(all, m)
	}
	return all
}

// nextMove is the move to make next: one that frees what the last one needs, where
// that was made together with it, else one that finds its memory; together is
// true where it doesn't find it yet either.
func nextMove(s *sharing.State, left, made []Move) (i int, together bool) {
	if n := len(made); n > 0 && made[n-1].Together {
		frees := func(m Move) bool {
			return slices.ContainsFunc(m.From, func(gpu int) bool {
				return slices.Contains(made[n-1].To, gpu) && s.FreeGB(gpu) < -sharing.SlackGB
			})
		}
		if i := slices.IndexFunc(left, func(m Move) bool { return frees(m) && hasMemory(s, &m) }); i >= 0 {
			return i, false
		}
		if i := slices.IndexFunc(left, frees); i >= 0 {
			return i, true
		}
	}
	if i := slices.IndexFunc(left, func(m Move) bool { return hasMemory(s, &m) }); i >= 0 {
		return i, false
	}
	return 0, true
}

// hasMemory reports whether the GPUs that a task moves to have its memory while it
// still runs, or are its own.
func hasMemory(s *sharing.State, m *Move) bool {
	for _, gpu := range m.To {
		if !slices.Contains(m.From, gpu) && !s.Fits(m.Task, gpu) {
			return false
		}
	}
	return true
}

// samePlaces reports whether two sets of GPUs are the same, in whatever order.
func samePlaces(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for _, gpu := range a {
		if !slices.Contains(b, gpu) {
			return false
		}
	}
	return true
}

type solution struct {
	cost float64
	away int // tasks that have moved
	at   [][]int
}

func (m *search) bestResult() Result {
	byMoves, least := make([]float64, 0, m.best.away+1), math.Inf(1)
	for _, cost := range m.least[:m.best.away+1] {
		if least = min(least, cost); least >= m.faultW {
			byMoves = append(byMoves, math.Inf(1))
		} else {
			byMoves = append(byMoves, least)
		}
	}
	return Result{
		Placement: placementOf(sharing.StateAt(m.in, m.best.at), m.problem), ByMoves: byMoves,
	}
}
