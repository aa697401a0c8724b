package pick_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner/pick"
)

// Jobs of few sizes and times, so that many are alike, on several nodes of two classes, some of them over two
// nodes: EASY by lines of like jobs starts what a look at all that wait would.
func TestEasyStartsWhatALookAtAllThatWaitWould(t *testing.T) {
	behind := 0
	rapid.Check(t, func(t *rapid.T) {
		bids := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) bid {
			seconds := rapid.SampledFrom([]float64{10, 20, 50, 300})
			return bid{
				at:      float64(rapid.IntRange(0, 8).Draw(t, "at") * 10),
				gpus:    rapid.IntRange(1, 4).Draw(t, "gpus"),
				seconds: [2]float64{seconds.Draw(t, "on A"), seconds.Draw(t, "on B")}, kWh: [2]float64{1, 1},
			}
		}), 8, 40).Draw(t, "jobs")
		p := pools(4, 2, bids...)
		for class := range p.Cluster.Classes {
			p.Cluster.Classes[class].Count = rapid.IntRange(1, 3).Draw(t, "nodes")
		}
		for i := range p.Tasks {
			for o := range p.Tasks[i].Options {
				if n := p.Tasks[i].Options[o].GPUs; n%2 == 0 && rapid.Bool().Draw(t, "over two nodes") {
					p.Tasks[i].Options[o].Nodes = 2
				}
			}
		}
		spread := rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "spread")
		fast := schedule(t, p, nil, pick.Easy{Spread: spread}.New)
		plain := schedule(t, p, nil, pick.PlainEasy{Spread: spread}.New)
		if !reflect.DeepEqual(fast.Assignments, plain.Assignments) ||
			!reflect.DeepEqual(fast.Unplaced, plain.Unplaced) {
			t.Fatalf("%+v, by a look at all %+v", fast.Assignments, plain.Assignments)
		}
		for i := range fast.Assignments {
			if a := &fast.Assignments[i]; a.Node >= 0 && a.Start > p.Tasks[i].Arrival {
				behind++
			}
		}
	})
	if behind < 100 {
		t.Errorf("%d jobs waited: too few to tell", behind)
	}
}
