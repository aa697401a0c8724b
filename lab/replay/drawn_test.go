package replay_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
)

// A family drawn by a seed: the tasks and nodes of the default trace in other
// proportions.
type proportions struct {
	shared, multi float64 // parts of the GPUs asked for: by shares, by tasks of several GPUs
	cpuTasks      float64 // times as many tasks without GPUs
	cpus          float64 // times as many vCPU for each GPU
	named         float64 // part of the GPU tasks that name models, as those of gpuspec10 do
	nodes         bool    // other numbers of nodes of each GPU model
}

// flavours are families of proportions.
var flavours = map[string]func(rng *rand.Rand) proportions{
	"share": func(rng *rand.Rand) proportions {
		return proportions{shared: 0.5 + 0.4*rng.Float64(), multi: 0.07 * rng.Float64()}
	},
	"multi": func(rng *rand.Rand) proportions {
		return proportions{shared: 0.2, multi: 0.2 + 0.3*rng.Float64()}
	},
	"cpu": func(rng *rand.Rand) proportions {
		return proportions{shared: 0.285, multi: 0.07, cpuTasks: 1.3 + 0.7*rng.Float64()}
	},
	"ratio": func(rng *rand.Rand) proportions {
		return proportions{shared: 0.285, multi: 0.07, cpus: 0.7 + 0.4*rng.Float64()}
	},
	"named": func(rng *rand.Rand) proportions {
		return proportions{shared: 0.285, multi: 0.07, named: 0.15 + 0.3*rng.Float64()}
	},
	"nodes": func(*rand.Rand) proportions {
		return proportions{shared: 0.285, multi: 0.07, nodes: true}
	},
}

// drawFamily draws one of a flavour.
func drawFamily(t *testing.T, flavour string, seed uint64) *family {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	p := flavours[flavour](rng)
	f := &family{name: flavour}
	nodes := open(t, "openb_node_list_gpu_node.csv", trace.ReadNodes)
	kinds, err := trace.Kinds(nodes, flavour, config.BuiltinProfiles())
	if err != nil {
		t.Fatal(err)
	}
	f.kinds = kinds
	if p.nodes {
		f.kinds = otherNumbers(rng, kinds)
	}
	gpus := float64(fleet.NewState(f.kinds).Capacity()) / fleet.WholeGPU
	f.demands = p.demands(t, rng, 0.98*gpus)
	f.workload = fleet.NewWorkload(f.demands, fleet.PaperCover)
	return f
}

// otherNumbers draws nodes until they have as many GPUs, some models' more often than others'.
func otherNumbers(rng *rand.Rand, kinds []*fleet.Kind) []*fleet.Kind {
	models := []string{"T4", "P100", "V100M16", "V100M32", "A10", "G2", "G3"}
	often := make(map[string]float64)
	for _, m := range models {
		often[m] = math.Exp(1.2 * rng.NormFloat64())
	}
	var drawn []*fleet.Kind
	for want := fleet.NewState(kinds).Capacity(); want > 0; {
		if k := kinds[rng.IntN(len(kinds))]; 6*rng.Float64() < often[k.Model] {
			drawn = append(drawn, k)
			want -= int64(k.GPUs) * fleet.WholeGPU
		}
	}
	return drawn
}

// demands draws tasks from the default trace until they ask for so many GPUs.
func (p *proportions) demands(t *testing.T, rng *rand.Rand, gpus float64) []fleet.Demand {
	t.Helper()
	var pools [4][]fleet.Demand // without GPUs, shares, one GPU, several
	for _, pod := range open(t, "openb_pod_list_default.csv", trace.ReadPods) {
		d := pod.Demand
		switch {
		case d.IsShared():
			pools[1] = append(pools[1], d)
		default:
			pools[[]int{0, 2, 3}[min(2, d.GPUs)]] = append(pools[[]int{0, 2, 3}[min(2, d.GPUs)]], d)
		}
	}
	var drawn []fleet.Demand
	for pool, part := range []float64{0, p.shared, 1 - p.shared - p.multi, p.multi} {
		for left := part * gpus; left > 0; {
			d := pools[pool][rng.IntN(len(pools[pool]))]
			if p.cpus > 0 {
				d.CPU = int64(math.Round(float64(d.CPU)*p.cpus/100)) * 100
			}
			drawn = append(drawn, d)
			left -= float64(d.GPUMilli()) / fleet.WholeGPU
		}
	}
	p.name(t, rng, drawn)
	for range int(max(1, p.cpuTasks) * float64(len(pools[0]))) {
		drawn = append(drawn, pools[0][rng.IntN(len(pools[0]))])
	}
	return drawn
}

// name lets a part of the tasks name the models that tasks of gpuspec10 name.
func (p *proportions) name(t *testing.T, rng *rand.Rand, demands []fleet.Demand) {
	t.Helper()
	if p.named == 0 {
		return
	}
	var names []string
	for _, pod := range open(t, "openb_pod_list_gpuspec10.csv", trace.ReadPods) {
		if pod.Demand.Spec != "" {
			names = append(names, pod.Demand.Spec)
		}
	}
	for i := range demands {
		if demands[i].GPUs < 4 && rng.Float64() < p.named {
			demands[i].Spec = names[rng.IntN(len(names))]
		}
	}
}

// oversubscribed reports whether tasks that name a GPU model ask for more than
// there is of it, at a load of 1.
func (f *family) oversubscribed() bool {
	there, asked, all := make(map[string]float64), make(map[string]float64), 0.0
	for _, k := range f.kinds {
		there[k.Model] += float64(k.GPUs * fleet.WholeGPU)
	}
	for i := range f.demands {
		d := &f.demands[i]
		all += float64(d.GPUMilli())
		if _, one := there[d.Spec]; one {
			asked[d.Spec] += float64(d.GPUMilli())
		}
	}
	scale := float64(fleet.NewState(f.kinds).Capacity()) / all
	for model, milli := range asked {
		if milli*scale > there[model] {
			return true
		}
	}
	return false
}
