package planreport

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

// sharingPartners lists, by job that shares a GPU, the jobs that are on one of its GPUs
// at some time while it runs, in the order of their numbers.
func (r *Result) sharingPartners() map[int][]int {
	beside := make(map[int][]int, len(r.Plan.Shared.Tasks))
	byNode := make(map[int32][]int)
	for _, task := range r.Plan.Shared.Tasks {
		node := r.Plan.Assignments[task].Node
		byNode[node] = append(byNode[node], task)
	}
	for _, tasks := range byNode {
		slices.SortFunc(tasks, func(a, b int) int {
			return cmp.Or(cmp.Compare(r.Plan.Assignments[a].Start, r.Plan.Assignments[b].Start), a-b)
		})
		var running []int
		for _, task := range tasks {
			a := &r.Plan.Assignments[task]
			running = slices.DeleteFunc(running, func(other int) bool {
				return r.Plan.Assignments[other].End <= a.Start
			})
			for _, other := range running {
				if r.Plan.Assignments[other].GPUs&a.GPUs != 0 {
					beside[task], beside[other] = append(beside[task], other), append(beside[other], task)
				}
			}
			running = append(running, task)
		}
	}
	for _, others := range beside {
		slices.Sort(others)
	}
	return beside
}

// slowdown returns how many times its time alone at the highest clock a job takes
// that shares a GPU, and how many times it may.
func (r *Result) slowdown(task int) (takes, tolerates float64) {
	t, a := &r.Problem.Tasks[task], &r.Plan.Assignments[task]
	alone := t.Options[a.Option].Response.Default().Time
	return (a.End - a.Start) / alone, t.MaxSharedRunTime(alone) / alone
}

// sharedTable says of each job that shares a GPU with whom it does and how much
// slower it is for that and for the clocks. It is nil where no GPU is shared.
func (r *Result) sharedTable() *report.Table {
	if r.Plan.Shared == nil {
		return nil
	}
	beside := r.sharingPartners()
	return report.NewTable([]report.Column{
		{Key: "id", Head: "job", Left: true, Max: maxName},
		{Head: "node"},
		{Head: "GPU"},
		{Key: "slowdown"},
		{Head: "slowdown", Note: "× alone"},
		{Key: "kappa"},
		{Head: "tolerates", Note: "× alone"},
		{Key: "slowed"},
		{Key: "beside"},
		{Head: "beside", Left: true},
	}, len(r.Plan.Shared.Tasks), func(i int) []report.Value {
		task := r.Plan.Shared.Tasks[i]
		a, names := &r.Plan.Assignments[task], r.ids(beside[task])
		takes, tolerates := r.slowdown(task)
		_, slowed := slices.BinarySearch(r.Plan.Shared.Slowed, task)
		return []report.Value{
			report.Text(r.Problem.Tasks[task].ID), report.Text(r.nodeName(int(a.Node))), report.GPUs(a.GPUs),
			report.Number(takes), factorValue(takes), report.Number(tolerates), factorValue(tolerates),
			report.JSON(strconv.FormatBool(slowed)), textList(names), report.Text(strings.Join(names, ", ")),
		}
	})
}

// factorValue returns how many times its time alone a job takes, for people.
func factorValue(factor float64) report.Value {
	return report.Text(strconv.FormatFloat(factor, 'f', 3, 64))
}

func (s *Summary) addSharing(r *Result) {
	if r.Plan.Shared == nil {
		return
	}
	s.Shared, s.Slowed, s.WorstSlowdown = len(r.Plan.Shared.Tasks), len(r.Plan.Shared.Slowed), 1
	for _, task := range r.Plan.Shared.Tasks {
		takes, _ := r.slowdown(task)
		s.WorstSlowdown = max(s.WorstSlowdown, takes)
	}
	gpus := map[planner.ClockInterval]bool{}
	for _, spell := range r.Plan.Shared.ClockIntervals {
		gpus[planner.ClockInterval{Node: spell.Node, GPU: spell.GPU}] = true
	}
	s.SharedGPUs = len(gpus)
}
