package check

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Budget says when a plan takes more than a power budget, which holds by watts from each of some times on,
// seconds, the first one also before. It adds up what runs, idle GPUs and hosts of nodes that are on, and
// nodes that sleep, by code of its own; what it takes to switch a node on is no power.
func Budget(p *planner.Problem, plan *planner.Plan, times, watts []float64) error {
	type change struct{ at, by float64 }
	var changes []change
	asleep := 0.0
	for n := range plan.Nodes {
		class := &p.Cluster.Classes[plan.Nodes[n].Class]
		asleep += float64(class.SleepW)
		awake := float64(class.GPUs)*float64(class.IdleW+class.HostW) - float64(class.SleepW)
		for _, on := range plan.Nodes[n].On {
			changes = append(changes, change{on.From, awake}, change{on.To, -awake})
		}
	}
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		if a.Node < 0 || a.End <= a.Start {
			continue
		}
		each, extra := float64(a.Point.Energy)/(a.End-a.Start), 0.0
		for _, part := range append([]planner.Part{{Node: a.Node, GPUs: a.GPUs}}, a.More...) {
			gpus := float64(bits.OnesCount64(uint64(part.GPUs)))
			if share := p.Tasks[i].Share; share < 1 {
				gpus = share
			}
			extra += gpus * (each - float64(p.Cluster.Classes[plan.Nodes[part.Node].Class].IdleW))
		}
		changes = append(changes, change{a.Start, extra}, change{a.End, -extra})
	}
	for i := 1; i < len(times); i++ {
		changes = append(changes, change{times[i], 0})
	}
	slices.SortFunc(changes, func(x, y change) int { return cmp.Compare(x.at, y.at) })
	power, step := asleep, 0
	for i, c := range changes {
		power += c.by
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		for step+1 < len(times) && times[step+1] <= c.at {
			step++
		}
		const rounding = 1e-6
		if power > watts[step]*(1+rounding) {
			return fmt.Errorf("at %.6g s the plan takes %.6g W, the budget is %.6g W", c.at, power, watts[step])
		}
	}
	return nil
}
