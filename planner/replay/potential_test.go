package replay_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/trace"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/replay"
)

// What a placement is judged by: savings against FGD at these loads, and GRAR
// at the last one.
var judgedLoads = []float64{0.2, 0.4, 0.6, 0.8, 0.9, 1}

// goals are the savings that potential is to reach on the default trace, in
// per cent, and its GRAR.
var goals = []float64{16, 15, 13.5, 13.5, 6.5, 0.956}

// verdict is savings against FGD, in per cent, at all judged loads but the last,
// and GRAR at that.
type verdict [6]float64

// rivals are the paper's policies that save power.
var rivals = []string{"pwr", "pwr+fgd:0.05", "pwr+fgd:0.1", "pwr+fgd:0.2"}

func TestPotentialIsAheadOfThePaperInPowerAndInAllocation(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			means := ownMeans(t, name)
			want := means["fgd"]
			for _, rival := range rivals {
				for i := range judgedLoads[:5] {
					want[i] = max(want[i], means[rival][i])
				}
			}
			if name == "default" {
				want = verdict(goals)
			}
			t.Log(table(means))
			for i, load := range judgedLoads {
				if got := means["potential"][i]; !(got > want[i]) {
					t.Errorf("at load %v: %.4f, want above %.4f", load, got, want[i])
				}
			}
		})
	}
}

func table(means map[string]verdict) string {
	var b strings.Builder
	for _, name := range append([]string{"potential", "fgd"}, rivals...) {
		fmt.Fprintf(&b, "\n%-14s %.4f", name, means[name])
	}
	return b.String()
}

// ownMeans are the means over ten streams of our own, by policy.
func ownMeans(t *testing.T, name string) map[string]verdict {
	t.Helper()
	f := readFamily(t, name)
	list := open(t, "openb_node_list_gpu_node.csv", trace.ReadNodes)
	var err error
	if f.kinds, err = trace.Kinds(list, name, config.BuiltinProfiles()); err != nil {
		t.Fatal(err)
	}
	means := make(map[string]verdict)
	for seed := uint64(1); seed <= seeds; seed++ {
		kinds, stream := f.ownStream(t, seed)
		base := f.inflate(t, "fgd", kinds, stream, judgedLoads, seed)
		for _, p := range append([]string{"fgd", "potential"}, rivals...) {
			run := base
			if p != "fgd" {
				run = f.inflate(t, p, kinds, stream, judgedLoads, seed)
			}
			v := means[p]
			for i := range judgedLoads[:5] {
				v[i] += 100 * (1 - float64(run.readings[i].Power/base.readings[i].Power)) / seeds
			}
			v[5] += run.readings[5].Ratio / seeds
			means[p] = v
		}
	}
	return means
}

// ownStream draws a stream and an order of the nodes by a generator that isn't
// the paper's.
func (f *family) ownStream(t *testing.T, seed uint64) ([]*fleet.Kind, *replay.Stream) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 0))
	rows, err := replay.Draw(dice, f.demands, fleet.NewState(f.kinds).Capacity(), replay.PaperLoad)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make([]*fleet.Kind, len(f.kinds))
	for rank, node := range dice.Perm(len(kinds)) {
		kinds[rank] = f.kinds[node]
	}
	return kinds, replay.NewStream(f.demands, rows)
}
