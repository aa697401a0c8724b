package consolidate

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/testkit/sharingtest"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// drawCurved are small instances under curves of all kinds.
func drawCurved(seed uint64, most int) *sharing.Instance {
	in := drawTiny(seed, most)
	r := rand.New(rand.NewPCG(seed, 11))
	in.Contention = &sharing.Curve{Exponent: 1}
	if r.IntN(3) > 0 {
		in.Contention.Exponent += 1.5 * r.Float64()
	}
	if r.IntN(3) > 0 {
		in.Contention.ByTask = .15 * r.Float64()
	}
	if r.IntN(4) > 0 {
		in.Contention.ByMemory = .3 * r.Float64()
	}
	for i := range in.Tasks { // small ones, of which several go together
		t := &in.Tasks[i]
		t.Kappa += .3 * r.Float64() * float64(r.IntN(2))
		for slot := range t.UtilPct {
			t.UtilPct[slot] *= .7
		}
	}
	return in
}

// bruteCurve tries all partitions of the tasks' pieces, all sets of servers and
// all sizes of GPU for each part.
func bruteCurve(in *sharing.Instance) float64 {
	pieces := make([]int, 0, 2*len(in.Tasks))
	for t := range in.Tasks {
		pieces = append(pieces, slices.Repeat([]int{t}, in.Tasks[t].GPUs)...)
	}
	b := newBruteHosts(in)
	best := math.Inf(1)
	var groups [][]int
	var place func(at int)
	place = func(at int) {
		if at == len(pieces) {
			best = min(best, b.least(in, groups))
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

// bruteHosts is the GPUs by size of each set of servers, and what those take.
type bruteHosts struct {
	sizes []float64
	free  [][]int
	watts []float64
}

func newBruteHosts(in *sharing.Instance) *bruteHosts {
	b := &bruteHosts{}
	for _, g := range in.GPUs() {
		b.sizes = append(b.sizes, g.MemGB)
	}
	slices.Sort(b.sizes)
	b.sizes = slices.Compact(b.sizes)
	for on := range 1 << len(in.Servers) {
		free, watts := make([]int, len(b.sizes)), 0.0
		for s := range in.Servers {
			if on>>s&1 == 0 {
				continue
			}
			watts += in.Servers[s].HostW()
			for _, mem := range in.Servers[s].GPUMemGB {
				free[slices.Index(b.sizes, mem)]++
			}
		}
		b.free, b.watts = append(b.free, free), append(b.watts, watts)
	}
	return b
}

// least returns what groups of tasks take with the best servers and sizes.
func (b *bruteHosts) least(in *sharing.Instance, groups [][]int) float64 {
	cost := make([][]float64, len(groups)) // by group and size
	for g, group := range groups {
		for _, size := range b.sizes {
			cost[g] = append(cost[g], bruteGroupW(in, group, size))
		}
	}
	best := math.Inf(1)
	for on := range b.free {
		free := slices.Clone(b.free[on])
		var put func(g int, watts float64)
		put = func(g int, watts float64) {
			if watts >= best {
				return
			}
			if g == len(groups) {
				best = watts
				return
			}
			for k := range free {
				if free[k] > 0 && !math.IsInf(cost[g][k], 1) {
					free[k]--
					put(g+1, watts+cost[g][k])
					free[k]++
				}
			}
		}
		put(0, b.watts[on])
	}
	return best
}

// bruteGroupW returns what a GPU of a size takes for a group of tasks.
func bruteGroupW(in *sharing.Instance, group []int, size float64) float64 {
	s, kappa := sharing.Occupancy{LoadPct: make([]float64, in.Slots()), Tasks: len(group)}, math.Inf(1)
	for _, t := range group {
		for slot, u := range in.Tasks[t].UtilPct {
			s.LoadPct[slot] += u
		}
		kappa = min(kappa, in.Tasks[t].Kappa)
		s.Memory += in.Tasks[t].MemGB / size
	}
	if s.Memory > 1+1e-9 {
		return math.Inf(1)
	}
	mhz, ok := in.Physics.LowestLevel(in.Contention.Slowdown(s), kappa)
	if !ok {
		return math.Inf(1)
	}
	return in.Physics.PowerAt(mhz)
}

func TestExactByACurveIsTheBestOfAllPlacementsOfTinyInstances(t *testing.T) {
	answers, proven, dearer := 0, 0, 0
	for seed := range uint64(200) {
		in := drawCurved(seed, 6)
		want := bruteCurve(in)
		got := Exact(context.Background(), in, share.Safe, ExactOptions{})
		if math.IsInf(want, 1) {
			if !math.IsInf(got.PowerW, 1) {
				t.Errorf("seed %d: %g W where there is no answer", seed, got.PowerW)
			}
			continue
		}
		answers++
		if got.Proven {
			proven++
		}
		if got.PowerW < want-1e-6 || got.BoundW > want+1e-6 || got.Proven && got.PowerW > want+1e-6 {
			t.Errorf("seed %d, %+v: %.4f W, bound %.4f, proven %t; want %.4f", seed, *in.Contention,
				got.PowerW, got.BoundW, got.Proven, want)
		}
		if v := share.Evaluate(in, got.Placement); !v.Feasible() || math.Abs(v.PowerW-got.PowerW) > 1e-6 {
			t.Errorf("seed %d: %.4f W by its own account, by the judge %+v", seed, got.PowerW, v)
		}
		if bound := QuickBound(in, share.Safe); bound > want+1e-6 {
			t.Errorf("seed %d: quick bound %.4f above the best, %.4f", seed, bound, want)
		}
		in.Contention = nil
		if bruteForce(in, share.Safe) < want-1e-6 {
			dearer++
		}
	}
	t.Logf("%d answers, %d proven, %d take more by the curve", answers, proven, dearer)
	if answers < 150 || proven < answers*95/100 || dearer < 50 {
		t.Errorf("%d answers, %d of them proven, %d take more by the curve: want nearly all proven, and "+
			"many that do", answers, proven, dearer)
	}
}

func TestImproveByACurveIsFeasibleAndNeverAboveOnlineSLA(t *testing.T) {
	ctx, better := context.Background(), 0
	for seed := range uint64(40) {
		in := drawCurved(4000+seed, 24)
		start := share.Place(in, share.OnlineSLA{}, share.LowestClock)
		first := share.Evaluate(in, start)
		for _, sets := range []int{-1, 200_000} {
			place, watts := Improve(ctx, in, share.Safe, start, ImproveOptions{
				Seed: seed, Rounds: 300, Restarts: -1, Sets: sets,
			})
			v := share.Evaluate(in, place)
			if math.IsInf(watts, 1) && !first.Feasible() {
				continue
			}
			if !v.Feasible() || math.Abs(v.PowerW-watts) > 1e-6 {
				t.Errorf("seed %d, %d sets: %.3f W by its own account, by the judge %+v", seed,
					sets, watts, v)
			}
			if first.Feasible() && watts > first.PowerW+1e-6 {
				t.Errorf("seed %d, %d sets: %.3f W, online-sla takes %.3f", seed, sets, watts, first.PowerW)
			}
			if bound := QuickBound(in, share.Safe); watts < bound-1e-6 {
				t.Errorf("seed %d, %d sets: %.3f W, the bound is %.3f", seed, sets, watts, bound)
			}
			if watts < first.PowerW-1e-6 {
				better++
			}
		}
	}
	if better < 40 {
		t.Errorf("better than online-sla %d times of 80, want at least half", better)
	}
}

func TestABoundByACurveOfASearchThatIsCutShortHolds(t *testing.T) {
	for seed := range uint64(30) {
		cutShort(t, seed, drawCurved(5000+seed, 12))
	}
}

func TestTheLinearCurveChangesNothingOfImproveAndExact(t *testing.T) {
	ctx, linear := context.Background(), sharing.LinearCurve()
	for seed := range uint64(25) {
		in := drawTiny(6000+seed, 12)
		exact, quick := Exact(ctx, in, share.Safe, ExactOptions{Seed: seed}), QuickBound(in, share.Safe)
		place, watts := Improve(ctx, in, share.Safe, share.Placement{}, ImproveOptions{Seed: seed, Rounds: 200})
		in.Contention = &linear
		if got := Exact(ctx, in, share.Safe, ExactOptions{Seed: seed}); !reflect.DeepEqual(got, exact) ||
			QuickBound(in, share.Safe) != quick {
			t.Errorf("seed %d: exact %+v, want %+v", seed, got, exact)
		}
		if got, w := Improve(ctx, in, share.Safe, share.Placement{},
			ImproveOptions{Seed: seed, Rounds: 200}); !reflect.DeepEqual(got, place) || w != watts {
			t.Errorf("seed %d: improved to %v W, want %v", seed, w, watts)
		}
	}
}

func TestPricingByACurveFindsTheGroupsThatAreWorthMost(t *testing.T) {
	for seed := range uint64(200) {
		p, ok := newPacking(drawCurved(7000+seed, 9), share.Safe, false)
		if !ok || len(p.pieces) > 12 {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 5))
		values, floor := make([]float64, len(p.pieces)), make([]float64, len(p.hosts.sizes))
		for i := range values {
			values[i] = max(0, 150*r.Float64()-30)
		}
		for k := range floor {
			floor[k] = 60 * r.Float64()
		}
		if seed%3 > 0 {
			slices.Sort(floor)
		}
		most, above := curvedWorth(p, values, floor)
		q := newPricer(p, p.rootProblem().bundles)
		q.search(context.Background(), values, floor, math.MaxInt, 0)
		for k := range most {
			if q.top[k] < most[k]-1e-9 {
				t.Errorf("seed %d: groups of class %d are worth up to %v, found %v", seed, k,
					most[k], q.top[k])
			}
		}
		if len(q.found) < above {
			t.Errorf("seed %d: %d groups above the floor, found %d", seed, above, len(q.found))
		}
		pricedRight(t, seed, p, q.found)
		if joined := p.rootProblem().branchTogether(p, 0, len(p.pieces)-1); len(joined.mixes) > 0 {
			q = newPricer(p, joined.bundles)
			q.search(context.Background(), values, make([]float64, len(floor)), math.MaxInt, 0)
			pricedRight(t, seed, p, q.found)
		}
	}
}

// curvedWorth returns the most that a group of each class is worth, and how many are
// worth more than a floor.
func curvedWorth(p *packing, values, floor []float64) (most []float64, above int) {
	most = slices.Clone(floor)
	for _, c := range curvedGroups(p) {
		worth := -c.watts
		for _, i := range c.pieces {
			worth += values[i]
		}
		most[c.class] = max(most[c.class], worth)
		if worth > floor[c.class]+1e-9 {
			above++
		}
	}
	return most, above
}

// pricedRight holds what groups are said to take against what they take.
func pricedRight(t *testing.T, seed uint64, p *packing, found []column) {
	t.Helper()
	for _, c := range found {
		var g group
		if !g.setPieces(p, c.pieces, c.class) || g.class != c.class || math.Abs(g.watts-c.watts) > 1e-9 {
			t.Errorf("seed %d: %v of class %d take %v W, found %v", seed, c.pieces, c.class, g.watts, c.watts)
		}
	}
}

// curvedGroups lists all sets of pieces that can share a GPU, on each class on
// which they take less than on smaller ones.
func curvedGroups(p *packing) []column {
	var all []column
	for _, c := range allGroups(p) {
		all = append(all, c)
		for k := c.class + 1; k < len(p.hosts.sizes); k++ {
			var g group
			if g.setPieces(p, c.pieces, k) && g.class == k && g.watts < all[len(all)-1].watts {
				all = append(all, column{pieces: c.pieces, watts: g.watts, class: k})
			}
		}
	}
	return all
}

func TestImproveIsNeverAboveItsStartWhereSizesAreCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	in := sharingtest.Draw(r, "light", 24)
	in.Contention = &sharing.Curve{Exponent: 1.2, ByTask: .02, ByMemory: .1}
	in.Servers = nil
	for i := range 40 {
		size := 12 + float64(i)
		in.Servers = append(in.Servers, sharing.Server{
			StaticW: 50 + float64(i), GPUMemGB: []float64{size, size, size + 0.5},
		})
	}
	start := share.Place(in, share.OnlineSLA{}, share.LowestClock)
	first := share.Evaluate(in, start)
	place, watts := Improve(context.Background(), in, share.Safe, start, ImproveOptions{
		Rounds: 2, Restarts: -1, Sets: -1,
	})
	v := share.Evaluate(in, place)
	if !first.Feasible() || !v.Feasible() || v.PowerW > first.PowerW || v.PowerW > watts+1e-6 {
		t.Errorf("%.3f W by its own account, by the judge %+v; the start takes %.3f", watts, v, first.PowerW)
	}
}
