package score_test

import (
	"cmp"
	"testing"

	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// Two kinds of nodes of which the first draws less: with a weight on it the
// second one is taken. A weight on all changes nothing, whatever it is.
func TestScorersByPowerCompareWeightedWatts(t *testing.T) {
	d := fleet.Demand{CPU: 1000, GPUs: 1, Milli: fleet.WholeGPU}
	shared := fleet.Demand{CPU: 1000, GPUs: 1, Milli: 300}
	m := fleet.Workload{{Demand: d, P: 0.5}, {Demand: shared, P: 0.5}}
	for name, scorer := range map[string]func() score.Scorer{
		"pwr":    func() score.Scorer { return score.PWR{} },
		"epwr":   func() score.Scorer { return score.NewExpectedPWR(m) },
		"priced": func() score.Scorer { return score.NewAddedCost(m, score.Prices{CPUsPerGPU: 1}) },
		"potential": func() score.Scorer {
			return score.NewPotential(m, score.DefaultRoom)
		},
	} {
		for _, weights := range [][2]float64{{0, 0}, {1, 1}, {3, 3}, {1.4, 1}, {1.6, 1}, {0, 0.5}, {1, 0.8}} {
			kinds := make([]*fleet.Kind, 2)
			for i := range kinds {
				kinds[i] = &fleet.Kind{Model: "m", CPU: 32_000, Mem: 1000, GPUs: 2, Power: fleet.Power{
					GPUIdle: 10, GPUBusy: 110, CPUIdle: 10, CPUBusy: 60, Cores: 16, Threads: 2,
					Weight: weights[i],
				}}
			}
			kinds[1].Power.GPUBusy, kinds[1].Power.CPUBusy = 160, 85 // half as much again
			want := 0
			if 1.5*cmp.Or(weights[1], 1) < cmp.Or(weights[0], 1) {
				want = 1
			}
			for _, task := range []fleet.Demand{d, shared} {
				c := score.NewIndex(score.Rule{Parts: []score.WeightedScorer{{Scorer: scorer(), Weight: 1}}},
					fleet.NewState(kinds))
				if node, _, ok := c.Choose(&task); !ok || node != want {
					t.Errorf("%s, weights %v, %d milli-GPU: node %d, want %d", name, weights,
						task.Milli, node, want)
				}
			}
		}
	}
}
