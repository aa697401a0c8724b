package score_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/testkit/cputime"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// ourRules returns the rules beyond the paper's.
func ourRules(m fleet.Workload) map[string]func() score.Rule {
	return map[string]func() score.Rule{
		"AddedCost": func() score.Rule {
			return score.Rule{
				Parts: []score.WeightedScorer{{Scorer: score.NewAddedCost(m, score.DefaultPrices()), Weight: 1}},
			}
		},
		"Potential": func() score.Rule {
			return score.Rule{
				Parts: []score.WeightedScorer{{
					Scorer: score.NewPotential(m, score.DefaultRoom), Weight: 1,
				}},
			}
		},
		"ExpectedPWR+FGD": func() score.Rule {
			return score.Rule{Parts: []score.WeightedScorer{
				{Scorer: score.NewExpectedPWR(m), Weight: 100}, {Scorer: score.NewFGD(m), Weight: 900},
			}}
		},
		"ExpectedPWR": func() score.Rule {
			return score.Rule{Parts: []score.WeightedScorer{{Scorer: score.NewExpectedPWR(m), Weight: 1}}}
		},
		"Auto": func() score.Rule {
			return score.Rule{
				Parts: []score.WeightedScorer{
					{Scorer: score.PWR{}, Weight: 500}, {Scorer: score.NewFGD(m), Weight: 500},
				},
				Weigh: score.NewAutoAlpha(m),
			}
		},
	}
}

// BenchmarkDefaultRun is a whole inflation of the default trace: 10,866
// arrivals on 1,213 nodes.
func BenchmarkDefaultRun(b *testing.B) {
	o := loadOpenb(b, "default")
	m := o.workload()
	rules := paperRules(m)
	maps.Copy(rules, ourRules(m))
	for _, name := range []string{
		"PWR100_FGD900", "PWR", "FGD", "BestFit", "GpuClustering", "Auto", "AddedCost",
		"ExpectedPWR", "Potential",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cputime.Used(b)
			for b.Loop() {
				o.inflate(b, score.NewIndex(rules[name](), fleet.NewState(o.kinds)))
			}
			b.ReportMetric((cputime.Used(b)-start).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
	b.Run("Random", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			o.inflate(b, score.NewRandom(fleet.NewState(o.kinds), 42))
		}
	})
}

// inflate places all arrivals.
func (o *openb) inflate(tb testing.TB, c score.Chooser) {
	tb.Helper()
	for i := range o.arrivals {
		d := &o.arrivals[i]
		if n, set, ok := c.Choose(d); ok {
			if err := c.Place(n, d, set); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// town is a made-up cluster with a mix of kinds and demands like that of the
// openb trace, in which tasks come and go.
type town struct {
	c       score.Chooser
	rng     *rand.Rand
	demands []fleet.Demand
	running []stay
}

// stay is a task where it runs.
type stay struct {
	d    *fleet.Demand
	node int
	gpus planner.GPUSet
}

// townKinds are kinds of nodes and how many of 100 nodes are of each.
func townKinds() (kinds []*fleet.Kind, parts []int) {
	add := func(part int, k *fleet.Kind) {
		kinds, parts = append(kinds, k), append(parts, part)
	}
	add(45, kindOf("G2", 96_000, 400_000, 8))
	add(30, kindOf("T4", 104_000, 500_000, 2))
	add(9, kindOf("P100", 16_000, 120_000, 2))
	add(5, kindOf("G3", 128_000, 800_000, 8))
	add(4, kindOf("V100M16", 32_000, 130_000, 4))
	add(3, kindOf("V100M32", 96_000, 800_000, 8))
	add(2, kindOf("T4", 96_000, 400_000, 4))
	add(2, kindOf("V100M16", 8_000, 32_000, 1))
	return kinds, parts
}

// townDemands are kinds of tasks: mostly parts of a GPU and single ones, in
// many sizes.
func townDemands(rng *rand.Rand) []fleet.Demand {
	demands := make([]fleet.Demand, 90)
	for i := range demands {
		d := fleet.Demand{CPU: 1000 * (1 + rng.Int64N(16)), Mem: 1024 * (2 + rng.Int64N(60))}
		switch x := rng.IntN(100); {
		case x < 15: // on CPUs alone
		case x < 55:
			d.GPUs, d.Milli = 1, 10*(5+rng.IntN(90))
		case x < 90:
			d.GPUs, d.Milli = 1, fleet.WholeGPU
		default:
			d.GPUs, d.Milli = 2<<rng.IntN(3), fleet.WholeGPU
			d.CPU *= int64(d.GPUs)
		}
		if x := rng.IntN(20); x == 0 && d.GPUs > 0 {
			d.Spec = "V100M16|V100M32"
		}
		demands[i] = d
	}
	return demands
}

// newTown fills a cluster of so many nodes to a part of its GPU capacity.
func newTown(
	tb testing.TB, nodes int, full float64, choose func(fleet.Workload, *fleet.State) score.Chooser,
) *town {
	tb.Helper()
	w := &town{rng: rand.New(rand.NewPCG(1, uint64(nodes)))}
	kinds, parts := townKinds()
	all := make([]*fleet.Kind, 0, nodes)
	for i := range nodes {
		at := i * 37 % 100
		k := 0
		for ; at >= parts[k]; k++ {
			at -= parts[k]
		}
		all = append(all, kinds[k])
	}
	w.demands = townDemands(w.rng)
	sample := make([]fleet.Demand, 5000)
	for i := range sample {
		sample[i] = *w.draw()
	}
	w.c = choose(fleet.NewWorkload(sample, fleet.PaperCover), fleet.NewState(all))
	for s := w.c.State(); float64(s.Allocated()) < full*float64(s.Capacity()); {
		w.arrive(tb)
	}
	return w
}

// draw prefers some demands to others.
func (w *town) draw() *fleet.Demand {
	return &w.demands[w.rng.IntN(1+w.rng.IntN(len(w.demands)))]
}

func (w *town) arrive(tb testing.TB) {
	tb.Helper()
	d := w.draw()
	node, gpus, ok := w.c.Choose(d)
	if !ok {
		return
	}
	if err := w.c.Place(node, d, gpus); err != nil {
		tb.Fatal(err)
	}
	w.running = append(w.running, stay{d, node, gpus})
}

// depart ends a task, one of any.
func (w *town) depart() {
	i := w.rng.IntN(len(w.running))
	last := len(w.running) - 1
	gone := w.running[i]
	w.running[i] = w.running[last]
	w.running = w.running[:last]
	w.c.Release(gone.node, gone.d, gone.gpus)
}

// BenchmarkDecision is one decision and placement in a cluster kept at 60 % of
// its GPU capacity, and the departure that makes room for it.
func BenchmarkDecision(b *testing.B) {
	for _, rule := range []string{"PWR100_FGD900", "FGD", "AddedCost", "Potential"} {
		for _, nodes := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", rule, nodes), func(b *testing.B) {
				w := newTown(b, nodes, 0.6, func(m fleet.Workload, s *fleet.State) score.Chooser {
					rules := paperRules(m)
					if rules[rule] == nil {
						rules = ourRules(m)
					}
					return score.NewIndex(rules[rule](), s)
				})
				w.turn(b, 5000)
				b.ReportAllocs()
				start := cputime.Used(b)
				for b.Loop() {
					w.turn(b, 1)
				}
				b.ReportMetric((cputime.Used(b)-start).Seconds()*1e6/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// turn replaces tasks.
func (w *town) turn(tb testing.TB, tasks int) {
	tb.Helper()
	for range tasks {
		w.depart()
		w.arrive(tb)
	}
}
