package moves

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// leastMovesEquivalent is a placement that takes the same, with servers and GPUs of the same
// kind changed for each other so that more tasks stay where they are.
func leastMovesEquivalent(in *sharing.Instance, home, at [][]int) [][]int {
	a := &symmetryMatcher{in: in, all: in.GPUs(), used: make([]bool, len(in.Servers))}
	a.share = make([]map[int]int, len(a.all))
	for gpu := range a.share {
		a.share[gpu] = make(map[int]int)
	}
	for task := range at {
		for _, to := range at[task] {
			a.used[a.all[to].Server] = true
			for _, from := range home[task] {
				a.share[to][from]++
			}
		}
	}
	for gpu, g := range a.all {
		if len(a.gpus) <= g.Server {
			a.gpus = append(a.gpus, nil)
		}
		a.gpus[g.Server] = append(a.gpus[g.Server], gpu)
	}
	to := a.swap()
	out := make([][]int, len(at))
	for task := range at {
		for _, gpu := range at[task] {
			out[task] = append(out[task], to[gpu])
		}
		slices.Sort(out[task])
	}
	return out
}

// symmetryMatcher is how much of a placement's GPUs is on which GPUs now.
type symmetryMatcher struct {
	in    *sharing.Instance
	all   []sharing.GPU
	share []map[int]int // by GPU then: how many of its pieces are on which GPU now
	used  []bool        // by server: it has pieces then
	gpus  [][]int       // by server
}

// swapPair is what changing a server or a GPU for another is worth.
type swapPair struct{ from, to, worth int }

// swap is by GPU of the placement the GPU that takes its part: servers first,
// those that keep most pieces where they are, then GPUs within.
func (a *symmetryMatcher) swap() []int {
	const mostPairs = 1 << 20
	out := make([]int, len(a.share))
	if len(a.gpus)*len(a.gpus) > mostPairs {
		for gpu := range out {
			out[gpu] = gpu
		}
		return out
	}
	var servers []swapPair
	for from := range a.gpus {
		for to := range a.gpus {
			if a.used[from] && a.isSameKind(from, to) {
				servers = append(servers, swapPair{from, to, a.matchGPUs(from, to, nil)})
			}
		}
	}
	for _, m := range greedyMatching(servers) {
		a.matchGPUs(m.from, m.to, out)
	}
	return out
}

// isSameKind reports whether two servers take the same and have the same GPUs.
func (a *symmetryMatcher) isSameKind(from, to int) bool {
	s, other := &a.in.Servers[from], &a.in.Servers[to]
	return s.HostW() == other.HostW() &&
		slices.Equal(slices.Sorted(slices.Values(s.GPUMemGB)), slices.Sorted(slices.Values(other.GPUMemGB)))
}

// matchGPUs matches the GPUs of two servers of a kind. It is how many pieces stay,
// and notes who takes whose part in out, unless it is nil.
func (a *symmetryMatcher) matchGPUs(from, to int, out []int) int {
	var all []swapPair
	for _, x := range a.gpus[from] {
		for _, y := range a.gpus[to] {
			if a.all[x].MemGB == a.all[y].MemGB {
				all = append(all, swapPair{x, y, a.share[x][y]})
			}
		}
	}
	sum := 0
	for _, m := range greedyMatching(all) {
		sum += m.worth
		if out != nil {
			out[m.from] = m.to
		}
	}
	return sum
}

// greedyMatching are the matches of most worth of which none shares a side with
// another.
func greedyMatching(all []swapPair) []swapPair {
	slices.SortStableFunc(all, func(a, b swapPair) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	from, to := make(map[int]bool), make(map[int]bool)
	var kept []swapPair
	for _, m := range all {
		if !from[m.from] && !to[m.to] {
			from[m.from], to[m.to] = true, true
			kept = append(kept, m)
		}
	}
	return kept
}
