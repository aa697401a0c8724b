package score_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

func watt(w float64) dvfsmodel.Watt { return dvfsmodel.Watt(w) }

// paperRules returns the rules of the reference curves by their names there.
func paperRules(m fleet.Workload) map[string]func() score.Rule {
	one := func(s func() score.Scorer) func() score.Rule {
		return func() score.Rule {
			return score.Rule{Parts: []score.WeightedScorer{{Scorer: s(), Weight: 1000}}}
		}
	}
	blend := func(pwr float64) func() score.Rule {
		return func() score.Rule {
			return score.Rule{Parts: []score.WeightedScorer{
				{Scorer: score.PWR{}, Weight: pwr}, {Scorer: score.NewFGD(m), Weight: 1000 - pwr},
			}}
		}
	}
	return map[string]func() score.Rule{
		"PWR":           one(func() score.Scorer { return score.PWR{} }),
		"FGD":           one(func() score.Scorer { return score.NewFGD(m) }),
		"PWR50_FGD950":  blend(50),
		"PWR100_FGD900": blend(100),
		"PWR200_FGD800": blend(200),
		"BestFit":       one(func() score.Scorer { return score.BestFit{} }),
		"DotProd":       one(func() score.Scorer { return score.DotProd{} }),
		"GpuPacking":    one(func() score.Scorer { return score.GpuPacking{} }),
		"GpuClustering": one(func() score.Scorer { return score.GpuClustering{} }),
	}
}

func TestDecisionsAreTheReferencesArrivalByArrival(t *testing.T) {
	o := loadOpenb(t, "default")
	for _, name := range []string{"FGD", "PWR", "PWR100_FGD900"} {
		t.Run(name, func(t *testing.T) {
			c := score.NewIndex(paperRules(o.workload())[name](), fleet.NewState(o.kinds))
			rows := zippedRows(t, "openb/decisions/default_"+name+"_42.csv.gz")
			if len(rows) != len(o.arrivals) {
				t.Fatalf("%d decisions for %d arrivals", len(rows), len(o.arrivals))
			}
			for i, want := range rows {
				node, gpus := o.step(t, c, i)
				if node != want["node"] || gpus != want["gpus"] {
					t.Fatal(trouble(i, "%+v to %q on %q, want %q on %q", o.arrivals[i], node, gpus,
						want["node"], want["gpus"]))
				}
			}
		})
	}
}

// step places an arrival and names where.
func (o *openb) step(tb testing.TB, c score.Chooser, i int) (node, gpus string) {
	tb.Helper()
	n, set, ok := c.Choose(&o.arrivals[i])
	if !ok {
		return "", ""
	}
	if err := c.Place(n, &o.arrivals[i], set); err != nil {
		tb.Fatal(trouble(i, "%v", err))
	}
	return o.names[n], joined(set.Indexes())
}

func TestCurvesAreTheReferencesAtEveryPoint(t *testing.T) {
	for _, trace := range []string{"default", "gpushare40", "gpuspec10", "multigpu20"} {
		o := loadOpenb(t, trace)
		for name, rule := range paperRules(o.workload()) {
			t.Run(trace+"/"+name, func(t *testing.T) {
				checkCurve(t, o, score.NewIndex(rule(), fleet.NewState(o.kinds)),
					"openb/curves/"+trace+"_"+name+"_42.csv")
			})
		}
		t.Run(trace+"/Random", func(t *testing.T) {
			checkCurve(t, o, score.NewRandom(fleet.NewState(o.kinds), 42),
				"openb/curves/"+trace+"_Random_42.csv")
		})
	}
}

// checkCurve compares the state at each point of a reference curve.
func checkCurve(t *testing.T, o *openb, c score.Chooser, file string) {
	t.Helper()
	rows := shareddata.Rows(t, shareddata.Path(t, file))
	meter := fleet.NewFragmentation(o.workload())
	arrived, placed, asked := 0, 0, 0
	for _, row := range rows {
		for ; arrived < int(whole(t, row["arrived_pods"])); arrived++ {
			if node, _ := o.step(t, c, arrived); node != "" {
				placed++
			}
			asked += o.arrivals[arrived].GPUMilli()
		}
		got := c.State().Allocated()
		cpu, gpu := c.State().Power()
		ratio := 1.0
		if asked > 0 {
			ratio = float64(got) / float64(asked)
		}
		for _, cell := range []struct {
			column    string
			got, near float64
		}{
			{"placed_pods", float64(placed), 0},
			{"cpu_w", float64(cpu), 0},
			{"gpu_w", float64(gpu), 0},
			{"eopc_w", float64(cpu + gpu), 0},
			{"gpu_alloc_ratio", ratio, 1e-6},
			{"fragmented_gpu", c.State().FragmentedGPUs(meter), 1e-3},
		} {
			if want := shareddata.Number(t, row[cell.column]); !(math.Abs(cell.got-want) <= cell.near) {
				t.Fatalf("%s after %d arrivals: %v, want %v", cell.column, arrived, cell.got, want)
			}
		}
	}
}

func TestTargetWorkloadsAreTheReferencesToTheLastBit(t *testing.T) {
	for _, trace := range []string{"default", "gpushare40", "gpuspec10", "multigpu20"} {
		got := loadOpenb(t, trace).workload()
		rows := shareddata.Rows(t, shareddata.Path(t, "openb/target_workload_"+trace+".csv"))
		if len(got) != len(rows) {
			t.Fatalf("%s: %d kinds of task, want %d", trace, len(got), len(rows))
		}
		for i, row := range rows {
			row["memory_mib"] = "0"
			want := fleet.TaskClass{Demand: demandOf(t, row), P: shareddata.Number(t, row["probability"])}
			if got[i] != want {
				t.Errorf("%s: entry %d is %+v, want %+v", trace, i, got[i], want)
			}
		}
	}
}
