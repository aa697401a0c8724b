package consolidate

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// alike is a placement that takes the same, with servers and GPUs of the same
// kind changed for each other so that more tasks stay where they are.
func alike(in *sharing.Instance, home, at [][]int) [][]int {
	a := &likeness{in: in, all: in.GPUs(), used: make([]bool, len(in.Servers))}
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

// likeness is how much of a placement's GPUs is on which GPUs now.
type likeness struct {
	in    *sharing.Instance
	all   []sharing.GPU
	share []map[int]int // by GPU then: how many of its pieces are on which GPU now
	used  []bool        // by server: it has pieces then
	gpus  [][]int       // by server
}

// match is what changing a server or a GPU for another is worth.
type match struct{ from, to, worth int }

// swap is by GPU of the placement the GPU that takes its part: servers first,
// those that keep most pieces where they are, then GPUs within.
func (a *likeness) swap() []int {
	const mostPairs = 1 << 20
	out := make([]int, len(a.share))
	if len(a.gpus)*len(a.gpus) > mostPairs {
		for gpu := range out {
			out[gpu] = gpu
		}
		return out
	}
	var servers []match
	for from := range a.gpus {
		for to := range a.gpus {
			if a.used[from] && a.sameKind(from, to) {
				servers = append(servers, match{from, to, a.within(from, to, nil)})
			}
		}
	}
	for _, m := range greedy(servers) {
		a.within(m.from, m.to, out)
	}
	return out
}

// sameKind tells whether two servers take the same and have the same GPUs.
func (a *likeness) sameKind(from, to int) bool {
	s, other := &a.in.Servers[from], &a.in.Servers[to]
	return s.HostW() == other.HostW() && slices.Equal(slices.Sorted(slices.Values(s.GPUMemGB)), slices.Sorted(slices.Values(other.GPUMemGB)))
}

// within matches the GPUs of two servers of a kind. It is how many pieces stay,
// and notes who takes whose part in out, unless it is nil.
func (a *likeness) within(from, to int, out []int) int {
	var all []match
	for _, x := range a.gpus[from] {
		for _, y := range a.gpus[to] {
			if a.all[x].MemGB == a.all[y].MemGB {
				all = append(all, match{x, y, a.share[x][y]})
			}
		}
	}
	sum := 0
	for _, m := range greedy(all) {
		sum += m.worth
		if out != nil {
			out[m.from] = m.to
		}
	}
	return sum
}

// greedy are the matches of most worth of which none shares a side with
// another.
func greedy(all []match) []match {
	slices.SortStableFunc(all, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	from, to := make(map[int]bool), make(map[int]bool)
	var kept []match
	for _, m := range all {
		if !from[m.from] && !to[m.to] {
			from[m.from], to[m.to] = true, true
			kept = append(kept, m)
		}
	}
	return kept
}
