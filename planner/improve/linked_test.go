package improve

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// drawLists draws a cluster of a few nodes and jobs of which some run on several, for
// every other seed jobs that wait, where waiting has a price, for every fifth jobs that arrive over time, at
// long intervals for half of these.
func drawLists(seed uint64, binds bool) *listSchedule {
	wide := dvfsmodel.WideRange()
	rng := rand.New(rand.NewPCG(seed, 1))
	p := &planner.Problem{Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{
			Name: "a", Model: "A", Count: 2 + rng.IntN(4), GPUs: 1 + rng.IntN(4), CPUs: 8, IdleW: 10,
			HostW: 5, TurnOnDelay: 7,
		},
		{Name: "b", Model: "B", Count: 2 + rng.IntN(3), GPUs: 4, CPUs: 16, IdleW: 20, SleepW: 3},
	}}}
	for range 4 + rng.IntN(30) {
		nodes := 1 + max(0, rng.IntN(5)-2)
		t := planner.NewTask("t")
		for _, k := range p.Cluster.Classes {
			params := dvfsmodel.Params{
				P0: 20, Gamma: 20, C: 100, D: 100 + 1000*rng.Float64(), Delta: rng.Float64(), T0: 10,
			}
			t.Options = append(t.Options, planner.Option{
				Model: k.Model, GPUs: nodes * (1 + rng.IntN(k.GPUs)), Nodes: nodes,
				Response: &dvfsmodel.Continuous{Params: params, Range: &wide},
			})
		}
		t.Due = 3000 * rng.Float64()
		if binds {
			t.CPUs = float64(nodes * (1 + rng.IntN(8)))
		}
		p.Tasks = append(p.Tasks, t)
	}
	if seed%2 == 1 {
		p.WaitWeight = 1000 * rng.Float64()
		for i := range p.Tasks {
			p.Tasks[i].Arrival = -1000 * rng.Float64()
		}
	}
	if seed%5 == 2 {
		p.Mode = planner.Clairvoyant
		for i := range p.Tasks {
			t := &p.Tasks[i]
			t.Arrival = 200 * float64(1+seed%4*10) * rng.Float64()
			t.Due += t.Arrival
			p.Cluster.Classes[i%2].TurnOn = dvfsmodel.Joule(500 * rng.Float64())
		}
	}
	l := newListSchedule(p, weights{joule: 1, waited: p.WaitWeight},
		[]int{p.Cluster.Classes[0].Count, p.Cluster.Classes[1].Count})
	l.late = lateness{fixed: 1e5, perSecond: 100}
	for i := range p.Tasks {
		class := rng.IntN(2)
		m := l.menu(int32(i), class)
		if m.gpus == 0 {
			if class = 1 - class; l.menu(int32(i), class).gpus == 0 {
				continue
			}
			m = l.menu(int32(i), class)
		}
		var nodes []int32
		for _, n := range rng.Perm(len(l.nodes)) {
			if l.nodes[n].class == class && len(nodes) < m.nodes {
				nodes = append(nodes, int32(n))
			}
		}
		l.add(int32(i), nodes, rng.Int32N(priceCount))
	}
	return l
}

func TestWhatAWalkKnowsOfItsListsIsWhatAFreshPlayFinds(t *testing.T) {
	for seed := range uint64(300) {
		l := drawLists(seed, seed%3 == 0)
		if !l.retimeAll() {
			t.Fatalf("seed %d: gangs in one order on all nodes wait for each other", seed)
		}
		w := &listAnnealing{l: l, trial: trial{l: l}, rng: rand.New(rand.NewPCG(seed, 2))}
		w.l.late.fixed = 1e5
		taken := 0
		for move := range 400 {
			w.trial.limit = 3e5 * w.rng.ExpFloat64()
			before, _ := l.total()
			w.tryMove()
			cost, late := l.total()
			if cost != before {
				taken++
			}
			fresh := l.clone()
			if !fresh.retimeAll() {
				t.Fatalf("seed %d, move %d: gangs wait for each other", seed, move)
			}
			want, wantLate := fresh.total()
			if math.Abs(cost-want) > 1e-6*math.Abs(want) || late != wantLate {
				t.Fatalf("seed %d, move %d: costs %v with %d late, a fresh play %v with %d", seed, move, cost,
					late, want, wantLate)
			}
			if cost-before > w.trial.limit*(1+1e-6) {
				t.Fatalf("seed %d, move %d: costs %v more, at most %v may be", seed, move,
					cost-before, w.trial.limit)
			}
		}
		if taken == 0 && len(l.jobs) > 5 {
			t.Errorf("seed %d: no move is taken", seed)
		}
	}
}

// TestWhatListsCostIsWhatTheirPlanCosts by the problem's objective, waiting included.
func TestWhatListsCostIsWhatTheirPlanCosts(t *testing.T) {
	for seed := range uint64(300) {
		l := drawLists(seed, seed%3 == 0)
		l.late = lateness{}
		l.p.Cluster.Classes[1].SleepW, l.classes[1].sleep = 0, 0
		if !l.retimeAll() {
			t.Fatalf("seed %d: gangs in one order on all nodes wait for each other", seed)
		}
		none := &planner.Plan{Assignments: make([]planner.Assignment, len(l.jobs))}
		for i := range none.Assignments {
			none.Assignments[i].Node = -1
		}
		plan := l.toPlan(none)
		cost, _ := l.total()
		if want := l.p.Cost(plan); math.Abs(cost-want) > 1e-9*math.Abs(want) {
			t.Fatalf("seed %d: the lists cost %v, their plan %v", seed, cost, want)
		}
	}
}
