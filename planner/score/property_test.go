package score_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// drawDemand is any demand of sizes that often meet.
func drawDemand(t *rapid.T) fleet.Demand {
	d := fleet.Demand{
		CPU: 1000 * rapid.Int64Range(0, 12).Draw(t, "cpu"),
		Mem: rapid.SampledFrom([]int64{0, 10, 60}).Draw(t, "mem"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "gpus") {
	case 0:
		return d
	case 1:
		d.GPUs, d.Milli = rapid.IntRange(1, 4).Draw(t, "k"), fleet.WholeGPU
	default:
		d.GPUs, d.Milli = 1, rapid.SampledFrom([]int{1, 200, 250, 500, 750, 999}).Draw(t, "milli")
	}
	d.Spec = rapid.SampledFrom([]string{"", "", "", "T4", "G2|T4", "V100"}).Draw(t, "spec")
	return d
}

func drawDemands(t *rapid.T, most int) []fleet.Demand {
	return rapid.SliceOfN(rapid.Custom(drawDemand), 1, most).Draw(t, "demands")
}

// drawKinds returns the nodes of a cluster: of a few kinds.
func drawKinds(t *rapid.T) []*fleet.Kind {
	kinds := []*fleet.Kind{
		kindOf("G2", 96_000, 200, 8), kindOf("T4", 34_000, 100, 2), kindOf("P100", 16_000, 50, 2),
		kindOf("T4", 33_000, 500, 16), kindOf("G3", 8_000, 100, 1), kindOf("A10", 40_000, 100, 0),
	}
	kinds[3].Power.Literal = true
	kinds[4].Power.Cores = 0
	return rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 12).Draw(t, "nodes")
}

// scorers returns all there are.
func scorers(m fleet.Workload) []score.Scorer {
	return []score.Scorer{
		score.PWR{},
		score.NewFGD(m),
		score.BestFit{},
		score.DotProd{},
		score.GpuPacking{},
		score.GpuClustering{},
		score.NewExpectedPWR(m), score.NewAddedCost(m, score.DefaultPrices()), &tide{},
		score.NewPotential(m, score.DefaultRoom),
	}
}

// tide prefers nodes with much left or little left, by how much is allocated.
type tide struct {
	score.Absolute
	high bool
}

func (t *tide) Score(_ *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	if t.high {
		return float64(n.FreeMilli()), 0
	}
	return -float64(n.FreeMilli()), 0
}

func (t *tide) Update(s *fleet.State) bool {
	was := t.high
	t.high = s.Allocated()/2000%2 == 1
	return t.high != was
}

// drawRule gives three equal rules, as a rule belongs to one chooser.
func drawRule(t *rapid.T, m fleet.Workload) [3]score.Rule {
	var rules [3]score.Rule
	all := [3][]score.Scorer{scorers(m), scorers(m), scorers(m)}
	picked := rapid.SliceOfNDistinct(rapid.IntRange(0, len(all[0])-1), 1, 4, rapid.ID[int]).Draw(t, "scorers")
	for _, i := range picked {
		weight := rapid.SampledFrom([]float64{1, 50, 100, 500, 900, 1000}).Draw(t, "weight")
		for r := range rules {
			rules[r].Parts = append(rules[r].Parts, score.WeightedScorer{Scorer: all[r][i], Weight: weight})
		}
	}
	if len(picked) == 2 && rapid.Bool().Draw(t, "auto") {
		for r := range rules {
			rules[r].Weigh = score.NewAutoAlpha(m)
		}
	}
	return rules
}

func TestIndexChoosesWhatThePlainScanChooses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := drawKinds(t)
		demands := drawDemands(t, 10)
		rules := drawRule(t, fleet.NewWorkload(demands, fleet.PaperCover))
		live(t, demands, score.NewFullScan(rules[0], fleet.NewState(kinds)),
			score.NewIndex(rules[1], fleet.NewState(kinds)), score.NewForgetfulIndex(rules[2],
				fleet.NewState(kinds)))
	})
}

func TestRandomDrawsWhatThePlainScanDraws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := drawKinds(t)
		seed := rapid.Uint64().Draw(t, "seed")
		live(t, drawDemands(t, 10), score.NewFullScanRandom(fleet.NewState(kinds), seed),
			score.NewRandom(fleet.NewState(kinds), seed))
	})
}

// resident is a task where it runs.
type resident struct {
	d    fleet.Demand
	node int
	gpus planner.GPUSet
}

// live lets tasks come and go and nodes sleep, and fails when the choosers part
// or their state isn't one built from what is left.
func live(t *rapid.T, demands []fleet.Demand, choosers ...score.Chooser) {
	var running []resident
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		switch what := rapid.IntRange(0, 9).Draw(t, "event"); {
		case what < 6:
			d := rapid.SampledFrom(demands).Draw(t, "demand")
			if r, ok := choose(t, &d, choosers); ok {
				running = append(running, r)
			}
		case what < 9 && len(running) > 0:
			i := rapid.IntRange(0, len(running)-1).Draw(t, "ends")
			for _, c := range choosers {
				c.Release(running[i].node, &running[i].d, running[i].gpus)
			}
			running = append(running[:i:i], running[i+1:]...)
		default:
			toggle(rapid.IntRange(0, choosers[0].State().Len()-1).Draw(t, "node"), choosers)
		}
	}
	for _, c := range choosers {
		if want := rebuilt(t, c.State(), running); !reflect.DeepEqual(c.State(), want) {
			t.Fatalf("state %+v, built anew %+v", c.State(), want)
		}
	}
}

// choose asks all choosers and places where they agree.
func choose(t *rapid.T, d *fleet.Demand, choosers []score.Chooser) (resident, bool) {
	node, gpus, ok := choosers[0].Choose(d)
	for _, c := range choosers[1:] {
		otherNode, otherGPUs, otherOK := c.Choose(d)
		if otherNode != node || otherGPUs != gpus || otherOK != ok {
			t.Fatalf("%+v: %T chooses node %d, GPUs %v (%v), %T node %d, GPUs %v (%v)", *d,
				choosers[0], node, gpus.Indexes(), ok, c, otherNode, otherGPUs.Indexes(), otherOK)
		}
	}
	if !ok {
		return resident{}, false
	}
	for _, c := range choosers {
		if err := c.Place(node, d, gpus); err != nil {
			t.Fatal(err)
		}
	}
	return resident{*d, node, gpus}, true
}

// toggle puts a node to sleep or wakes it.
func toggle(node int, choosers []score.Chooser) {
	for _, c := range choosers {
		if c.State().Node(node).Asleep {
			c.Wake(node)
		} else {
			c.Sleep(node)
		}
	}
}

// rebuilt returns a fresh state with the tasks that are left, and the same nodes
// asleep.
func rebuilt(t *rapid.T, s *fleet.State, running []resident) *fleet.State {
	kinds := make([]*fleet.Kind, s.Len())
	for i := range kinds {
		kinds[i] = s.Node(i).Kind
	}
	fresh := fleet.NewState(kinds)
	for _, r := range running {
		if err := fresh.Place(r.node, &r.d, r.gpus); err != nil {
			t.Fatal(err)
		}
	}
	for i := range kinds {
		if s.Node(i).Asleep {
			fresh.Sleep(i)
		}
	}
	return fresh
}

func TestTheFastMeterOfFragmentationAgreesToTheLastBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := fleet.NewWorkload(drawDemands(t, 40), 1)
		plain, meter := fleet.NewFragmentation(m), fleet.NewFragmentationMeter(m)
		for range 20 {
			n := fleet.NewNode(drawKinds(t)[0])
			n.CPU = rapid.Int64Range(0, n.Kind.CPU).Draw(t, "left")
			for g := range n.Kind.GPUs {
				n.GPU[g] = rapid.SampledFrom([]uint16{0, 1, 199, 200, 250, 501, 750, 1000}).Draw(t, "share")
			}
			if got, want := meter.OfNode(&n), plain.OfNode(&n); got != want {
				t.Fatalf("%+v: %v, plainly %v", n, got, want)
			}
		}
	})
}

func ExampleSplitMix() {
	draw := score.SplitMix(0)
	fmt.Printf("%#x %#x\n", draw.Next(), draw.Next())
	// Output: 0xe220a8397b1dcdaf 0x6e789e6aa1b965f4
}
