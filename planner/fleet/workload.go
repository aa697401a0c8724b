package fleet

import (
	"cmp"
	"slices"
	"strings"
)

// TaskClass is a kind of task and how likely the next task is of it.
type TaskClass struct {
	Demand // its memory is 0: it isn't looked at
	P      float64
}

// Workload is M, the target workload: the tasks that a cluster expects, most
// likely first.
type Workload []TaskClass

// PaperCover is the part of all tasks that the paper's target workloads cover.
const PaperCover = 0.95

// NewWorkload counts demands, memory aside, and keeps the most frequent kinds
// until they cover a part of all tasks; the kind that reaches it is included
// (data/openb/SEMANTICS.md, section 5). An empty list makes an empty workload.
func NewWorkload(demands []Demand, cover float64) Workload {
	counts := make(map[Demand]int)
	for _, d := range demands {
		d.Mem = 0
		counts[d]++
	}
	kinds := make([]Demand, 0, len(counts))
	for d := range counts {
		kinds = append(kinds, d)
	}
	slices.SortFunc(kinds, func(a, b Demand) int {
		return cmp.Or(
			cmp.Compare(counts[b], counts[a]), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Milli, a.Milli),
			cmp.Compare(b.GPUs, a.GPUs), strings.Compare(b.Spec, a.Spec))
	})
	kept, last := 0, 0
	for last < len(kinds) && float64(kept) < cover*float64(len(demands)) {
		kept += counts[kinds[last]]
		last++
	}
	m := make(Workload, last)
	total := float64(len(demands))
	for i, d := range kinds[:last] {
		m[i] = TaskClass{Demand: d, P: (float64(counts[d]) / total) / (float64(kept) / total)}
	}
	return m
}
