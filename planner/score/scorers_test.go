package score_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// used returns a G2 node (96 vCPU, 8 GPUs) on which tasks run: 40 vCPU and shares of
// GPUs 0 to 3 are taken, GPUs 4 to 7 are idle.
func used() *fleet.Node {
	n := fleet.NewNode(kindOf("G2", 96_000, 400_000, 8))
	for _, r := range []resident{
		{d: fleet.Demand{CPU: 10_000, GPUs: 1, Milli: 1000}, gpus: 1 << 0},
		{d: fleet.Demand{CPU: 10_000, GPUs: 1, Milli: 400}, gpus: 1 << 1},
		{d: fleet.Demand{CPU: 10_000, GPUs: 1, Milli: 600}, gpus: 1 << 2},
		{d: fleet.Demand{CPU: 10_000, GPUs: 1, Milli: 600}, gpus: 1 << 3},
	} {
		n.Place(&r.d, r.gpus)
	}
	return &n
}

func TestScoresByHand(t *testing.T) {
	full := used()
	empty := fleet.NewNode(full.Kind)
	asleep := empty
	asleep.Asleep = true
	share := func(milli int) fleet.Demand { return fleet.Demand{CPU: 4000, GPUs: 1, Milli: milli} }
	whole := func(count int) fleet.Demand { return fleet.Demand{CPU: 4000, GPUs: count, Milli: 1000} }
	m := fleet.Workload{{Demand: fleet.Demand{CPU: 1000, GPUs: 1, Milli: 500}, P: 1}}
	sigmoid := func(gain float64) float64 { return math.Trunc(100 / (1 + math.Exp(-gain))) }
	for _, c := range []struct {
		name   string
		scorer score.Scorer
		d      fleet.Demand
		n      *fleet.Node
		want   float64
		gpus   planner.GPUSet
	}{
		// 40 of 96 vCPU make two of three packages busy; 24 more make the third.
		{
			"PWR: a busy GPU with room costs nothing, the first one, not the tightest",
			score.PWR{},
			share(300), full, 0, 1 << 1,
		},
		{"PWR: an idle GPU where no busy one has room", score.PWR{}, share(700), full, -(150 - 30), 1 << 4},
		{"PWR: two idle GPUs", score.PWR{}, whole(2), full, -2 * (150 - 30), 0},
		{"PWR: another package", score.PWR{}, fleet.Demand{CPU: 24_001}, full, -(120 - 15), 0},
		{
			"PWR: waking a node of 285 W idle and 7 W asleep",
			score.PWR{},
			fleet.Demand{CPU: 1},
			&asleep,
			-(285 - 7 + 105), 0,
		},
		// Half a GPU is the only class: shares below 500 are fragments.
		{
			"FGD: 600 becomes 300, a fragment; 400 becomes 100, 300 less", score.NewFGD(m), share(300), full,
			sigmoid(0.3), 1 << 2,
		},
		{"FGD: no GPU, no change", score.NewFGD(m), fleet.Demand{CPU: 1}, full, 50, 0},
		{"FGD: an idle GPU becomes a fragment", score.NewFGD(m), share(700), full, sigmoid(-0.3), 1 << 4},
		// 52,000/128,000 and (5,400-300)/8,000 are left.
		{"BestFit", score.BestFit{}, share(300), full, math.Trunc(100 * (1 - 0.203125 - 0.31875)), 0},
		{
			"DotProd",
			score.DotProd{},
			share(300), full,
			math.Trunc(100 * (1 - (0.4375*0.03125+0.675*0.0375)/2)), 0,
		},
		{"GpuPacking: the tightest fit has 400 left", score.GpuPacking{}, share(300), full, 96, 0},
		{"GpuPacking: an idle GPU of a busy node", score.GpuPacking{}, share(700), full, 49, 0},
		{"GpuPacking: three of them", score.GpuPacking{}, whole(3), full, 47, 0},
		{"GpuPacking: an idle node", score.GpuPacking{}, whole(3), &empty, 25, 0},
		{"GpuPacking: no GPU", score.GpuPacking{}, fleet.Demand{CPU: 1}, full, 0, 0},
		// 2,600 of 8,000 are taken: 25 * 2600 / 8000 = 8.
		{"GpuClustering: several kinds, this one too", score.GpuClustering{}, share(300), full, 8 + 50, 0},
		{"GpuClustering: other kinds only", score.GpuClustering{}, whole(2), full, 8, 0},
		{"GpuClustering: no GPU task yet", score.GpuClustering{}, whole(2), &empty, 25, 0},
		{"GpuClustering: no GPU", score.GpuClustering{}, fleet.Demand{CPU: 1}, full, 0, 0},
		// An idle GPU: 120 W; a fragment of 300: 60 W. 56 vCPU serve 4.3 GPUs at 13
		// each, 5.4 are left; 52 serve 4 of 4.7: 0.39 stranded less.
		{
			"AddedCost", score.NewAddedCost(m, score.DefaultPrices()), share(700), full,
			-(120 + 60 + 100*((4.7-4)-(5.4-56./13))), 1 << 4,
		},
		// The next half GPU fits on a busy GPU before and after, or just before.
		{
			"ExpectedPWR: keeps the busy GPU that a half fits on", score.NewExpectedPWR(m), share(300),
			full, 0, 1 << 2,
		},
		{
			"ExpectedPWR: a half is left on a new busy GPU", score.NewExpectedPWR(m), share(500), &empty,
			-(120 + 105) + (120 + 105), 1 << 0,
		},
		{
			"ExpectedPWR: none is left there, but the CPU is busy", score.NewExpectedPWR(m), share(501),
			&empty, -(120 + 105) + 105, 1 << 0,
		},
	} {
		got, gpus := c.scorer.Score(&c.d, c.n)
		if math.Abs(got-c.want) > 1e-9 || gpus != c.gpus {
			t.Errorf("%s: %v on %v, want %v on %v", c.name, got, gpus.Indexes(), c.want, c.gpus.Indexes())
		}
	}
}

func TestStretchedScoresAreWholeSteps(t *testing.T) {
	for _, c := range []struct {
		scorer                 score.Scorer
		score, lowest, highest float64
		want                   float64
	}{
		{score.PWR{}, -7, -7, -7, 100},
		{score.PWR{}, -120, -225, 0, 46}, // 46.7
		{score.PWR{}, 0, -225, 0, 100},
		{score.BestFit{}, 40, 40, 40, 0},
		{score.BestFit{}, 41, 40, 43, 33},
		{score.DotProd{}, 77, 70, 90, 77},
		{score.NewExpectedPWR(nil), -1, -4, 0, 75},
	} {
		if got := c.scorer.Stretch(c.score, c.lowest, c.highest); got != c.want {
			t.Errorf("%T: %v in %v..%v is %v, want %v", c.scorer, c.score, c.lowest, c.highest, got, c.want)
		}
	}
}

// give is a scorer that would give a certain GPU.
type give struct {
	score.Absolute
	gpu int
}

func (g give) Score(*fleet.Demand, *fleet.Node) (float64, planner.GPUSet) { return 0, 1 << g.gpu }

func TestTheWeightiestPartThatCaresChoosesTheGPU(t *testing.T) {
	m := fleet.Workload{{Demand: fleet.Demand{CPU: 1000, GPUs: 1, Milli: 500}, P: 1}}
	// FGD would share GPU 1, PWR GPU 0: see the table above.
	s := fleet.NewState([]*fleet.Kind{kindOf("G2", 96_000, 400_000, 8)})
	for _, r := range []resident{
		{d: fleet.Demand{GPUs: 1, Milli: 400}, gpus: 1 << 0},
		{d: fleet.Demand{GPUs: 1, Milli: 600}, gpus: 1 << 1},
		{d: fleet.Demand{GPUs: 1, Milli: 650}, gpus: 1 << 2},
	} {
		if err := s.Place(0, &r.d, r.gpus); err != nil {
			t.Fatal(err)
		}
	}
	d := fleet.Demand{CPU: 1000, GPUs: 1, Milli: 300}
	for _, c := range []struct {
		name  string
		parts []score.WeightedScorer
		want  int
	}{
		{
			"PWR weighs more", []score.WeightedScorer{
				{Scorer: score.PWR{}, Weight: 600}, {Scorer: score.NewFGD(m), Weight: 400},
			}, 0,
		},
		{
			"FGD weighs more", []score.WeightedScorer{
				{Scorer: score.PWR{}, Weight: 400}, {Scorer: score.NewFGD(m), Weight: 600},
			}, 1,
		},
		{
			"FGD goes first at equal weights", []score.WeightedScorer{
				{Scorer: score.PWR{}, Weight: 500}, {Scorer: score.NewFGD(m), Weight: 500},
			}, 1,
		},
		{
			"others in order", []score.WeightedScorer{
				{Scorer: give{gpu: 5}, Weight: 500}, {Scorer: give{gpu: 6}, Weight: 500},
			}, 5,
		},
		{
			"who doesn't care has no say", []score.WeightedScorer{
				{Scorer: score.PWR{}, Weight: 1}, {Scorer: score.BestFit{}, Weight: 999},
			}, 0,
		},
		{"the tightest fit if nobody cares", []score.WeightedScorer{{Scorer: score.BestFit{}, Weight: 1}}, 2},
	} {
		if _, gpus, ok := score.NewFullScan(score.Rule{Parts: c.parts}, s).Choose(&d); !ok ||
			gpus != 1<<c.want {
			t.Errorf("%s: GPUs %v (%v), want %d", c.name, gpus.Indexes(), ok, c.want)
		}
	}
}

func TestAutoAlphaWeighsPowerLessAsTheClusterFills(t *testing.T) {
	m := fleet.Workload{{Demand: fleet.Demand{CPU: 1000, GPUs: 1, Milli: 1000}, P: 1}}
	s := fleet.NewState([]*fleet.Kind{kindOf("G2", 96_000, 400_000, 8)})
	a := score.NewAutoAlpha(m)
	last := math.Inf(1)
	var alphas []float64
	for range 9 {
		var weights [2]float64
		a.Weigh(s, weights[:])
		if weights[0]+weights[1] != 1000 || weights[0] > last {
			t.Errorf("weights %v after %v", weights, last)
		}
		if weights[0] != last {
			alphas = append(alphas, weights[0]/1000)
		}
		last = weights[0]
		if idle := s.Node(0).WholeGPUs(1); idle != 0 {
			if err := s.Place(0, &m[0].Demand, idle); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(alphas) < 3 || alphas[0] <= alphas[len(alphas)-1] {
		t.Errorf("alpha went %v, want several falling steps", alphas)
	}
}
