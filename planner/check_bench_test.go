package planner_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/epplan/epplan/planner"
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
					at(job("x", continuous(seconds)), 0,
						seconds*(1+20*rng.Float64())))
			}
			plan := solve(b, p, "edl")
			for b.Loop() {
				if err := planner.Check(p, plan); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
