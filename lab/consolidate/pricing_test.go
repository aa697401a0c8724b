package consolidate

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/planner/share"
)

// allGroups lists all sets of pieces that can share a GPU.
func allGroups(p *packing) []column {
	var all []column
	for set := 1; set < 1<<len(p.pieces); set++ {
		var pieces []int
		for i := range p.pieces {
			if set>>i&1 == 1 {
				pieces = append(pieces, i)
			}
		}
		apart := true
		for k, i := range pieces {
			for _, j := range pieces[:k] {
				apart = apart && !p.sameTask(i, j)
			}
		}
		var g group
		if apart && g.setPieces(p, pieces, 0) {
			all = append(all, column{pieces: pieces, watts: g.watts, class: g.class})
		}
	}
	return all
}

// priced is a search for groups, and what trying all of them says.
type priced struct {
	p             *packing
	values, floor []float64
	most          []float64 // by class
	above         int       // groups that are worth more than the floor
}

func drawPriced(seed uint64) *priced {
	in := drawTiny(3000+seed, 9)
	p, ok := newPacking(in, []share.Problem{share.Safe, share.AsPrinted}[seed%2], false)
	if !ok || len(p.pieces) > 12 {
		return nil
	}
	r := rand.New(rand.NewPCG(seed, 5))
	d := &priced{p: p}
	for range p.pieces {
		d.values = append(d.values, max(0, 150*r.Float64()-30))
	}
	for range p.hosts.sizes {
		d.floor = append(d.floor, 60*r.Float64())
	}
	if seed%3 > 0 {
		slices.Sort(d.floor)
	}
	d.most = slices.Clone(d.floor)
	for _, c := range allGroups(p) {
		worth := -c.watts
		for _, i := range c.pieces {
			worth += d.values[i]
		}
		d.most[c.class] = max(d.most[c.class], worth)
		if worth > d.floor[c.class] {
			d.above++
		}
	}
	return d
}

func TestPricingFindsTheGroupsThatAreWorthMost(t *testing.T) {
	for seed := range uint64(300) {
		d := drawPriced(seed)
		if d == nil {
			continue
		}
		q := newPricer(d.p, d.p.rootProblem().bundles)
		for _, greed := range []float64{0, 0.6, 1} {
			q.search(context.Background(), d.values, d.floor, math.MaxInt, greed)
			want := 0.0
			for k := range d.most {
				if want = max(want, d.most[k]); greed == 0 || !slices.IsSorted(d.floor) {
					want = d.most[k]
				}
				if math.Abs(q.top[k]-want) > 1e-9 {
					t.Errorf("seed %d, greed %g: worth at most %.6f, want %.6f", seed, greed, q.top[k], want)
				}
			}
			if greed == 0 && len(q.found) != d.above {
				t.Errorf("seed %d: %d groups are worth enough, want %d", seed, len(q.found), d.above)
			}
		}
	}
}

func TestASearchForGroupsThatIsCutShortBoundsTheRest(t *testing.T) {
	cut := 0
	for seed := range uint64(300) {
		d := drawPriced(seed)
		if d == nil {
			continue
		}
		q := newPricer(d.p, d.p.rootProblem().bundles)
		q.search(context.Background(), d.values, d.floor, 5, 0.6)
		if q.wasTruncated() {
			cut++
		}
		for k := range d.most {
			if q.top[k] < d.most[k]-1e-9 {
				t.Errorf("seed %d: worth at most %.6f by the search, one is worth %.6f", seed,
					q.top[k], d.most[k])
			}
		}
	}
	if cut < 50 {
		t.Errorf("%d searches were cut short, too few to tell", cut)
	}
}

func TestServersForGroupsAreTheCheapest(t *testing.T) {
	for seed := range uint64(60) {
		in := drawTiny(4000+seed, 7)
		h := newServerKnapsack(in, 6, false)
		need := make([]int, len(h.sizes))
		r := rand.New(rand.NewPCG(seed, 9))
		for range 1 + r.IntN(6) {
			need[r.IntN(len(need))]++
		}
		var groups []float64
		for k, n := range need {
			for range n {
				groups = append(groups, h.sizes[k])
			}
		}
		slices.Reverse(groups)
		want, got := bruteServers(in, groups), h.watts(need)
		if math.Abs(want-got) > 1e-9 {
			t.Errorf("seed %d: %.3f W for %v of %v GB, want %.3f", seed, got, need, h.sizes, want)
		}
	}
}
