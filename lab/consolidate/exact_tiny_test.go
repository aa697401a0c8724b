package consolidate

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/sharingtest"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// bruteForce tries all partitions of the pieces and all sets of servers.
func bruteForce(in *sharing.Instance, problem share.Problem) float64 {
	var pieces []int // by piece: its task
	for t := range in.Tasks {
		for range in.Tasks[t].GPUs {
			pieces = append(pieces, t)
		}
	}
	var groups [][]int
	best := math.Inf(1)
	var place func(at int)
	place = func(at int) {
		if at == len(pieces) {
			best = min(best, bruteGroups(in, problem, groups))
			return
		}
		for g := range groups {
			if !slices.Contains(groups[g], pieces[at]) {
				groups[g] = append(groups[g], pieces[at])
				place(at + 1)
				groups[g] = groups[g][:len(groups[g])-1]
			}
		}
		groups = append(groups, []int{pieces[at]})
		place(at + 1)
		groups = groups[:len(groups)-1]
	}
	place(0)
	return best
}

// bruteGroups returns what groups of tasks take with the best servers.
func bruteGroups(in *sharing.Instance, problem share.Problem, groups [][]int) float64 {
	watts := 0.0
	var need []float64
	for _, group := range groups {
		load, kappa, mem := make([]float64, in.Slots()), math.Inf(1), 0.0
		for _, t := range group {
			for s, u := range in.Tasks[t].UtilPct {
				load[s] += u
			}
			kappa = min(kappa, in.Tasks[t].Kappa)
			mem += in.Tasks[t].MemGB
		}
		mhz, ok := lowestLevel(&in.Physics, problem, load, kappa)
		if !ok {
			return math.Inf(1)
		}
		watts += in.Physics.PowerAt(mhz)
		need = append(need, mem)
	}
	slices.Sort(need)
	slices.Reverse(need)
	return watts + bruteServers(in, need)
}

// bruteServers returns what the best servers for groups by descending memory take.
func bruteServers(in *sharing.Instance, need []float64) float64 {
	best := math.Inf(1)
	for on := range 1 << len(in.Servers) {
		var gpus []float64
		watts := 0.0
		for s := range in.Servers {
			if on>>s&1 == 1 {
				gpus = append(gpus, in.Servers[s].GPUMemGB...)
				watts += in.Servers[s].HostW()
			}
		}
		slices.Sort(gpus)
		slices.Reverse(gpus)
		fits := len(need) <= len(gpus)
		for i := range need {
			fits = fits && need[i] <= gpus[i]+1e-9
		}
		if fits {
			best = min(best, watts)
		}
	}
	return best
}

// drawTiny are small instances of all mixes.
func drawTiny(seed uint64, most int) *sharing.Instance {
	r := rand.New(rand.NewPCG(seed, 7))
	all := []string{
		"paperlike", "light", "medium", "heavy", "antiphase", "membound", "mixed", "gang", "mixedkappa",
	}
	in := sharingtest.Draw(r, all[r.IntN(len(all))], 2+r.IntN(most-1))
	if r.IntN(3) == 0 { // servers of three sizes of GPU
		for s := range in.Servers {
			for g := range in.Servers[s].GPUMemGB {
				in.Servers[s].GPUMemGB[g] = []float64{24, 32, 48}[r.IntN(3)]
			}
		}
	}
	return in
}

func TestExactIsTheBestOfAllPlacementsOfTinyInstances(t *testing.T) {
	proven := 0
	for seed := range uint64(150) {
		in := drawTiny(seed, 6)
		for _, problem := range []share.Problem{share.Safe, share.AsPrinted} {
			want := bruteForce(in, problem)
			got := Exact(context.Background(), in, problem, ExactOptions{})
			if math.IsInf(want, 1) {
				if !math.IsInf(got.PowerW, 1) {
					t.Errorf("seed %d, %s: %g W where there is no answer", seed, problem, got.PowerW)
				}
				continue
			}
			if !got.Proven || math.Abs(got.PowerW-want) > 1e-6 || got.BoundW > want+1e-6 {
				t.Errorf("seed %d, %s: %.4f W, bound %.4f, proven %t; want %.4f", seed, problem, got.PowerW,
					got.BoundW, got.Proven, want)
			}
			verdict := share.Evaluate(in, got.Placement)
			if !verdict.FeasibleFor(problem) || math.Abs(verdict.PowerW-got.PowerW) > 1e-6 {
				t.Errorf("seed %d, %s: %.4f W by its own account, by the judge %+v", seed, problem,
					got.PowerW, verdict)
			}
			if bound := QuickBound(in, problem); bound > want+1e-6 {
				t.Errorf("seed %d, %s: quick bound %.4f above the best, %.4f", seed, problem, bound, want)
			}
			proven++
		}
	}
	if proven < 200 {
		t.Errorf("%d instances had an answer, too few to tell", proven)
	}
}

func TestExactIsNeverAboveImproveNorImproveAboveAPolicy(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(12) {
		in := drawTiny(1000+seed, 20)
		exact := Exact(ctx, in, share.Safe, ExactOptions{Seed: seed})
		if !exact.Proven {
			t.Errorf("seed %d: not proven", seed)
		}
		for _, policy := range share.Policies() {
			start := share.Place(in, policy.Rule, policy.Clocks)
			first := share.Evaluate(in, start)
			place, watts := Improve(ctx, in, share.Safe, start, ImproveOptions{
				Seed: seed, Rounds: 300, Restarts: -1, Sets: -1,
			})
			verdict := share.Evaluate(in, place)
			if exact.PowerW > watts+1e-6 || exact.BoundW > watts+1e-6 {
				t.Errorf("seed %d: exact %.3f W, bound %.3f, improved %.3f", seed, exact.PowerW,
					exact.BoundW, watts)
			}
			if first.Feasible() && watts > first.PowerW+1e-6 {
				t.Errorf("seed %d: %s takes %.3f W, improved %.3f", seed, policy.Name, first.PowerW, watts)
			}
			if !verdict.Feasible() || math.Abs(verdict.PowerW-watts) > 1e-6 {
				t.Errorf("seed %d: improved %.3f W by its own account, by the judge %+v", seed,
					watts, verdict)
			}
		}
	}
}

func TestABoundOfASearchThatIsCutShortHolds(t *testing.T) {
	for seed := range uint64(40) {
		cutShort(t, seed, drawTiny(2000+seed, 14))
	}
}

// cutShort checks the bounds of searches that may do little.
func cutShort(t *testing.T, seed uint64, in *sharing.Instance) {
	t.Helper()
	best := Exact(context.Background(), in, share.Safe, ExactOptions{})
	for _, work := range []int{1, 300, 3000} {
		p, ok := newPacking(in, share.Safe, false)
		if !ok {
			t.Fatalf("seed %d: no packing", seed)
		}
		e := newExactSearch(p, 0)
		e.work, e.limit = work, 3
		e.improve(context.Background(), share.Placement{}, ImproveOptions{Rounds: 1, Restarts: -1})
		e.run(context.Background())
		if e.bound() > best.PowerW+1e-6 || e.proven() && e.bestW > best.PowerW+1e-6 {
			t.Errorf("seed %d, work %d: bound %.3f, watts %.3f, proven %t; best %.3f", seed, work, e.bound(),
				e.bestW, e.proven(), best.PowerW)
		}
	}
}

func TestASearchThatIsOverBeforeItBeginsHandsBackItsStart(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	in := drawTiny(3, 6)
	start := Exact(context.Background(), in, share.Safe, ExactOptions{})
	got := Exact(ctx, in, share.Safe, ExactOptions{Start: start.Placement})
	if math.Abs(got.PowerW-start.PowerW) > 1e-6 || got.BoundW > start.PowerW+1e-6 {
		t.Errorf("%.3f W, bound %.3f; the start takes %.3f", got.PowerW, got.BoundW, start.PowerW)
	}
	place, watts := Improve(ctx, in, share.Safe, start.Placement, ImproveOptions{})
	if verdict := share.Evaluate(in, place); math.Abs(watts-start.PowerW) > 1e-6 || !verdict.Feasible() {
		t.Errorf("improved to %.3f W, %+v; the start takes %.3f", watts, verdict, start.PowerW)
	}
}

func TestWhatNoGPUHoldsHasNoAnswer(t *testing.T) {
	for name, change := range map[string]func(*sharing.Instance){
		"memory": func(in *sharing.Instance) { in.Tasks[0].MemGB = 1000 },
		"kappa":  func(in *sharing.Instance) { in.Tasks[0].Kappa = 0.5 },
		"gpus":   func(in *sharing.Instance) { in.Tasks[0].GPUs = 1000 },
	} {
		in := drawTiny(5, 6)
		change(in)
		got := Exact(context.Background(), in, share.Safe, ExactOptions{})
		if !math.IsInf(got.PowerW, 1) || got.Proven {
			t.Errorf("%s: %.3f W, proven %t", name, got.PowerW, got.Proven)
		}
		if _, watts := Improve(context.Background(), in, share.Safe, share.Placement{},
			ImproveOptions{}); !math.IsInf(watts, 1) {
			t.Errorf("%s: improved to %.3f W", name, watts)
		}
		if bound := QuickBound(in, share.Safe); !math.IsInf(bound, 1) {
			t.Errorf("%s: bound %.3f W", name, bound)
		}
	}
}

func TestGPUsOfManySizesAreBoundedFromBelow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	in := sharingtest.Draw(r, "mixed", 24)
	in.Servers = nil
	for i := range 40 {
		size := 12 + float64(i)
		in.Servers = append(in.Servers, sharing.Server{
			StaticW: 50 + float64(i), GPUMemGB: []float64{size, size, size + 0.5},
		})
	}
	p, ok := newPacking(in, share.Safe, false)
	if !ok || !p.hosts.coarse || len(p.hosts.table) > maxTableCells {
		t.Fatalf("packing %t, %d cells", ok, len(p.hosts.table))
	}
	place, watts := Improve(context.Background(), in, share.Safe, share.Placement{}, ImproveOptions{
		Rounds: 500, Restarts: -1, Sets: -1,
	})
	verdict := share.Evaluate(in, place)
	if !verdict.Feasible() || verdict.PowerW > watts+1e-6 {
		t.Errorf("improved %.3f W by its own account, by the judge %+v", watts, verdict)
	}
	if bound := QuickBound(in, share.Safe); bound > verdict.PowerW || bound < watts/2 {
		t.Errorf("bound %.3f W, found %.3f", bound, verdict.PowerW)
	}
}

// lowestLevel returns the lowest level at which a GPU with that load keeps kappa, by what the
// problem counts and without a measured curve.
func lowestLevel(
	p *sharing.Physics, problem share.Problem, loadPct []float64, kappa float64,
) (mhz dvfsmodel.MHz, ok bool) {
	overload := 1.0
	if problem == share.Safe {
		overload = sharing.LinearCurve().Slowdown(sharing.Occupancy{LoadPct: loadPct})
	}
	return p.LowestLevel(overload, kappa)
}
