package share_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// pair returns two servers of two GPUs, and three tasks, the last of which needs two
// GPUs.
func pair() *sharing.Instance {
	return &sharing.Instance{
		Physics: sharing.PaperPhysics(), SLA: 1.2, SlotS: 60,
		Servers: []sharing.Server{
			{StaticW: 100, OtherW: 20, GPUMemGB: []float64{16, 32}},
			{StaticW: 50, OtherW: 5, GPUMemGB: []float64{16, 16}},
		},
		Tasks: []sharing.Task{
			{ID: "a", MemGB: 10, GPUs: 1, Kappa: 1.2, UtilPct: []float64{100, 20}},
			{ID: "b", MemGB: 8, GPUs: 1, Kappa: 1.05, UtilPct: []float64{60, 40}},
			{ID: "c", MemGB: 4, GPUs: 2, Kappa: 1.2, UtilPct: []float64{10, 10}},
		},
	}
}

func TestJudgeAddsUpWhatIsOnAndWhoIsSlowedDown(t *testing.T) {
	in := pair()
	v := share.Evaluate(in, share.Placement{
		GPUs: [][]int{{1}, {1}, {1, 0}}, MHz: []dvfsmodel.MHz{1125, 1350, 0, 0},
	})
	// GPU 1 has 170 and 70 percent: 1.35 slots of work by slot, at f_max
	if math.Abs(v.WorstSlowdown-1.35) > 1e-12 || v.Violations != 3 || v.TooSlow != 0 || v.OverMemory != 0 {
		t.Errorf("verdict %+v", v)
	}
	if want := 120 + (23.3 + 0.09*1350) + (23.3 + 0.09*1125); math.Abs(v.PowerW-want) > 1e-9 ||
		v.GPUsOn != 2 || v.ServersOn != 1 {
		t.Errorf("power %g W, want %g", v.PowerW, want)
	}
	if v.Feasible() || !v.FeasibleFor(share.AsPrinted) {
		t.Errorf("feasible %v, as printed %v, want only that", v.Feasible(),
			v.FeasibleFor(share.AsPrinted))
	}
}

func TestJudgeCountsWhatTheFrequencyAloneSlowsDown(t *testing.T) {
	in := pair()
	v := share.Evaluate(in, share.Placement{
		GPUs: [][]int{{0}, {1}, {2, 3}}, MHz: []dvfsmodel.MHz{1125, 1125, 1125, 1080},
	})
	if v.TooSlow != 2 || v.Violations != 2 || v.FeasibleFor(share.AsPrinted) {
		t.Errorf("verdict %+v, want b and c too slow", v)
	}
}

func TestJudgeNamesWhatNoPlacementMayBe(t *testing.T) {
	for _, c := range []struct {
		place [][]int
		mhz   []dvfsmodel.MHz
		want  string
	}{
		{[][]int{{0}, {1}}, []dvfsmodel.MHz{1350, 1350, 0, 0}, "places of 2 tasks, want 3"},
		{[][]int{{0}, {1}, {2}}, []dvfsmodel.MHz{1350, 1350, 1350, 0}, "task c is on 1 GPUs, want 2"},
		{[][]int{{0}, {1}, {2, 2}}, []dvfsmodel.MHz{1350, 1350, 1350, 0}, "task c is on GPU 2 twice"},
		{[][]int{{0}, {1}, {2, 4}}, []dvfsmodel.MHz{1350, 1350, 1350, 0}, "task c is on GPU 4, want 0 to 3"},
		{
			[][]int{{0}, {1}, {2, -1}},
			[]dvfsmodel.MHz{1350, 1350, 1350, 0},
			"task c is on GPU -1, want 0 to 3",
		},
		{[][]int{{0}, {1}, {2, 3}}, []dvfsmodel.MHz{1350, 1350, 1350, 0}, "GPU 3 sleeps, but has tasks"},
		{
			[][]int{{0}, {1}, {2, 3}},
			[]dvfsmodel.MHz{1350, 1350, 1350, 1111},
			"GPU 3 runs at 1111 MHz, want one of the levels",
		},
		{
			[][]int{{0}, {1}, {2, 3}},
			[]dvfsmodel.MHz{1350, 1350, 1350, dvfsmodel.MHz(math.NaN())},
			"GPU 3 runs at NaN MHz, want one of the levels",
		},
		{[][]int{{0}, {1}, {2, 3}}, []dvfsmodel.MHz{1350, 1350, 1350}, "frequencies of 3 GPUs, want 4"},
	} {
		v := share.Evaluate(pair(), share.Placement{GPUs: c.place, MHz: c.mhz})
		if v.Feasible() || !strings.Contains(strings.Join(v.Faults, "; "), c.want) {
			t.Errorf("faults %q, want %q", v.Faults, c.want)
		}
	}
}

func TestJudgeCountsTasksWithoutAPlaceAndMemoryThatIsMissing(t *testing.T) {
	v := share.Evaluate(pair(), share.Placement{
		GPUs: [][]int{{0}, {0}, nil}, MHz: []dvfsmodel.MHz{1350, 0, 0, 0},
	})
	if v.Unplaced != 1 || v.OverMemory != 1 || v.Feasible() {
		t.Errorf("verdict %+v", v)
	}
}

func TestFrequencyAdaptationComesToRestBelowTheLimit(t *testing.T) {
	p := sharing.PaperPhysics()
	for _, c := range []struct {
		kappas []float64
		want   dvfsmodel.MHz
	}{
		{[]float64{1.2}, 1125}, // data/cats/README.md, section 3
		{[]float64{1.2, 1.2}, 1125},
		{[]float64{1.2, 1.05}, 1350}, // at f_max one of them is within 5 percent
		{[]float64{1}, 1350},
		{[]float64{100}, 135},
	} {
		mhz := p.Max()
		for range p.LevelsMHz {
			mhz = share.AdaptStep(&p, mhz, c.kappas)
		}
		if mhz != c.want {
			t.Errorf("tasks that allow %v: %g MHz, want %g", c.kappas, mhz, c.want)
		}
	}
	// A step down breaks the limit, from where it steps up again.
	p.LevelsMHz = []dvfsmodel.MHz{135, 180, 1350}
	if down := share.AdaptStep(&p, 1350, []float64{1.2}); down != 180 ||
		share.AdaptStep(&p, down, []float64{1.2}) != 1350 {
		t.Errorf("from 1350 to %g MHz, want 180, and back", down)
	}
	p = sharing.PaperPhysics()
	if mhz := share.AdaptStep(&p, 1035, []float64{1.2}); mhz != 1080 {
		t.Errorf("from 1035 MHz, where the limit is broken, to %g MHz, want 1080", mhz)
	}
}

func TestTasksForWhichThereAreTooFewGPUsHaveNoPlace(t *testing.T) {
	in := pair()
	in.Tasks[2].GPUs, in.Tasks[2].MemGB = 2, 20 // one GPU has that much
	for _, policy := range share.Policies() {
		p := share.Place(in, policy.Rule, policy.Clocks)
		v := share.Evaluate(in, p)
		if v.Unplaced != 1 || p.GPUs[2] != nil || len(v.Faults) > 0 {
			t.Errorf("%s: %v, %+v", policy.Name, p.GPUs, v)
		}
	}
}

func TestLowestIsTheLowestLevelThatKeepsTheSLA(t *testing.T) {
	in := pair()
	for _, c := range []struct {
		problem share.Problem
		load    []float64
		kappa   float64
		want    dvfsmodel.MHz
		ok      bool
	}{
		{share.Safe, []float64{50, 100}, 1.2, 1125, true},
		{share.Safe, []float64{140, 100}, 1.2, 1350, true}, // overload 1.2
		{share.Safe, []float64{140.1, 100}, 1.2, 1350, false},
		{share.AsPrinted, []float64{900, 900}, 1.2, 1125, true},
		{share.Safe, nil, 1, 1350, true},
		{share.Safe, nil, math.Inf(1), 135, true},
	} {
		mhz, ok := share.LowestLevel(&in.Physics, c.problem, c.load, c.kappa)
		if mhz != c.want || ok != c.ok {
			t.Errorf("%v, load %v, kappa %g: %g MHz, %v, want %g, %v", c.problem, c.load, c.kappa, mhz, ok,
				c.want, c.ok)
		}
	}
}
