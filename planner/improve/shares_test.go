package improve_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
)

// drawnShares is a problem of so many tasks on nodes of two GPUs, whose power is that of default clocks.
func drawnShares(rng *rand.Rand, tasks, nodes int) *planner.Problem {
	p := &planner.Problem{
		Cluster: planner.Cluster{Classes: []planner.NodeClass{{
			Name: "node", Model: "A", GPUs: 2, Count: nodes, IdleW: 37, HostW: 25, CPUs: 8,
		}}},
	}
	shares := [...]float64{1, 0.75, 0.6, 0.5, 0.5, 0.4, 0.3, 0.25, 0.1}
	for i := range tasks {
		time := 100 + math.Round(900*rng.Float64())
		t := planner.NewTask(strconv.Itoa(i), planner.Option{
			Model: "A", GPUs: 1, Response: &dvfsmodel.Fixed{At: dvfsmodel.Point{
				Scaling: dvfsmodel.DefaultScaling(), Time: time, Power: 150,
				Energy: dvfsmodel.Watt(150).Over(time),
			}},
		})
		if t.Share = shares[rng.IntN(len(shares))]; t.Share == 1 && rng.IntN(2) == 0 {
			t.Options[0].GPUs = 2
		}
		if rng.IntN(2) == 0 {
			t.CPUs = float64(1 + rng.IntN(6))
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// held is what a task has of a node.
type held struct {
	gpus       planner.GPUSet
	share, cpu float64
	end        float64
}

// leastOn returns the least sum of the seconds for which nodes are on, found by trying every order of the
// tasks, every node and every GPU for each, and every start at which something ends.
func leastOn(p *planner.Problem, nodes [][]held, placed []bool, best float64) float64 {
	sum, done := 0.0, true
	for _, n := range nodes {
		last := 0.0
		for _, h := range n {
			last = max(last, h.end)
		}
		sum += last
	}
	if sum >= best {
		return best
	}
	for i := range p.Tasks {
		if placed[i] {
			continue
		}
		done, placed[i] = false, true
		for n := range nodes {
			for _, at := range starts(p, &p.Tasks[i], nodes[n]) {
				was := nodes[n]
				nodes[n] = append(slices.Clone(was), at)
				best = leastOn(p, nodes, placed, best)
				nodes[n] = was
			}
			if len(nodes[n]) == 0 {
				break // the others are like it
			}
		}
		placed[i] = false
	}
	if done {
		return sum
	}
	return best
}

// starts returns where on a node a task can start first: on each GPU, or on both. What is held counts from 0
// on, which loses nothing where tasks are tried in the order of their starts.
func starts(p *planner.Problem, t *planner.Task, on []held) (all []held) {
	time, sets := t.Options[0].Response.Default().Time, []planner.GPUSet{1, 2}
	if t.Options[0].GPUs == 2 {
		sets = []planner.GPUSet{3}
	}
	moments := make([]float64, 1, 1+len(on))
	for _, h := range on {
		moments = append(moments, h.end)
	}
	slices.Sort(moments)
	for _, gpus := range sets {
		for _, from := range moments {
			if hasRoom(p, t, gpus, on, from) {
				all = append(all, held{gpus, t.Share, t.CPUs, from + time})
				break
			}
		}
	}
	return all
}

func hasRoom(p *planner.Problem, t *planner.Task, gpus planner.GPUSet, on []held, from float64) bool {
	cpu := t.CPUs
	for _, h := range on {
		if h.end > from {
			cpu += h.cpu
		}
	}
	for _, g := range gpus.Indexes() {
		used := t.Share
		for _, h := range on {
			if h.end > from && h.gpus.Has(g) {
				used += h.share
			}
		}
		if used > 1+planner.ShareSlack {
			return false
		}
	}
	return cpu <= p.Cluster.Classes[0].CPUs
}

// Of small batches on parts of GPUs the search finds the best plans; which GPU of a node has room for a share
// is the only thing that it doesn't try.
func TestPlansOfPartsOfGPUsAreTheBestThatThereAre(t *testing.T) {
	rng, worse, drawn := rand.New(rand.NewPCG(7, 0)), 0, 200
	for range drawn {
		p := drawnShares(rng, 4+rng.IntN(2), 1+rng.IntN(2))
		better := improved(t, improve.Retune{}, p, inTurn(t, p))
		least := leastOn(p, make([][]held, p.Cluster.Classes[0].Count), make([]bool, len(p.Tasks)), math.Inf(1))
		on := 0.0
		for n := range better.Nodes {
			for _, i := range better.Nodes[n].On {
				on += i.To - i.From
			}
		}
		switch {
		case on < least*(1-1e-9):
			t.Fatalf("nodes are on for %v s, and %v s is the least: %+v", on, least, p.Tasks)
		case on > least*(1+1e-9):
			if worse++; on > 1.1*least {
				t.Errorf("nodes are on for %v s, %v s would do: %+v", on, least, p.Tasks)
			}
		}
	}
	if worse > drawn/20 {
		t.Errorf("%d of %d plans aren't the best", worse, drawn)
	}
}

// Larger ones on nodes of two kinds, some of which run something already, are valid, and never cost more than
// the plan that the search began with.
func TestPlansOfPartsOfGPUsTakeLess(t *testing.T) {
	rng, before, after := rand.New(rand.NewPCG(8, 0)), 0.0, 0.0
	for range 30 {
		p := drawnShares(rng, 20, 6)
		p.Cluster.Classes = append(p.Cluster.Classes, planner.NodeClass{
			Name: "other", Model: "B", GPUs: 4, Count: 2, IdleW: 20, HostW: 15, CPUs: 32, TurnOn: 500,
		})
		if rng.IntN(2) == 0 {
			p.Snapshot = &planner.Snapshot{}
		}
		for i := range p.Tasks {
			task := &p.Tasks[i]
			time := task.Options[0].Response.Default().Time
			if p.Snapshot != nil && i < 4 {
				task.CPUs = 0 // of what runs GPUs count alone
				p.Snapshot.Running = append(p.Snapshot.Running, planner.RunningTask{
					Task: i, End: time,
				})
			}
			task.Options = append(task.Options, planner.Option{
				Model: "B", GPUs: task.Options[0].GPUs, Response: &dvfsmodel.Fixed{At: dvfsmodel.Point{
					Scaling: dvfsmodel.DefaultScaling(), Time: 1.5 * time, Power: 90,
					Energy: dvfsmodel.Watt(90).Over(1.5 * time),
				}},
			})
			if rng.IntN(3) == 0 {
				task.Due = 1000 + 3000*rng.Float64()
				task.Deadline = task.Due
			}
		}
		plan := inTurn(t, p)
		better := improved(t, improve.Retune{Moves: 100_000}, p, plan)
		if len(plan.Misses) == 0 {
			before, after = before+float64(plan.Ledger.Total()), after+float64(better.Ledger.Total())
		}
		for i := range better.Assignments {
			a := &better.Assignments[i]
			runs := p.Snapshot != nil && i < 4
			if p.Tasks[i].Share < 1 && a.Node >= 0 && !runs && a.Reason.Clocks != planner.ClocksShared {
				t.Errorf("task %d on a part of a GPU: %+v", i, a.Reason)
			}
		}
	}
	t.Logf("%v J, before %v", after, before)
	if !(after < 0.95*before) {
		t.Errorf("want 5 %% less")
	}
}
