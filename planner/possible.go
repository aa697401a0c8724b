package planner

import (
	"fmt"
	"math"
)

// feasibleSlack is the relative rounding that a limit may be below the shortest run
// time and still count as met: a limit of exactly that time is feasible.
const feasibleSlack = 1e-12

// canEverRun reports whether some node of the cluster, empty and on, could run the
// task in time; if not, why, and when it would end at the earliest, with its
// GPUs free and its node switched on.
func canEverRun(v *View, task int) (why string, earliest float64, ok bool) {
	t := &v.Problem.Tasks[task]
	shortest, earliest := math.Inf(1), math.Inf(1)
	for class := range v.Problem.Cluster.Classes {
		_, option, wanted := v.Want(task, class)
		if !v.Problem.Cluster.Classes[class].HasRoom(t, option) {
			continue
		}
		if wanted {
			return "", 0, true
		}
		start := v.StartOnNew(task, class)
		if v.calendar.onByClass[class] > 0 {
			start = v.StartFor(task, v.Now)
		}
		fastest := t.Options[option].Response.MinTime()
		shortest, earliest = min(shortest, fastest), min(earliest, start+fastest)
	}
	why = t.whyTooLong(t.Deadline-v.Problem.nextSlot(t.Arrival), shortest)
	return why, earliest, why == ""
}

// whyTooLong says why a task can't be done in the seconds that are left that takes so many
// at least, +Inf where no node has room for it; empty where it can.
func (t *Task) whyTooLong(left, shortest float64) (why string) {
	switch {
	case len(t.Options) == 0:
		return "no GPU model of the cluster suits it: it names others, or its workload has no model there"
	case math.IsInf(shortest, 1) && len(t.Partitions) > 0:
		return "no node of its partition has the GPUs, CPUs and memory that it asks for"
	case math.IsInf(shortest, 1) && t.IsGang():
		return fmt.Sprintf("no %d nodes of a kind have the GPUs, CPUs and memory that it asks for together",
			t.Options[0].NodeCount())
	case math.IsInf(shortest, 1):
		return "no node has the GPUs, CPUs and memory that it asks for"
	case min(left, t.Limit) >= shortest*(1-feasibleSlack):
		return ""
	case t.Limit < shortest && t.Limit <= left:
		return fmt.Sprintf("needs %.6g s at the fastest clocks, its limit is %.6g s", shortest, t.Limit)
	}
	return fmt.Sprintf("needs %.6g s at the fastest clocks, %.6g s remain to its deadline", shortest, left)
}
