package score_test

import (
	"testing"

	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

func TestIndexAndPlainScanAgreeOverThousandsOfTurns(t *testing.T) {
	for _, name := range []string{
		"PWR100_FGD900", "BestFit", "GpuClustering", "AddedCost", "ExpectedPWR+FGD",
		"Potential",
	} {
		rule := func(m fleet.Workload) score.Rule {
			rules := paperRules(m)
			if rules[name] == nil {
				rules = ourRules(m)
			}
			return rules[name]()
		}
		fast := newTown(t, 25, 0.7, func(m fleet.Workload, s *fleet.State) score.Chooser {
			return score.NewIndex(rule(m), s)
		})
		plain := newTown(t, 25, 0.7, func(m fleet.Workload, s *fleet.State) score.Chooser {
			return score.NewFullScan(rule(m), s)
		})
		for turn := range 4000 {
			fast.turn(t, 1)
			plain.turn(t, 1)
			a, b := fast.running, plain.running
			if len(a) != len(b) || a[len(a)-1].node != b[len(b)-1].node ||
				a[len(a)-1].gpus != b[len(b)-1].gpus {
				t.Fatalf("%s: turn %d: %d tasks, the last %+v; plainly %d, %+v", name, turn, len(a),
					a[len(a)-1], len(b), b[len(b)-1])
			}
		}
	}
}

func TestNodesThatDifferOnlyInTheirTasksKindsAreToldApart(t *testing.T) {
	pair := fleet.Demand{GPUs: 2, Milli: fleet.WholeGPU}
	single := fleet.Demand{GPUs: 1, Milli: fleet.WholeGPU}
	k := kindOf("G2", 96_000, 400_000, 8)
	c := score.NewIndex(score.Rule{Parts: []score.WeightedScorer{{Scorer: score.GpuClustering{}, Weight: 1}}},
		fleet.NewState([]*fleet.Kind{k, k, k}))
	place := func(node int, d fleet.Demand, gpu int) {
		t.Helper()
		if err := c.Place(node, &d, (1<<d.GPUs-1)<<gpu); err != nil {
			t.Fatal(err)
		}
	}
	place(1, single, 0)
	place(1, single, 1)
	place(2, pair, 0)
	for _, want := range []struct {
		d    fleet.Demand
		node int
	}{{single, 1}, {pair, 2}} {
		if node, _, _ := c.Choose(&want.d); node != want.node {
			t.Errorf("%d GPUs: node %d, want %d", want.d.GPUs, node, want.node)
		}
	}
}
