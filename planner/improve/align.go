package improve

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/epplan/epplan/planner"
)

// Align rebuilds a finished offline plan whose tasks each need one whole GPU and
// whose nodes are alike: it distributes the tasks over GPUs anew, and stretches
// or shortens them, so that the GPUs of a node end together at times close to
// what the tasks want. The search is simulated annealing over moves and swaps of
// tasks; it is repeatable for a seed. Other problems, and plans that miss
// deadlines, go to [Retune].
type Align struct {
	// Moves is how many moves are tried in all. The default, 0, means 800·n² for
	// n tasks and at most 500,000, which takes less than a second; from 4,000
	// tasks on, fewer, since each makes less of a difference.
	Moves int
}

// Limits of the work that Align does unasked.
const (
	mostMoves  = 500_000
	mostTasks  = 20_000 // larger batches are only retuned
	smallBatch = 200    // tasks; below that, the search starts several times
	largeBatch = 4_000  // tasks; above that, it is shorter
	mostRounds = 8
)

// Improve is [planner.Improver].
func (al Align) Improve(ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand) (*planner.Plan, error) {
	if optimal(p, plan) {
		return plan, nil
	}
	class, ok := alignable(p, plan)
	if !ok || !weighsEnergy(p) {
		return Retune{}.Improve(ctx, p, plan, rng)
	}
	template, ok := newState(p, class)
	if !ok {
		return Retune{}.Improve(ctx, p, plan, rng)
	}
	moves := al.Moves
	if moves <= 0 {
		moves = defaultMoves(len(p.Tasks))
	}
	best, err := template.explore(ctx, nodeCounts(p, plan, class), moves, rng)
	if err != nil {
		return nil, fmt.Errorf("align: %w", err)
	}
	if best != nil {
		if better := best.plan(p, plan, class); better.Ledger.Total() < plan.Ledger.Total() {
			return better, nil
		}
	}
	return Retune{}.Improve(ctx, p, plan, rng)
}

func defaultMoves(tasks int) int {
	if tasks > largeBatch {
		return mostMoves * largeBatch / tasks
	}
	return min(800*tasks*tasks, mostMoves)
}

// alignable tells whether all tasks are alike in what they need, and the plan's
// nodes are on from 0 to the end of their last tasks, all of one class.
func alignable(p *planner.Problem, plan *planner.Plan) (class int, ok bool) {
	if p.Start != planner.StartContinuous || plan.Status != planner.Complete || len(p.Tasks) > mostTasks || len(plan.Nodes) == 0 {
		return 0, false
	}
	class = plan.Nodes[0].Class
	model := p.Cluster.Classes[class].Model
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.Arrival > 0 || t.Share < 1 || t.CPUs > 0 || t.MemGiB > 0 {
			return 0, false
		}
		if o := t.Option(model); o < 0 || t.Options[o].GPUs != 1 || plan.Assignments[i].Node < 0 {
			return 0, false
		}
	}
	last := make([]float64, len(plan.Nodes))
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		last[a.Node] = max(last[a.Node], a.End)
	}
	for n := range plan.Nodes {
		on := plan.Nodes[n].On
		if plan.Nodes[n].Class != class || len(on) != 1 || on[0].From != 0 || on[0].To > last[n]*(1+roundOff) {
			return 0, false
		}
	}
	return class, true
}

// nodeCounts are the numbers of nodes that are worth trying: around what the
// plan uses.
func nodeCounts(p *planner.Problem, plan *planner.Plan, class int) []int {
	k := &p.Cluster.Classes[class]
	used := len(plan.Nodes)
	most := (len(p.Tasks) + k.GPUs - 1) / k.GPUs
	if k.Count > 0 {
		most = min(most, k.Count)
	}
	var counts []int
	last := 0
	tries := []int{used - 2, used - 1, used, used + 1, used + 2, used + 2 + used/20, used + 2 + used/8}
	if len(p.Tasks) > largeBatch {
		tries = []int{used, used + 2 + used/20}
	}
	for _, n := range tries {
		if n > last && n <= most {
			counts = append(counts, n)
			last = n
		}
	}
	return counts
}

// newState tabulates the tasks. ok is false when one of them has no clocks that
// meet its due time.
func newState(p *planner.Problem, class int) (s *state, ok bool) {
	k := &p.Cluster.Classes[class]
	pr := pricingOf(p, class)
	s = &state{l: k.GPUs, idle: pr.idle, items: make([]item, len(p.Tasks)+1)}
	s.perNode = pr.idle * k.TurnOnDelay * float64(k.GPUs)
	if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
		s.perNode += float64(k.TurnOn) * float64(k.GPUs)
	}
	tr := newTracer(pr)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		it := &s.items[i]
		it.due = t.Due - k.TurnOnDelay
		it.room = min(it.due, t.Limit)
		response := t.Options[t.Option(k.Model)].Response
		if it.curve, ok = tr.trace(response, it.room); !ok {
			return nil, false
		}
		s.stepped = s.stepped || stepped(response)
	}
	s.items[len(p.Tasks)].due = math.Inf(1)
	s.order = s.inOrder()
	return s, true
}

// explore anneals briefly for each number of nodes and, with the moves that are
// left, the best of them. Small batches are tried several times, from higher
// temperatures: their moves are large. It returns nil when no number of nodes
// can be.
func (s *state) explore(ctx context.Context, counts []int, moves int, rng *rand.Rand) (*state, error) {
	n := len(s.items) - 1
	rounds := min(max(smallBatch/n, 1), mostRounds)
	trial := moves / 2 / max(rounds*len(counts), 1)
	hot := hottest * (1 + smallBatch/float64(n))
	var best *state
	for range rounds {
		for _, count := range counts {
			candidate, ok := s.construct(count)
			if !ok {
				continue
			}
			if err := newSearch(candidate, rng).anneal(ctx, trial, hot, coldest); err != nil {
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
	return best, newSearch(best, rng).anneal(ctx, moves, warm, coldest)
}
