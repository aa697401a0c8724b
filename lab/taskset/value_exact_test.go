package taskset_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// judge watches the value rule and compares the value of what it starts at each
// event with the most that any choice would have had.
type judge struct {
	planner.TaskObserver
	v       *planner.View
	kappa   float64
	waiting map[int]bool
	free    [2]int
	got     float64 // what started since the last event is worth
	best    float64
	found   *verdicts
}

// verdicts are sums over the events at which something could start.
type verdicts struct {
	events, optimal int
	got, best, most float64 // values by rule and by exact choice, and the largest part lost
}

// worth returns the value of a pair; what is worth nothing isn't counted by either.
func (j *judge) worth(task, class int) float64 {
	o := &j.v.Problem.Tasks[task].Options[class]
	at := o.Response.Default()
	kWh := float64(at.Energy) * float64(o.GPUs) / 3.6e6
	return max(0, 1/(float64(o.GPUs)*at.Time)-j.kappa*kWh)
}

func (j *judge) Arrive(tasks []int) {
	j.close()
	for _, task := range tasks {
		j.waiting[task] = true
	}
	j.best = j.exact()
	j.TaskObserver.Arrive(tasks)
}

// close judges the last event.
func (j *judge) close() {
	if j.best > 0 {
		j.found.events++
		j.found.got, j.found.best = j.found.got+j.got, j.found.best+j.best
		lost := 1 - j.got/j.best
		j.found.most = max(j.found.most, lost)
		if lost < 1e-9 {
			j.found.optimal++
		}
	}
	j.got, j.best = 0, 0
}

// exact returns the most that tasks which fit what is free together are worth:
// dynamic programming over the free GPUs of both classes.
func (j *judge) exact() float64 {
	a, b := j.free[0]+1, j.free[1]+1
	most := make([]float64, a*b)
	for task := range j.waiting {
		options := j.v.Problem.Tasks[task].Options
		for x := a - 1; x >= 0; x-- {
			for y := b - 1; y >= 0; y-- {
				best := most[x*b+y]
				if n := options[0].GPUs; n <= x {
					best = math.Max(best, most[(x-n)*b+y]+j.worth(task, 0))
				}
				if n := options[1].GPUs; n <= y {
					best = math.Max(best, most[x*b+y-n]+j.worth(task, 1))
				}
				most[x*b+y] = best
			}
		}
	}
	return most[a*b-1]
}

func (j *judge) Committed(task int, a *planner.Assignment) {
	delete(j.waiting, task)
	j.free[a.Option] -= a.GPUs.Len()
	j.got += j.worth(task, int(a.Option))
	j.TaskObserver.Committed(task, a)
}

func (j *judge) Finished(task int, a *planner.Assignment) {
	j.free[a.Option] += a.GPUs.Len()
	j.TaskObserver.Finished(task, a)
}

// TestTheValueRuleLosesLittleToAnExactKnapsack states the rule's gap by kappa
// over all decisions of the given queues.
func TestTheValueRuleLosesLittleToAnExactKnapsack(t *testing.T) {
	for _, c := range []struct {
		model trace.EnergyModel
		kappa float64
	}{
		{trace.Independent, 0},
		{trace.Independent, 3.1623e-8},
		{trace.Independent, 3.1623e-7},
		{trace.Coupled, 1e-9},
	} {
		found := verdicts{}
		for _, q := range givenQueues(t, c.model) {
			pol := &planner.Policy{Name: "judged", Tune: tune.None, Place: place.AtOnce, Park: park.Never{}}
			pol.Pick = func(v *planner.View, placer planner.Placer) planner.Picker {
				rule := pick.Value{Kappa: c.kappa}.New(v, placer).(planner.TaskObserver) //nolint:errcheck // it is one
				classes := v.Problem.Cluster.Classes
				return &judge{
					TaskObserver: rule, v: v, kappa: c.kappa, waiting: map[int]bool{}, found: &found,
					free: [2]int{classes[0].GPUs, classes[1].GPUs},
				}
			}
			if _, err := planner.Solve(t.Context(), q.predicted, pol,
				&planner.Options{Truth: q.truth}); err != nil {
				t.Fatal(err)
			}
		}
		gap := 1 - found.got/found.best
		t.Logf("%v, kappa %v: %d decisions, %.1f %% exact, %.3f %% of the value lost in all, %.1f "+
			"%% at most in one",
			c.model, c.kappa, found.events, 100*float64(found.optimal)/float64(found.events), 100*gap,
			100*found.most)
		if gap < -1e-9 || gap > 0.02 {
			t.Errorf("gap %v, want between nothing and 2 %%", gap)
		}
		if found.events < 1000 {
			t.Errorf("%d decisions, want more", found.events)
		}
	}
}
