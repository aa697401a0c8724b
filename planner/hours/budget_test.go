package hours_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/powerbudget"
)

// TestABudgetIsKeptByJobsThatWaitForTheirHours plans drawn batches at their hours and brings them within a
// budget that falls for a time: no job starts before its hour, at no moment is there more power.
func TestABudgetIsKeptByJobsThatWaitForTheirHours(t *testing.T) {
	t.Parallel()
	changed, waited := 0, 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p, prices := drawProblem(rng), drawPrices(rng)
		if p.Mode = planner.Clairvoyant; rng.IntN(2) == 0 {
			arriveAtOnce(p)
		}
		wait := func(int) float64 { return 8 * hour }
		begins := hours.BeginTimes(p, prices, wait)
		shifted, due := hours.Shifted(p, begins, wait), hours.DueLater(p, wait)
		if shifted == nil {
			continue
		}
		plan := solve(t, shifted)
		plan.Recount(due)
		held := *shifted
		held.Mode = p.Mode
		times := []float64{0, 4 * hour, 9 * hour}
		watts := []float64{1500, 400 + 400*rng.Float64(), 1500}
		limit := make(powerbudget.Budget, 0, len(times))
		for i := range times {
			limit = append(limit, powerbudget.Step{From: times[i], Watts: dvfsmodel.Watt(watts[i])})
		}
		if check.Budget(due, plan, times, watts) != nil {
			changed++
		}
		kept, err := powerbudget.Keep(t.Context(), &held, plan, limit)
		if err != nil {
			t.Fatal(err)
		}
		kept.Recount(due)
		if err := errors.Join(check.Plan(due, kept), check.Budget(due, kept, times, watts)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		waited += checkBegins(t, p, kept, begins)
	}
	if t.Logf("%d plans exceed the budget, %d jobs wait", changed, waited); changed < 8 || waited < 50 {
		t.Error("want eight plans and fifty jobs")
	}
}

// arriveAtOnce has all jobs of a problem arrive at 0.
func arriveAtOnce(p *planner.Problem) {
	p.Mode = planner.Offline
	for i := range p.Tasks {
		task := &p.Tasks[i]
		task.Deadline, task.Due, task.Arrival = task.Deadline-task.Arrival, task.Due-task.Arrival, 0
	}
}

// checkBegins reports jobs that start before their hours, and returns how many have one.
func checkBegins(t *testing.T, p *planner.Problem, plan *planner.Plan, begins []float64) (waiting int) {
	t.Helper()
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node >= 0 && a.Start < begins[i]-1e-9*max(1, math.Abs(begins[i])) {
			t.Errorf("job %d starts at %v, before its hour %v", i, a.Start, begins[i])
		}
		if begins[i] > p.Tasks[i].Arrival {
			waiting++
		}
	}
	return waiting
}
