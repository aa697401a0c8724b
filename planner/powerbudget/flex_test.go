package powerbudget_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/powerbudget"
)

// What a plan is said to do without it can: its other plan takes no more than the cap at any moment of the
// window, by code of its own, and everybody ends by the due time by which he ended.
func TestWhatAPlanCanDoWithoutIsKeptWhenItIsCalledOn(t *testing.T) {
	rng, drawn, gives := rand.New(rand.NewPCG(3, 0)), 0, 0.0
	for seed := uint64(100); drawn < 100; seed++ {
		p := draw(seed)
		if rng.IntN(3) == 0 {
			p.Snapshot = &planner.Snapshot{}
			for i := range 3 {
				task := &p.Tasks[i]
				task.Share, task.CPUs, task.Options[0].GPUs, task.Options[0].Nodes = 1, 0, 1, 0
				p.Snapshot.Running = append(p.Snapshot.Running, planner.RunningTask{
					Task: i, Class: 0, End: task.Options[0].Response.Default().Time,
				})
			}
		}
		plan := plannertest.Solve(t, p, "edl")
		if len(plan.Unplaced) > 0 {
			continue
		}
		drawn++
		from := float64(rng.IntN(3)) * 200
		window := planner.Interval{From: from, To: from + 300 + 900*rng.Float64()}
		f, err := powerbudget.NewFlex(t.Context(), p, plan, window)
		if err != nil {
			t.Fatal(err)
		}
		if err := kept(p, plan, f); err != nil {
			t.Errorf("seed %d, %v: %v", seed, window, err)
		}
		gives += float64(f.Reduction()/f.Peak) / 100
	}
	t.Logf("%.1f %% of the peak in the window", 100*gives)
	if gives < 0.1 {
		t.Error("plans give next to nothing")
	}
}

// A cap costs in a window about what it costs as a budget: as much is searched.
func TestWhatAPlanDoesWithoutCostsAboutWhatABudgetCosts(t *testing.T) {
	given, asked, drawn := 0.0, 0.0, 0
	for seed := uint64(300); drawn < 5; seed++ {
		p := draw(seed)
		plan := plannertest.Solve(t, p, "edl-align")
		if len(plan.Unplaced)+len(plan.PastDue(p)) > 0 {
			continue
		}
		drawn++
		f, err := powerbudget.NewFlex(t.Context(), p, plan, planner.Interval{To: 600})
		if err != nil {
			t.Fatal(err)
		}
		within := keep(t.Context(), t, p, plan, powerbudget.Budget{{0, f.Cap}, {600, dvfsmodel.Watt(math.Inf(1))}})
		given += p.Cost(f.Kept)/p.Cost(plan) - 1
		asked += p.Cost(within)/p.Cost(plan) - 1
	}
	t.Logf("%.3f %% by flex, %.3f %% by a budget", 100*given/float64(drawn), 100*asked/float64(drawn))
	if given > 1.1*asked {
		t.Error("want at most a tenth more")
	}
}

// kept says what a plan doesn't keep that does without something.
func kept(p *planner.Problem, plan *planner.Plan, f *powerbudget.Flex) error {
	times := []float64{0, f.Window.From, f.Window.To}
	watts := []float64{math.Inf(1), float64(f.Cap), math.Inf(1)}
	all := []error{check.Plan(p, f.Kept), check.Budget(p, f.Kept, times, watts)}
	late := plan.PastDue(p)
	for _, task := range f.Kept.PastDue(p) {
		if !slices.Contains(late, task) {
			all = append(all, fmt.Errorf("task %d ends after its due time", task))
		}
	}
	for i, runs := range p.RunningTasks() {
		a, was := &f.Kept.Assignments[i], &plan.Assignments[i]
		if runs && (a.Start != was.Start || a.End != was.End) {
			all = append(all, fmt.Errorf("task %d runs, and ends at %v instead of %v", i, a.End, was.End))
		}
	}
	if f.Cap > f.Peak*(1+1e-9) || f.KeptMean > f.Cap*(1+1e-9) {
		all = append(all, fmt.Errorf("%+v", f))
	}
	return errors.Join(all...)
}

// run is what a task takes.
type run struct{ from, to, watts float64 }

func load(runs []run, at float64) (sum float64) {
	for _, r := range runs {
		if r.from <= at && at < r.to {
			sum += r.watts
		}
	}
	return sum
}

// search looks for a plan of jobs on the GPUs that a plan has for them, each a node, that ends all in time
// and takes no more than so much in a window. It tries every order in which they come to their watts, points
// of each, and the end of each as the start of others.
type search struct {
	p      *planner.Problem
	plan   *planner.Plan
	points [][]dvfsmodel.Point
	window planner.Interval
	most   float64
	gpu    []float64 // when its last job ends
}

// finds reports whether there is such a plan, with some jobs placed and others left, by bits.
func (s *search) finds(runs []run, left int) bool {
	if left == 0 {
		return true
	}
	for task := range s.p.Tasks {
		if left&(1<<task) == 0 {
			continue
		}
		gpu := &s.gpu[s.plan.Assignments[task].Node]
		was := *gpu
		for _, pt := range s.points[task] {
			starts := []float64{was, s.window.To}
			for _, r := range runs {
				starts = append(starts, r.to)
			}
			for _, start := range starts {
				next := run{start, start + pt.Time, float64(pt.Power)}
				if start < was || next.to > s.p.Tasks[task].Due || !s.fits(append(runs, next), starts) {
					continue
				}
				*gpu = next.to
				found := s.finds(append(runs, next), left&^(1<<task))
				if *gpu = was; found {
					return true
				}
			}
		}
	}
	return false
}

func (s *search) fits(runs []run, moments []float64) bool {
	for _, at := range append(moments, s.window.From, runs[len(runs)-1].from) {
		if s.window.From <= at && at < s.window.To && load(runs, at) > s.most {
			return false
		}
	}
	return true
}

// leastCap returns the least that such plans take in the window, to a watt.
func (s *search) leastCap() float64 {
	low, high := 0.0, 2000.0
	for high-low > 1 {
		if s.most = (low + high) / 2; s.finds(nil, 1<<len(s.p.Tasks)-1) {
			high = s.most
		} else {
			low = s.most
		}
	}
	return high
}

// Of small queues the cap is close to the least that there is.
func TestWhatASmallPlanCanDoWithoutIsCloseToTheMostThatThereIs(t *testing.T) {
	rng, sum, exact, drawn := rand.New(rand.NewPCG(4, 0)), 0.0, 0, 40
	for range drawn {
		p := &planner.Problem{Mode: planner.Offline, Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "c", Model: "A", GPUs: 1, Count: 3}},
		}}
		points := make([][]dvfsmodel.Point, 4)
		for i := range points {
			response := plannertest.Continuous(100 + 500*rng.Float64())
			task := plannertest.Job(string(rune('a'+i)), response)
			for _, weight := range []float64{0, 30, 100, 300, 1000, 10000} {
				pt, err := response.Optimum(dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: weight}, math.Inf(1))
				if err != nil {
					t.Fatal(err)
				}
				points[i] = append(points[i], pt)
			}
			task.Due = 900 + 900*rng.Float64()
			task.Deadline = task.Due
			p.Tasks = append(p.Tasks, task)
		}
		plan := plannertest.Solve(t, p, "edl-align")
		if len(plan.Misses) > 0 {
			continue
		}
		window := planner.Interval{From: 100, To: 100 + 600*rng.Float64()}
		f, err := powerbudget.NewFlex(t.Context(), p, plan, window)
		if err != nil {
			t.Fatal(err)
		}
		s := &search{p: p, plan: plan, points: points, window: window, gpu: make([]float64, len(plan.Nodes))}
		if above := (float64(f.Cap) - s.leastCap()) / float64(f.Peak); above <= 0.01 {
			exact++
		} else {
			sum += above
		}
	}
	t.Logf("%d of %d exact to a hundredth of the peak; %.3f of the peak above in the mean", exact, drawn,
		sum/float64(drawn))
	if exact < drawn*8/10 || sum > 0.05*float64(drawn) {
		t.Error("want four fifths, and a twentieth")
	}
}
