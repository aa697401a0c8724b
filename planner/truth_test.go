package planner_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

func TestHowJobsTurnOutMustBeOfTheSameJobs(t *testing.T) {
	seems := func() *planner.Problem { return online(limitedPair(), job("a", fixed(3)), job("b", fixed(4))) }
	for _, c := range []struct {
		name   string
		change func(*planner.Problem)
		want   string
	}{
		{"another job", func(p *planner.Problem) { p.Tasks[1].ID = "c" }, `job "c" isn't the one`},
		{"another arrival", func(p *planner.Problem) {
			p.Tasks[0].Arrival = 1
			p.Tasks[0].Deadline = math.Inf(1)
		}, `job "a" isn't the one`},
		{"one job less", func(p *planner.Problem) { p.Tasks = p.Tasks[:1] }, "another number of jobs"},
		{"nonsense", func(p *planner.Problem) { p.Tasks[0].Limit = -1 }, "how the jobs turn out"},
	} {
		p, truth := seems(), seems()
		c.change(truth)
		pol, err := policy.Parse("simple", policy.DefaultParams())
		if err != nil {
			t.Fatal(err)
		}
		_, err = planner.Solve(t.Context(), p, pol, &planner.Options{Truth: truth})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestPoliciesThatBookAheadNeedCertainTimes(t *testing.T) {
	p := online(limitedPair(), job("a", fixed(3)))
	pol, err := policy.Parse("greedy,place=lightest", policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := planner.Solve(t.Context(), p, pol, &planner.Options{Truth: p}); err == nil ||
		!strings.Contains(err.Error(), "books GPUs") {
		t.Errorf("error %v, want that it books GPUs ahead", err)
	}
}

func TestANodeStaysOnWhileATaskOverruns(t *testing.T) {
	for _, name := range []string{"simple", "simple,place=bestfit"} {
		p := online(limitedPair(), job("a", fixed(3)), at(job("b", fixed(2)), 1, math.Inf(1)))
		truth := online(limitedPair(), job("a", fixed(30)), at(job("b", fixed(1)), 1, math.Inf(1)))
		pol, err := policy.Parse(name+",rho=0", policy.DefaultParams())
		if err != nil {
			t.Fatal(err)
		}
		plan, err := planner.Solve(t.Context(), p, pol, &planner.Options{Truth: truth})
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Plan(truth, plan); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if on := plan.Nodes[0].On; len(on) != 1 || on[0].To < 30 {
			t.Errorf("%s: on %v, want it on to 30 s", name, on)
		}
	}
}

// limitedPair returns one node of the paper with two GPUs.
func limitedPair() planner.NodeClass {
	k := paperClass(2)
	k.Count = 1
	return k
}
