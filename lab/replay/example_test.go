package replay_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// Tasks drawn from a list fill a cluster by the mix of the PWR+FGD paper, until
// they have asked for all of its GPUs.
func ExampleInflate() {
	list := []fleet.Demand{
		{CPU: 4000, GPUs: 1, Milli: 500},
		{CPU: 8000, GPUs: 1, Milli: fleet.WholeGPU},
		{CPU: 16000, GPUs: 4, Milli: fleet.WholeGPU},
	}
	kind := &fleet.Kind{
		Model: "V100", CPU: 64000, GPUs: 4,
		Power: fleet.Power{GPUIdle: 30, GPUBusy: 300, CPUIdle: 50, CPUBusy: 150, Cores: 32, Threads: 2},
	}
	state := fleet.NewState([]*fleet.Kind{kind, kind})
	rows, err := replay.Draw(rand.New(rand.NewPCG(1, 1)), list, state.Capacity(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	target := fleet.NewWorkload(list, fleet.PaperCover)
	mix := score.Rule{Parts: []score.WeightedScorer{
		{Scorer: score.PWR{}, Weight: 0.2}, {Scorer: score.NewFGD(target), Weight: 0.8},
	}}
	tally, err := replay.Inflate(context.Background(), score.NewIndex(mix, state),
		replay.NewStream(list, rows))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d tasks, %d placed, %.0f %% of the GPUs that they asked for\n", tally.Arrived,
		tally.Placed(), 100*tally.AllocationRatio())
	// Output:
	// 4 tasks, 3 placed, 58 % of the GPUs that they asked for
}
