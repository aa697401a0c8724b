package check_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
)

// BenchmarkCheck checks EDL's offline plans for nodes of four GPUs.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			p := &planner.Problem{Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{
				{Name: "pair", Model: "A", GPUs: 4, IdleW: 37, TurnOn: 90},
			}}}
			for range n {
				seconds := 10 + 40*rng.Float64()
				p.Tasks = append(p.Tasks,
					plannertest.At(plannertest.Job("x", plannertest.Continuous(seconds)), 0,
						seconds*(1+20*rng.Float64())))
			}
			plan := plannertest.Solve(b, p, "edl")
			for b.Loop() {
				if err := check.Plan(p, plan); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
