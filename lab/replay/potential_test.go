package replay_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
)

// What a placement is judged by: EOPC at these loads, and GRAR at the last one.
var judgedLoads = []float64{0.2, 0.4, 0.6, 0.8, 1}

// verdict is a policy's means over streams: what it saves against FGD in
// per cent, of EOPC and of EOPC by allocated GPU, and GRAR, at the judged loads.
type verdict struct{ saved, byGPU, grar [5]float64 }

// rivals are the paper's policies that save power.
var rivals = []string{"pwr", "pwr+fgd:0.05", "pwr+fgd:0.1", "pwr+fgd:0.2", "pwr+fgd:auto"}

// How far potential may be behind: in points of the saving behind the best rival
// that serves as much, and in GRAR behind FGD. Where a GPU model is asked for by
// more tasks than it can take, policies serve different parts of them: there EOPC
// by allocated GPU is compared with PWR's.
const (
	behindBest   = 0.2
	behindFGD    = 0.002
	behindEarly  = 1.5 // points, at the first load
	asMuchServed = 0.0005
)

func TestPotentialKeepsUpWithThePaperOnItsTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := readFamily(t, name)
			list := open(t, "openb_node_list_gpu_node.csv", trace.ReadNodes)
			var err error
			if f.kinds, err = trace.Kinds(list, name, config.BuiltinProfiles()); err != nil {
				t.Fatal(err)
			}
			f.judge(t, seeds)
		})
	}
}

func TestPotentialKeepsUpOnFamiliesThatNobodyChose(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	const each = 3
	for _, flavour := range slices.Sorted(maps.Keys(flavours)) {
		for seed := range uint64(each) {
			t.Run(fmt.Sprint(flavour, seed), func(t *testing.T) {
				t.Parallel()
				f := drawFamily(t, flavour, seed)
				f.judge(t, 3)
			})
		}
	}
}

// judge compares the potential with the paper's policies.
func (f *family) judge(t *testing.T, streams uint64) {
	t.Helper()
	means := f.ownMeans(t, streams)
	t.Log(table(means))
	got, pwr := means["potential"], means["pwr"]
	if want := means["fgd"].grar[4] - behindFGD; !(got.grar[4] >= want) {
		t.Errorf("GRAR %.4f at load 1, want %.4f", got.grar[4], want)
	}
	for i, load := range judgedLoads[:4] {
		if f.oversubscribed() {
			want := pwr.byGPU[i]
			if i == 0 {
				want -= behindEarly
			}
			if !(got.byGPU[i] >= want) {
				t.Errorf("at load %v: saves %.2f %% by allocated GPU, want %.2f", load, got.byGPU[i], want)
			}
			continue
		}
		if best := bestAsServing(means, i); got.saved[i] < best-behindBest {
			t.Errorf("at load %v: saves %.2f %%, want %.2f less %v", load, got.saved[i], best, behindBest)
		}
	}
}

// On nodes that large tasks without GPUs fill, potential refuses no more than FGD, in GPUs and in vCPU.
func TestPotentialServesWhatFGDServesWhereCPUTasksFillTheNodes(t *testing.T) {
	loads := []float64{0.6, 0.8, 0.9}
	for _, cores := range []int64{64, 96, 128} {
		for seed := range uint64(4) {
			f := recommenders(rand.New(rand.NewPCG(seed, uint64(cores))), cores*1000)
			kinds, stream := f.ownStream(t, seed)
			fgd := f.inflate(t, "fgd", kinds, stream, loads, seed)
			got := f.inflate(t, "potential", kinds, stream, loads, seed)
			for i, load := range loads {
				theirs, ours := fgd.readings[i].Refused, got.readings[i].Refused
				if ours.CPU > theirs.CPU || ours.GPU > theirs.GPU {
					t.Errorf("%d vCPU a node, seed %d, load %v: refuses %+v, fgd %+v", cores, seed, load, ours, theirs)
				}
			}
		}
	}
}

// recommenders draws a cluster with twenty nodes with eight GPUs, and as many without as its tasks
// need: of one GPU with few vCPU, and without GPUs for a half to three quarters of a node.
func recommenders(rng *rand.Rand, cpu int64) *family {
	f := &family{name: "recommenders"}
	power := fleet.Power{CPUIdle: 15, CPUBusy: 120, Cores: 16, Threads: 2, GPUIdle: 30, GPUBusy: 150}
	withGPUs := &fleet.Kind{Model: "A10", CPU: cpu, Mem: 1 << 20, GPUs: 8, Power: power}
	without := &fleet.Kind{CPU: cpu, Mem: 1 << 20, Power: power}
	for range 20 {
		f.kinds = append(f.kinds, withGPUs)
	}
	for range 160 {
		d := fleet.Demand{CPU: cpu / 128 * (8 + 4*rng.Int64N(2)), GPUs: 1, Milli: fleet.WholeGPU}
		f.demands = append(f.demands, d)
	}
	halves, others := 0, 0
	for range 300 {
		part := max(0, rng.Int64N(7)-3)
		f.demands = append(f.demands, fleet.Demand{CPU: cpu / 16 * (8 + part)})
		if part == 0 {
			halves++
		} else {
			others++
		}
	}
	for range others + halves/2 - 10 {
		f.kinds = append(f.kinds, without)
	}
	f.workload = fleet.NewWorkload(f.demands, fleet.PaperCover)
	return f
}

// bestAsServing returns the most that a rival saves at a load which serves as much as
// anybody does; nothing where potential itself serves less than others.
func bestAsServing(means map[string]verdict, load int) float64 {
	most := 0.0
	for _, v := range means {
		most = max(most, v.grar[load])
	}
	best := math.Inf(-1)
	if means["potential"].grar[load] < most-asMuchServed {
		return best
	}
	for _, name := range rivals {
		if v := means[name]; v.grar[load] >= most-asMuchServed {
			best = max(best, v.saved[load])
		}
	}
	return best
}

func table(means map[string]verdict) string {
	var b strings.Builder
	for _, name := range append([]string{"potential", "fgd"}, rivals...) {
		v := means[name]
		fmt.Fprintf(&b, "\n%-14s %6.2f  by GPU %6.2f  GRAR %.4f", name, v.saved[:4], v.byGPU[:4], v.grar)
	}
	return b.String()
}

// ownMeans returns the means over streams of our own, by policy.
func (f *family) ownMeans(t *testing.T, streams uint64) map[string]verdict {
	t.Helper()
	means := make(map[string]verdict)
	for seed := uint64(1); seed <= streams; seed++ {
		kinds, stream := f.ownStream(t, seed)
		base := f.inflate(t, "fgd", kinds, stream, judgedLoads, seed)
		for _, p := range append([]string{"fgd", "potential"}, rivals...) {
			run := base
			if p != "fgd" {
				run = f.inflate(t, p, kinds, stream, judgedLoads, seed)
			}
			v := means[p]
			for i := range judgedLoads {
				r, b := &run.readings[i], &base.readings[i]
				power := float64(r.Power / b.Power)
				v.saved[i] += 100 * (1 - power) / float64(streams)
				v.byGPU[i] += 100 * (1 - power*b.Ratio/r.Ratio) / float64(streams)
				v.grar[i] += r.Ratio / float64(streams)
			}
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
