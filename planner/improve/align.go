package improve

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/epplan/epplan/planner"
)

// Align rebuilds the nodes of a finished offline plan that are like those of the
// EDL paper: every task there takes one whole GPU from the start. For each class
// of nodes it distributes their tasks over GPUs anew, and stretches or shortens
// them, so that the GPUs of a node end together at times close to what the tasks
// want. The search is simulated annealing over moves and swaps of tasks; it is
// repeatable for a seed. Other nodes stay as they are.
type Align struct {
	// Moves is how many moves are tried in all. The default, 0, means 800·n² for
	// n tasks and at most 500,000, which takes less than a second; from 4,000
	// tasks on, fewer, since each makes less of a difference.
	Moves int
	// Effort is a multiple of that; 0 means 1.
	Effort float64
}

// Limits of the work that Align does unasked.
const (
	mostMoves  = 500_000
	pairMoves  = 800    // for each two tasks
	mostTasks  = 20_000 // larger batches are only retuned
	smallBatch = 200    // tasks; below that, the search starts several times
	largeBatch = 4_000  // tasks; above that, it is shorter
	mostRounds = 8      // starts of a search
)

// Improve is [planner.Improver].
func (al Align) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	if o := p.ClassObjective(0); o.DelayPower != 0 || o.EnergyWeight <= 0 || !areAllMovable(p) ||
		p.Mode == planner.Online || isAtBound(p, plan) {
		return plan, planner.Cancelled(ctx)
	}
	moves := al.Moves
	if moves <= 0 {
		moves = defaultMoves(len(p.Tasks))
	}
	moves = scaledWork(moves, al.Effort)
	best := plan
	for class := range p.Cluster.Classes {
		isle, ok := subplanOf(p, best, class)
		if !ok {
			continue
		}
		aligned, err := isle.align(ctx, p, best, moves*len(isle.tasks)/len(p.Tasks), rng)
		if err != nil {
			return nil, fmt.Errorf("align: %w", err)
		}
		if aligned != nil && p.Cost(aligned) < p.Cost(best) {
			best = aligned
		}
	}
	return best, nil
}

// scaledWork returns an amount of work at an effort; 0 is the usual one.
func scaledWork(work int, effort float64) int {
	if effort == 0 {
		return work
	}
	return max(1, int(effort*float64(work)))
}

// defaultMoves returns what [Align.Moves] says of 0.
func defaultMoves(tasks int) int {
	if tasks > largeBatch {
		return mostMoves * largeBatch / tasks * largeBatch / tasks
	}
	return min(pairMoves*tasks*tasks, mostMoves)
}

// align distributes an island's tasks anew. It returns nil when that fails.
func (isle *subplan) align(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, moves int, rng *rand.Rand,
) (*planner.Plan, error) {
	template, ok := newGPUSchedule(p, isle)
	if !ok {
		return nil, nil
	}
	best, err := template.explore(ctx, isle.nodeCounts(p), moves, rng)
	if err != nil || best == nil {
		return nil, err
	}
	return best.toPlan(p, plan, isle), nil
}

// newGPUSchedule tabulates an island's tasks. ok is false when one of them has no
// clocks that meet its due time.
func newGPUSchedule(p *planner.Problem, isle *subplan) (s *gpuSchedule, ok bool) {
	k := &p.Cluster.Classes[isle.class]
	pr := pricingOf(p, isle.class)
	s = &gpuSchedule{nodeGPUs: k.GPUs, idle: pr.idle, items: make([]item, len(isle.tasks)+1)}
	s.perNode = pr.idle * k.TurnOnDelay * float64(k.GPUs)
	if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
		s.perNode += float64(k.TurnOn) * float64(k.GPUs)
	}
	tr := newCurveTable(pr)
	for i, task := range isle.tasks {
		t := &p.Tasks[task]
		it := &s.items[i]
		it.due = t.Due - k.TurnOnDelay
		it.room = min(it.due, t.Limit)
		response := t.Options[t.Option(k.Model)].Response
		if it.timeCurve, ok = tr.curveOf(response, it.room); !ok {
			return nil, false
		}
		s.stepped = s.stepped || isStepped(response)
	}
	s.items[len(isle.tasks)].due = math.Inf(1)
	s.order = s.itemsInOrder()
	return s, true
}

// explore anneals briefly for each number of nodes and, with the moves that are
// left, the best of them. Small batches are tried several times, from higher
// temperatures: their moves are large. It returns nil when no number of nodes
// can be.
func (s *gpuSchedule) explore(
	ctx context.Context, counts []int, moves int, rng *rand.Rand,
) (*gpuSchedule, error) {
	n := len(s.items) - 1
	rounds := min(max(smallBatch/n, 1), mostRounds)
	all, trial := moves, moves/2/max(rounds*len(counts), 1)
	hot := hotTemperature * (1 + smallBatch/float64(n))
	var best *gpuSchedule
	for range rounds {
		for _, count := range counts {
			candidate, ok := s.construct(count)
			if !ok {
				continue
			}
			search := newGPUAnnealing(candidate, rng)
			search.moves = [2]int{all - moves, all}
			if err := search.anneal(ctx, trial, hot, coldTemperature); err != nil {
				return nil, err
			}
			if best == nil || candidate.total() < best.total() {
				best = candidate
			}
			moves -= trial
		}
	}
	if best == nil {
		return nil, nil
	}
	search := newGPUAnnealing(best, rng)
	search.moves = [2]int{all - moves, all}
	return best, search.anneal(ctx, moves, warmTemperature, coldTemperature)
}

// areAllMovable reports whether every task may be moved by itself to each node of a GPU model
// that it can run on: none is on several nodes, runs already, or is barred from some.
func areAllMovable(p *planner.Problem) bool {
	return p.Snapshot == nil && !p.HasGangs() && !p.HasPartitions()
}
