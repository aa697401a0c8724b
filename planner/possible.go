package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
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
	if len(t.Options) == 0 {
		why += v.Problem.Cluster.modelsText(t)
	}
	if len(t.Options) > 0 && math.IsInf(shortest, 1) {
		why += v.Problem.Cluster.roomText(t)
	}
	return why, earliest, why == ""
}

// modelsText says which GPU models a task that has none of the cluster's names, and which there are.
func (c *Cluster) modelsText(t *Task) string {
	var has []string
	for i := range c.Classes {
		if model := c.Classes[i].Model; !slices.Contains(has, model) {
			has = append(has, model)
		}
	}
	if len(t.Named) > 0 {
		return "it names " + strings.Join(t.Named, ", ") + ", there are " + strings.Join(has, ", ")
	}
	return "its workload has no model on " + strings.Join(has, ", ")
}

// maxRooms is how many classes a reason names.
const maxRooms = 3

// roomText says what a task asks for of a node, what the nodes that it may run on have, the largest first,
// and whether it would fit if it were spread over several.
func (c *Cluster) roomText(t *Task) string {
	type room struct{ class, option int }
	var rooms []room
	for class := range c.Classes {
		if option := t.Option(c.Classes[class].Model); option >= 0 && c.Classes[class].admits(t) {
			rooms = append(rooms, room{class, option})
		}
	}
	if len(rooms) == 0 { // no node of its partition
		return ""
	}
	slices.SortStableFunc(rooms, func(a, b room) int {
		return cmp.Compare(c.Classes[b.class].GPUs, c.Classes[a.class].GPUs)
	})
	o := t.Options[rooms[0].option]
	cpus, mem := t.PerNode(rooms[0].option)
	text := ": it asks for " + sizeText(o.PerNode(), cpus, mem)
	if o.NodeCount() > 1 {
		text += fmt.Sprintf(" on each of %d nodes", o.NodeCount())
	}
	has := make([]string, 0, maxRooms+1)
	for _, r := range rooms[:min(len(rooms), maxRooms)] {
		k := &c.Classes[r.class]
		size := k.sizeText(t)
		if k.Count > 0 && o.NodeCount() > 1 {
			size = [...]string{"1 node of ", fmt.Sprintf("%d nodes of ", k.Count)}[min(k.Count-1, 1)] + size
		}
		has = append(has, k.Name+" has "+size)
	}
	if more := len(rooms) - maxRooms; more > 0 {
		has = append(has, fmt.Sprintf("and %d more kinds of nodes no more", more))
	}
	return text + "; " + strings.Join(has, ", ") + c.spreadText(t)
}

// sizeText returns what an empty node has of what a task asks for.
func (k *NodeClass) sizeText(t *Task) string {
	cpus, mem := k.CPUs, k.MemGiB
	if t.CPUs == 0 {
		cpus = 0
	}
	if t.MemGiB == 0 {
		mem = 0
	}
	return sizeText(k.GPUs, cpus, mem)
}

// sizeText is GPUs, CPUs and memory of a node, those that are known.
func sizeText(gpus int, cpus, mem float64) string {
	parts := []string{fmt.Sprintf("%d GPUs", gpus)}
	if gpus == 1 {
		parts[0] = "1 GPU"
	}
	if cpus > 0 {
		parts = append(parts, fmt.Sprintf("%.6g CPUs", cpus))
	}
	if mem > 0 {
		parts = append(parts, fmt.Sprintf("%.6g GiB", mem))
	}
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// spreadText says on how many nodes a task would fit that is on one; empty: on no number of them.
func (c *Cluster) spreadText(t *Task) string {
	spread := *t
	for i := range t.Options {
		if t.Options[i].NodeCount() > 1 {
			return ""
		}
		o := t.Options[i]
		spread.Options = []Option{o}
		for n := 2; n <= o.GPUs; n++ {
			spread.Options[0].Nodes = n
			if o.GPUs%n == 0 && slices.ContainsFunc(c.Classes, func(k NodeClass) bool {
				return k.Model == o.Model && k.CanRun(&spread, 0)
			}) {
				return fmt.Sprintf("; it would fit on %d nodes (nodes = %[1]d)", n)
			}
		}
	}
	return ""
}

// whyTooLong says why a task can't be done in the seconds that are left that takes so many
// at least, +Inf where no node has room for it; empty where it can.
func (t *Task) whyTooLong(left, shortest float64) (why string) {
	switch {
	case len(t.Options) == 0:
		return "no GPU model of the cluster suits it: "
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
