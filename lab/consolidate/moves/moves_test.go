package moves

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/testkit/sharingtest"
	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// bruteMoves is the least power with at most so many moves, for 0 to most: all
// places of all tasks are tried.
func bruteMoves(in *sharing.Instance, problem share.Problem, from [][]int, most int) []float64 {
	best := make([]float64, most+1)
	for k := range best {
		best[k] = math.Inf(1)
	}
	at := make([][]int, len(in.Tasks))
	gpus := len(in.GPUs())
	var place func(task, moved int)
	place = func(task, moved int) {
		if moved > most {
			return
		}
		if task == len(in.Tasks) {
			if v := judgeAt(in, problem, at); v.FeasibleFor(problem) {
				for k := moved; k <= most; k++ {
					best[k] = min(best[k], v.PowerW)
				}
			}
			return
		}
		for _, on := range subsets(gpus, in.Tasks[task].GPUs) {
			at[task] = on
			more := 0
			if len(from[task]) > 0 && !samePlaces(from[task], on) {
				more = 1
			}
			place(task+1, moved+more)
		}
	}
	place(0, 0)
	return best
}

// judgeAt is what places are worth at the lowest clocks.
func judgeAt(in *sharing.Instance, problem share.Problem, at [][]int) share.Evaluation {
	return share.Evaluate(in, placementOf(sharing.StateAt(in, at), problem))
}

// subsets are all sets of so many of the numbers below n.
func subsets(n, size int) [][]int {
	var all [][]int
	for set := range 1 << n {
		var on []int
		for i := range n {
			if set>>i&1 == 1 {
				on = append(on, i)
			}
		}
		if len(on) == size {
			all = append(all, on)
		}
	}
	return all
}

// somewhere puts tasks on GPUs by chance, a few of them nowhere.
func somewhere(r *rand.Rand, in *sharing.Instance) [][]int {
	at := make([][]int, len(in.Tasks))
	for task := range at {
		if r.IntN(6) > 0 {
			at[task] = r.Perm(len(in.GPUs()))[:in.Tasks[task].GPUs]
		}
	}
	return at
}

// feasible are instances of every mix that a simple policy can place.
func feasible(tasks int) []*sharing.Instance {
	var all []*sharing.Instance
	for _, mix := range []string{
		"paperlike", "light", "medium", "heavy", "antiphase", "membound", "mixed", "gang", "mixedkappa",
	} {
		in := sharingtest.Draw(rand.New(rand.NewPCG(3, uint64(tasks))), mix, tasks)
		at := share.Place(in, share.OnlineSLA{}, share.LowestClock)
		if v := share.Evaluate(in, at); v.Feasible() {
			all = append(all, in)
		}
	}
	return all
}

func TestRearrangeFindsTheLeastPowerForEachNumberOfMoves(t *testing.T) {
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 7))
		mix := []string{"medium", "mixed", "gang", "mixedkappa", "membound"}[r.IntN(5)]
		in := sharingtest.Draw(r, mix, 2+r.IntN(3))
		in.Servers = []sharing.Server{
			{StaticW: 40, OtherW: 20, GPUMemGB: []float64{16, 32}},
			{StaticW: 60, GPUMemGB: []float64{32, 32, 16}},
		}
		problem := []share.Problem{share.Safe, share.AsPrinted}[r.IntN(2)]
		if problem == share.Safe && r.IntN(3) == 0 {
			in.Contention = &sharing.Curve{Exponent: 1.1, ByTask: .02, ByMemory: .05}
		}
		from := somewhere(r, in)
		want := bruteMoves(in, problem, from, len(in.Tasks))
		for most := range want {
			got := Rearrange(t.Context(), in, problem, from, Options{Most: most, Rounds: 2000})
			v, found := share.Evaluate(in, got.Placement), math.Inf(1)
			if v.FeasibleFor(problem) {
				found = v.PowerW
			}
			if !sameWatts(found, want[most]) {
				t.Errorf("seed %d: %s, %d moves: %g W (%v), want %g", seed, in.Name, most, found,
					got.ByMoves, want[most])
			}
			for k, watts := range got.ByMoves {
				if !sameWatts(watts, want[k]) {
					t.Errorf("seed %d: with %d moves %g W, want %g", seed, k, watts, want[k])
				}
			}
		}
	}
}

// sameWatts reports whether two figures are the same, also none.
func sameWatts(a, b float64) bool {
	return math.IsInf(a, 1) && math.IsInf(b, 1) || math.Abs(a-b) <= 1e-6
}

func TestRearrangeMovesNoMoreThanItMayAndIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		in := sharingtest.Draw(r, rapid.SampledFrom([]string{"light", "mixed", "gang"}).Draw(t, "mix"), 12)
		before := share.Place(in, share.OnlineSLA{}, share.LowestClock)
		most := rapid.IntRange(0, 6).Draw(t, "most")
		opt := Options{Most: most, Seed: rapid.Uint64().Draw(t, "of the search"), Rounds: 400}
		got := Rearrange(t.Context(), in, share.Safe, before.GPUs, opt)
		moves := Between(in, before.GPUs, got.GPUs)
		was, is := share.Evaluate(in, before), share.Evaluate(in, got.Placement)
		if len(moves) > most || len(moves) != len(got.ByMoves)-1 {
			t.Fatalf("%d moves, %d allowed; by moves %v", len(moves), most, got.ByMoves)
		}
		if was.Feasible() && !is.Feasible() || is.Violations > was.Violations ||
			was.Feasible() && is.PowerW > was.PowerW+1e-6 {
			t.Fatalf("%g W, feasible %v; before %g W, %v", is.PowerW, is.Feasible(), was.PowerW,
				was.Feasible())
		}
		if is.Feasible() && math.Abs(is.PowerW-got.ByMoves[len(moves)]) > 1e-6 {
			t.Fatalf("%g W, by moves %v", is.PowerW, got.ByMoves)
		}
		again := Rearrange(t.Context(), in, share.Safe, before.GPUs, opt)
		for task := range again.GPUs {
			if !slices.Equal(again.GPUs[task], got.GPUs[task]) {
				t.Fatalf("task %d on %v, the second time on %v", task, got.GPUs[task], again.GPUs[task])
			}
		}
	})
}

func TestManyMovesAreAsGoodAsAPlanFromScratch(t *testing.T) {
	for _, in := range feasible(10)[:5] {
		before := share.Place(in, share.HotCloud(), share.MaxClock)
		_, want := consolidate.Improve(t.Context(), in, share.Safe, before, consolidate.ImproveOptions{})
		got := Rearrange(t.Context(), in, share.Safe, before.GPUs, Options{Most: len(in.Tasks), Rounds: 6000})
		if v := share.Evaluate(in, got.Placement); !v.Feasible() || v.PowerW > want*1.001 {
			t.Errorf("%s: %g W, from scratch %g", in.Name, v.PowerW, want)
		}
	}
}

func TestMovesFindTheMemoryThatTheyNeedWhenTheirTurnComes(t *testing.T) {
	in := &sharing.Instance{
		Physics: sharing.PaperPhysics(), SLA: 1.2, SlotS: 60,
		Servers: []sharing.Server{{StaticW: 1, GPUMemGB: []float64{16, 16, 16, 16}}},
	}
	for _, mem := range []float64{10, 10, 10, 9, 4} {
		in.Tasks = append(in.Tasks, sharing.Task{GPUs: 1, Kappa: 1.2, MemGB: mem, UtilPct: []float64{10}})
	}
	// Task 0 needs what task 1 leaves, task 1 what task 2 leaves.
	got := Between(in, [][]int{{0}, {1}, {2}, nil, {3}}, [][]int{{1}, {2}, {3}, {0}, {3}})
	want := []Move{
		{Task: 2, From: []int{2}, To: []int{3}},
		{Task: 1, From: []int{1}, To: []int{2}},
		{Task: 0, From: []int{0}, To: []int{1}},
	}
	if !slices.EqualFunc(got, want, sameMove) {
		t.Errorf("%v, want %v", got, want)
	}
	// Two that change places.
	got = Between(in, [][]int{{0}, {1}, nil, nil, nil}, [][]int{{1}, {0}, nil, nil, nil})
	want = []Move{
		{Task: 0, From: []int{0}, To: []int{1}, Together: true}, {Task: 1, From: []int{1}, To: []int{0}},
	}
	if !slices.EqualFunc(got, want, sameMove) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTheMoveThatIsMadeTogetherWithAnotherIsTheNextOne(t *testing.T) {
	in := &sharing.Instance{
		Physics: sharing.PaperPhysics(), SLA: 1.2, SlotS: 60,
		Servers: []sharing.Server{{StaticW: 1, GPUMemGB: []float64{16, 16, 16, 16}}},
	}
	for range 4 {
		in.Tasks = append(in.Tasks, sharing.Task{GPUs: 1, Kappa: 1.2, MemGB: 10, UtilPct: []float64{10}})
	}
	// Three go round.
	got := Between(in, [][]int{{0}, nil, {1}, {2}}, [][]int{{1}, nil, {2}, {0}})
	var order []int
	for _, m := range got {
		order = append(order, m.Task)
	}
	if !slices.Equal(order, []int{0, 2, 3}) || !got[0].Together || !got[1].Together || got[2].Together {
		t.Errorf("%+v, want 0, 2 and 3, each together with the next", got)
	}
	// Two pairs change places.
	got = Between(in, [][]int{{0}, {2}, {1}, {3}}, [][]int{{1}, {3}, {0}, {2}})
	order = order[:0]
	for _, m := range got {
		order = append(order, m.Task)
	}
	if !slices.Equal(order, []int{0, 2, 1, 3}) || !got[0].Together || got[1].Together || !got[2].Together ||
		got[3].Together {
		t.Errorf("%+v, want 0 with 2, then 1 with 3", got)
	}
}

func sameMove(a, b Move) bool {
	return a.Task == b.Task && slices.Equal(a.From, b.From) && slices.Equal(a.To, b.To) &&
		a.Together == b.Together
}

func TestASearchForMovesThatIsStoppedAtOnceAnswersTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := feasible(16)[0]
	before := share.Place(in, share.HotCloud(), share.MaxClock)
	got := Rearrange(ctx, in, share.Safe, before.GPUs, Options{Most: 3})
	if moves := Between(in, before.GPUs, got.GPUs); len(moves) > 0 {
		t.Errorf("%v, want no moves", moves)
	}
}
