package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// drawn returns a problem whose jobs arrive over time on a cluster of two GPU models.
func drawn(t *testing.T, seed uint64) *planner.Problem {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	p := plannertest.Mixed(t)
	kinds := p.Tasks
	p.Tasks, p.Mode = nil, planner.Online
	for i := range 30 {
		task := kinds[rng.IntN(len(kinds))]
		task.ID = fmt.Sprint("j", i)
		task.Arrival = rng.Float64() * 100
		task.Deadline, task.Due = math.Inf(1), math.Inf(1)
		p.Tasks = append(p.Tasks, task)
	}
	slices.SortFunc(p.Tasks, func(a, b planner.Task) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return p
}

// present counts what runs and waits at a moment of a plan, and returns when each job ends.
func present(p *planner.Problem, plan *planner.Plan, now float64) (count int, ends map[string]float64) {
	ends = make(map[string]float64)
	for i := range p.Tasks {
		a := &plan.Assignments[i]
		if ends[p.Tasks[i].ID] = a.End; a.Node >= 0 && p.Tasks[i].Arrival <= now && a.End > now {
			count++
		}
	}
	return count, ends
}

// At any moment of a plan what runs and waits is planned on from there: runs end as in the plan, nobody else
// is there, and the new plan is valid.
func TestFromAnyMomentOfAPlanItsRestIsPlanned(t *testing.T) {
	running, waiting, lost := 0, 0, 0
	for seed := range uint64(60) {
		p := drawn(t, seed)
		plan := plannertest.Solve(t, p, "easy")
		now := plan.Ledger.End * (0.1 + 0.8*float64(seed%7)/6)
		left := problemAt(p, plan, now)
		want, ends := present(p, plan, now)
		if len(left.Tasks) != want {
			t.Fatalf("seed %d: %d tasks, want %d", seed, len(left.Tasks), want)
		}
		if want == 0 {
			continue
		}
		pol, err := policy.Parse("edl", policy.DefaultParams())
		if err != nil {
			t.Fatal(err)
		}
		rest, err := policy.SolveChecked(context.Background(), left, pol, &planner.Options{NoImprove: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, r := range left.Snapshot.Running {
			if rest.Assignments[r.Task].Node < 0 { // runs are packed anew: a part of a GPU may find no room
				lost++
				continue
			}
			if got := rest.Assignments[r.Task].End + now; math.Abs(got-ends[left.Tasks[r.Task].ID]) > 1e-6*got {
				t.Errorf("seed %d: %s ends at %v s, want %v", seed, left.Tasks[r.Task].ID, got,
					ends[left.Tasks[r.Task].ID])
			}
		}
		running, waiting = running+len(left.Snapshot.Running), waiting+want-len(left.Snapshot.Running)
	}
	if running == 0 || waiting == 0 || lost > running/20 {
		t.Errorf("%d ran, of which %d found no room, and %d waited, want some of each", running, lost, waiting)
	}
}
