package policy_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// randomProblem returns an offline problem of n tasks from the paper's published
// ranges (EDL §5.1.3): shapes distinct workloads, 0 for one each.
func randomProblem(n, shapes int) *planner.Problem {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	r := dvfsmodel.WideRange()
	if shapes == 0 {
		shapes = n
	}
	library := make([]dvfsmodel.Params, shapes)
	for i := range library {
		power := 175 + 31*rng.Float64()
		p0, gamma := power*(0.2+0.21*rng.Float64()), power*(0.1+0.1*rng.Float64())
		library[i] = dvfsmodel.Params{
			P0: dvfsmodel.Watt(p0), Gamma: dvfsmodel.Watt(gamma), C: dvfsmodel.Watt(power - p0 - gamma),
			D: 1.66 + 5.95*rng.Float64(), Delta: 0.07 + 0.84*rng.Float64(), T0: 0.1 + 0.85*rng.Float64(),
		}
	}
	responses := make([]dvfsmodel.Continuous, n)
	options := make([]planner.Option, n)
	p := &planner.Problem{
		Tasks: make([]planner.Task, n), Cluster: planner.Cluster{
			Name: "paper", Slot: 1, Classes: []planner.NodeClass{
				{Name: "pair", Model: "paper", GPUs: 4, IdleW: 37, TurnOn: 90},
			},
		},
	}
	for i := range p.Tasks {
		params := library[rng.IntN(shapes)]
		if shapes == n {
			params = library[i]
		}
		params = params.Scale(float64(10 + rng.IntN(41)))
		responses[i] = dvfsmodel.Continuous{Params: params, Range: &r}
		options[i] = planner.Option{Model: "paper", GPUs: 1, Response: &responses[i]}
		deadline := params.Time(1, 1) / (0.001 + 0.999*rng.Float64())
		p.Tasks[i] = planner.Task{
			ID: strconv.Itoa(i), Deadline: deadline, Due: deadline, Limit: math.Inf(1), Share: 1,
			Options: options[i : i+1],
		}
	}
	return p
}

// BenchmarkEDLOffline times planning alone: the problem is in memory, and
// neither check nor the bound is computed.
func BenchmarkEDLOffline(b *testing.B) {
	run := func(b *testing.B, p *planner.Problem, theta float64) {
		b.Helper()
		pol, err := policy.Parse(fmt.Sprintf("edl:%g", theta), policy.DefaultParams())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := planner.Solve(context.Background(), p, pol, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.Tasks)), "ns/job")
	}
	for _, theta := range []float64{1, 0.9} {
		b.Run(fmt.Sprintf("off_u1.0/theta=%g", theta), func(b *testing.B) {
			run(b, paperProblem(b, "off_u1.0", "wide", 1, planner.StartContinuous), theta)
		})
		b.Run(fmt.Sprintf("distinct2048/theta=%g", theta), func(b *testing.B) {
			run(b, randomProblem(2048, 0), theta)
		})
	}
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) { run(b, randomProblem(n, 0), 1) })
	}
}
