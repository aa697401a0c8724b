package planreport

import (
	"cmp"
	"slices"
)

type gpuLane struct {
	node int32
	gpu  int
}

// maxSharers is, for each GPU that jobs share by profile, how many are on it at once
// at most.
func (r *Result) maxSharers() map[gpuLane]int {
	type change struct {
		at    float64
		count int
	}
	if r.Plan.Shared == nil {
		return nil
	}
	changes := make(map[gpuLane][]change)
	for _, task := range r.Plan.Shared.Tasks {
		a := &r.Plan.Assignments[task]
		for _, gpu := range a.GPUs.Indexes() {
			lane := gpuLane{a.Node, gpu}
			changes[lane] = append(changes[lane], change{a.Start, 1}, change{a.End, -1})
		}
	}
	crowds := make(map[gpuLane]int, len(changes))
	for lane, all := range changes {
		slices.SortFunc(all, func(a, b change) int {
			return cmp.Or(cmp.Compare(a.at, b.at), a.count-b.count)
		})
		now := 0
		for _, c := range all {
			now += c.count
			crowds[lane] = max(crowds[lane], now)
		}
	}
	return crowds
}
