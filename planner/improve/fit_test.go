package improve

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// drawCurve tabulates a random workload of the paper's kind in a random room.
func drawCurve(t *rapid.T, r *dvfsmodel.Range) (item, *dvfsmodel.Continuous) {
	number := func(low, high float64, label string) float64 {
		return rapid.Float64Range(low, high).Draw(t, label)
	}
	response := &dvfsmodel.Continuous{Range: r, Params: dvfsmodel.Params{
		P0: dvfsmodel.Watt(number(40, 90, "P0")), Gamma: dvfsmodel.Watt(number(5, 40, "gamma")),
		C: dvfsmodel.Watt(number(80, 120, "c")),
		D: number(20, 300, "D"), Delta: number(0.05, 0.95, "delta"), T0: number(0, 40, "t0"),
	}}
	it := item{due: response.MinTime() * number(1.01, 3, "room")}
	it.room = it.due
	var ok bool
	if it.timeCurve, ok = newCurveTable(pricing{
		objective: dvfsmodel.MinEnergy(), idle: 37,
		retune: true,
	}).curveOf(response, it.room); !ok {
		t.Fatal("no curve")
	}
	return it, response
}

func TestACurveRisesInTimeAndItsCostsAreConvexAroundTheOwnOptimum(t *testing.T) {
	wide, narrow := dvfsmodel.WideRange(), dvfsmodel.NarrowRange()
	rapid.Check(t, func(t *rapid.T) {
		it, response := drawCurve(t, rapid.SampledFrom([]*dvfsmodel.Range{&wide, &narrow}).Draw(t, "range"))
		own, err := response.Optimum(dvfsmodel.MinEnergy(), it.room)
		if err != nil {
			t.Fatal(err)
		}
		if it.cost[freeOptimum] != 0 || math.Abs(it.time[freeOptimum]/own.Time-1) > 1e-9 {
			t.Fatalf("at price 0: %v s at cost %v, want %v s", it.time[freeOptimum],
				it.cost[freeOptimum], own.Time)
		}
		for g := 1; g < priceCount; g++ {
			step, rise := it.time[g]-it.time[g-1], it.cost[g]-it.cost[g-1]
			low, high := priceSteps[g-1]*37*step, priceSteps[g]*37*step
			if slack := 1e-9 * float64(own.Energy); step < -1e-9 || rise < low-slack || rise > high+slack {
				t.Fatalf("from price %v to %v: %v s more cost %v J, want %v to %v J", priceSteps[g-1],
					priceSteps[g], step, rise, low, high)
			}
		}
	})
}

func TestAGPUIsPricedAsItsTasksCostWhenTheyEndThen(t *testing.T) {
	wide := dvfsmodel.WideRange()
	rapid.Check(t, func(t *rapid.T) {
		s := &gpuSchedule{nodeGPUs: 1, idle: 37, gpus: make([]gpu, 1)}
		tasks := rapid.IntRange(1, 4).Draw(t, "tasks")
		responses := make([]*dvfsmodel.Continuous, 0, tasks)
		before := 0.0
		for range tasks {
			it, response := drawCurve(t, &wide)
			it.due += before // on time at its own pace
			before += it.room
			s.items, responses = append(s.items, it), append(responses, response)
		}
		s.items = append(s.items, item{due: math.Inf(1)})
		s.gpuOf = make([]int32, len(s.items))
		for i := range responses {
			s.place(int32(i), 0)
		}
		g := &s.gpus[0]
		end := g.time[0] + rapid.Float64Range(0.2, 1.2).Draw(t, "end")*(g.time[priceCount-1]-g.time[0]) + 1
		f, ok := s.fitTo(g, s.dummyItem(), s.dummyItem(), end)
		if !ok {
			t.Fatalf("no fit to %v s, the shortest is %v s", end, g.time[0])
		}
		cost, now, run := 0.0, 0.0, 0.0
		for k, pr := range s.prices(g.tasks, end) {
			i := g.tasks[k]
			pt, ok := responses[i].Range.ForTime(responses[i].Params, s.items[i].between(pr.step, pr.frac))
			own, err := responses[i].Optimum(dvfsmodel.MinEnergy(), s.items[i].room)
			if !ok || err != nil {
				t.Fatalf("no clocks for %v s", s.items[i].between(pr.step, pr.frac))
			}
			cost += float64(pt.Energy - own.Energy)
			run += float64(own.Energy)
			if now += pt.Time; now > s.items[i].due*(1+1e-9) || now > end*(1+1e-9) {
				t.Fatalf("ends at %v s, due at %v s, the node at %v s", now, s.items[i].due, end)
			}
		}
		cost += 37 * (end - now)
		// The search interpolates, coarsely close to a deadline; its plans are
		// priced exactly in the end.
		if math.Abs(cost-f.excess) > 0.25*cost+1e-3*run {
			t.Fatalf("priced at %v J, costs %v J", f.excess, cost)
		}
	})
}

func TestMovesKeepTheSumsOfTheirGPUs(t *testing.T) {
	wide := dvfsmodel.WideRange()
	rng := rand.New(rand.NewPCG(1, 2))
	p := &planner.Problem{
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "node", Model: "A", GPUs: 4, IdleW: 37}},
		},
	}
	isle := &subplan{}
	for i := range 60 {
		params := dvfsmodel.Params{
			P0: 50, Gamma: 30, C: 110, D: 20 + 200*rng.Float64(), Delta: rng.Float64(), T0: 5,
		}
		due := params.Time(1, 1) * (1 + 5*rng.Float64())
		p.Tasks = append(p.Tasks, planner.Task{
			Deadline: due, Due: due, Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{
				Model: "A", GPUs: 1, Response: &dvfsmodel.Continuous{Params: params, Range: &wide},
			}},
		})
		isle.tasks = append(isle.tasks, i)
	}
	template, ok := newGPUSchedule(p, isle)
	if !ok {
		t.Fatal("no curves")
	}
	s, ok := template.construct(11)
	if !ok {
		t.Fatal("eleven nodes don't suffice")
	}
	before := s.total()
	if err := newGPUAnnealing(s, rng).anneal(t.Context(), 50_000, hotTemperature,
		coldTemperature); err != nil {
		t.Fatal(err)
	}
	if after := s.total(); after >= before {
		t.Errorf("%v J above the tasks' own optima, %v J before the search", after, before)
	}
	placed := 0
	for g := range s.gpus {
		var sum timeCurve
		for _, i := range s.gpus[g].tasks {
			sum.plus(&s.items[i].timeCurve, 1)
			placed++
			if s.gpuOf[i] != int32(g) {
				t.Errorf("item %d is on GPU %d, listed on %d", i, s.gpuOf[i], g)
			}
		}
		for n := range sum.time {
			if math.Abs(sum.time[n]-s.gpus[g].time[n]) > 1e-6 ||
				math.Abs(sum.cost[n]-s.gpus[g].cost[n]) > 1e-3 {
				t.Fatalf("GPU %d at price %d: %v s, %v J, its tasks add up to %v s, %v J", g, n,
					s.gpus[g].time[n], s.gpus[g].cost[n], sum.time[n], sum.cost[n])
			}
		}
	}
	if placed != len(p.Tasks) {
		t.Errorf("%d tasks placed, want %d", placed, len(p.Tasks))
	}
}
