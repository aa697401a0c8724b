package policy_test

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

// drawGangs draws problems of whole GPUs in which every third task or so runs on
// several nodes.
func drawGangs(t *rapid.T) *planner.Problem {
	p := drawProblem(t, atZero, atZero, atWholeSeconds, atAnyTime)
	d := &drawer{T: t}
	for i := range p.Tasks {
		if nodes := oneOf(d, "gang", 1, 2, 1, 3, 1, 4); nodes > 1 && p.Tasks[i].Share == 1 {
			for k := range p.Tasks[i].Options {
				o := &p.Tasks[i].Options[k]
				o.GPUs, o.Nodes = o.PerNode()*nodes, nodes
			}
		}
	}
	return p
}

// span is a time on a GPU, and the power drawn in it.
type span struct {
	from, to, watts float64
}

// reckoned returns the energy of a plan, GPU by GPU, joules: what runs there, and what idles
// beside it while the node is on. ok is false where two tasks are on a GPU at once.
func reckoned(p *planner.Problem, plan *planner.Plan) (joules float64, ok bool) {
	busy, ok := runsByGPU(p, plan)
	if !ok {
		return 0, false
	}
	end := 0.0
	for n := range plan.Nodes {
		for _, on := range plan.Nodes[n].On {
			end = math.Max(end, on.To)
		}
	}
	for n := range plan.Nodes {
		k := &p.Cluster.Classes[plan.Nodes[n].Class]
		on := 0.0
		for _, iv := range plan.Nodes[n].On {
			on += iv.To - iv.From
			if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
				joules += float64(k.TurnOn) * float64(k.GPUs)
			}
		}
		joules += float64(k.SleepW) * (end - on)
		for g := range k.GPUs {
			idle := on
			for _, s := range busy[gpuOf{int32(n), g}] {
				idle -= s.to - s.from
				joules += s.watts * (s.to - s.from)
			}
			joules += float64(k.IdleW)*idle + float64(k.HostW)*on
		}
	}
	return joules, true
}

// gpuOf is a GPU of a node.
type gpuOf struct {
	node int32
	gpu  int
}

// runsByGPU returns what runs on each GPU. ok is false where two tasks do at once.
func runsByGPU(p *planner.Problem, plan *planner.Plan) (busy map[gpuOf][]span, ok bool) {
	busy = map[gpuOf][]span{}
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		model := p.Tasks[i].Options[a.Option].Response.Model()
		for _, part := range append([]planner.Part{{Node: a.Node, GPUs: a.GPUs}}, a.More...) {
			for _, g := range part.GPUs.Indexes() {
				at := gpuOf{part.Node, g}
				for _, other := range busy[at] {
					if math.Min(other.to, a.End)-math.Max(other.from, a.Start) > 1e-6 {
						return nil, false
					}
				}
				busy[at] = append(busy[at], span{a.Start, a.End, float64(model.Power(a.Point.Scaling))})
			}
		}
	}
	return busy, true
}

func TestJobsOnSeveralNodesTakeTheEnergyOfAllTheirGPUs(t *testing.T) {
	t.Parallel()
	gangs := 0
	problems := checkMany(t, 60, 600, func(t *rapid.T) {
		p := drawGangs(t)
		for i := range p.Tasks {
			p.Tasks[i].Share = 1
		}
		for _, name := range drawPolicies(t) {
			plan := solve(t, p, name)
			if err := check.Plan(p, plan); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			joules, ok := reckoned(p, plan)
			if total := float64(plan.Ledger.Total()); !ok ||
				math.Abs(joules-total) > 1e-6*math.Max(1, total) {
				t.Fatalf("%s: %v J, GPU by GPU %v J (each alone on its GPU: %v)", name, total, joules, ok)
			}
			if lower := bound.Lower(p); plan.Status == planner.Complete &&
				float64(plan.Ledger.Total()) < float64(lower.Value)*(1-1e-9) {
				t.Fatalf("%s: %v J, below the bound of %v J", name, plan.Ledger.Total(), lower.Value)
			}
			for i := range plan.Assignments {
				if len(plan.Assignments[i].More) > 0 {
					gangs++
				}
			}
		}
	})
	if gangs < 5*problems {
		t.Errorf("%d jobs on several nodes of %d problems, want more", gangs, problems)
	}
}

// One node is one node, whether a job says so or not.
func TestAJobThatSaysOneNodeIsPlannedLikeOneThatSaysNone(t *testing.T) {
	t.Parallel()
	checkMany(t, 60, 200, func(t *rapid.T) {
		p, variant := drawGangs(t), drawVariant(t)
		said := *p
		said.Tasks = make([]planner.Task, len(p.Tasks))
		for i := range p.Tasks {
			said.Tasks[i] = p.Tasks[i]
			said.Tasks[i].Options = append([]planner.Option(nil), p.Tasks[i].Options...)
			for k := range said.Tasks[i].Options {
				if o := &said.Tasks[i].Options[k]; o.Nodes == 0 {
					o.Nodes = 1
				}
			}
		}
		for _, name := range drawPolicies(t) {
			if a, b := solve(t, p, name+variant), solve(t, &said, name+variant); !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: without a number of nodes\n%+v\nwith one\n%+v", name+variant, a, b)
			}
		}
	})
}

func TestTheOrderOfJobsOnSeveralNodesChangesNothing(t *testing.T) {
	t.Parallel()
	checkMany(t, 60, 200, func(t *rapid.T) {
		p := drawGangs(t)
		order := rapid.Permutation(indexes(len(p.Tasks))).Draw(t, "order")
		other := *p
		other.Tasks = nil
		for _, i := range order {
			other.Tasks = append(other.Tasks, p.Tasks[i])
		}
		for _, name := range drawPolicies(t) {
			params := policy.DefaultParams()
			params.Queue.Look.Futures = 1
			pol, err := policy.Parse(name, params)
			if err != nil {
				t.Fatal(err)
			}
			a, err := policy.SolveChecked(t.Context(), p, pol, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := policy.SolveChecked(t.Context(), &other, pol, nil)
			if err != nil {
				t.Fatal(err)
			}
			for to, from := range order {
				if !reflect.DeepEqual(a.Assignments[from], b.Assignments[to]) {
					t.Fatalf("%s: job %q\n%+v\nin another order\n%+v", name, p.Tasks[from].ID,
						a.Assignments[from], b.Assignments[to])
				}
			}
		}
	})
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
