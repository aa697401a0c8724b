package replay

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
)

func second(n int) time.Time { return time.Unix(int64(n), 0).UTC() }

func TestPeaksAreTheMostGPUsInUseAtAnySecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uses := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gpuUse {
			from := rapid.IntRange(0, 20).Draw(t, "from")
			return gpuUse{
				From: second(from), To: second(from + rapid.IntRange(0, 8).Draw(t, "for")),
				GPUs:  rapid.IntRange(1, 9).Draw(t, "gpus"),
				Model: rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "model"),
			}
		}), 0, 20).Draw(t, "uses")
		want := make(map[string]peak)
		for at := range 30 {
			now := make(map[string]int)
			for _, u := range uses {
				if !second(at).Before(u.From) && second(at).Before(u.To) {
					now[""] += u.GPUs
					if u.Model != "" {
						now[u.Model] += u.GPUs
					}
				}
			}
			for model, gpus := range now {
				if gpus > want[model].GPUs {
					want[model] = peak{GPUs: gpus, At: second(at)}
				}
			}
		}
		if got := peaks(uses); !maps.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

func TestPeaksAreHeldAgainstTheScaledCluster(t *testing.T) {
	cluster := planner.Cluster{Classes: []planner.NodeClass{
		{Model: "A", Count: 3, GPUs: 4}, {Model: "B", Count: 1, GPUs: 8},
	}}
	uses := []gpuUse{
		{From: second(0), To: second(9), GPUs: 20, Model: "A"},
		{From: second(1), To: second(2), GPUs: 4, Model: "B"},
	}
	peaks := peakUses(uses, &cluster)
	want := []peakUse{
		{Model: "", Log: 24, Cluster: 20, At: second(1)},
		{Model: "A", Log: 20, Cluster: 12, At: second(0)},
		{Model: "B", Log: 4, Cluster: 8, At: second(1)},
	}
	if !slices.Equal(peaks, want) || !slices.Equal(peaksBeyondCluster(peaks), want[:2]) {
		t.Errorf("%+v, beyond %+v, want %+v", peaks, peaksBeyondCluster(peaks), want)
	}
	larger := scaledCluster(cluster, 5./3)
	if larger.Classes[0].Count != 5 || larger.Classes[1].Count != 2 || cluster.Classes[0].Count != 3 {
		t.Errorf("scaled %+v, and %+v before", larger.Classes, cluster.Classes)
	}
	if over := peaksBeyondCluster(peakUses(uses, &larger)); len(over) > 0 {
		t.Errorf("beyond %+v", over)
	}
	cluster.Classes[1].Count = 0
	if peaks := peakUses(uses, &cluster); len(peaks) > 0 {
		t.Errorf("%+v on as many nodes as wanted", peaks)
	}
}
