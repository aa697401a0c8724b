package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// running is what runs on a node at the present.
type running struct {
	node  int       // of the plan
	tasks []int     // that are on it, and perhaps on others
	free  []float64 // by GPU: when what runs there ends, seconds
	held  []holding // cores and memory, where they count
	parts []gpuPart // of GPUs
}

// setRunning lets nodes begin with what runs at the present, where a plan has it.
func (l *listSchedule) setRunning(plan *planner.Plan) {
	if l.p.Snapshot == nil {
		return
	}
	begun := map[int32]*nodeList{}
	for _, r := range l.p.Snapshot.Running {
		a := &plan.Assignments[r.Task]
		if a.Node < 0 {
			continue
		}
		for part := range a.Parts {
			n := begun[part.Node]
			if n == nil {
				n = l.firstFresh(plan.Nodes[part.Node].Class)
				n.runs = &running{
					node: int(part.Node), free: make([]float64, len(l.classes[n.class].clock.free)),
				}
				begun[part.Node] = n
			}
			n.runs.tasks = append(n.runs.tasks, r.Task)
			if l.needs != nil {
				n.runs.held = append(n.runs.held, holding{*l.need(int32(r.Task), n.class), a.End})
			}
			for _, g := range part.GPUs.Indexes() {
				n.runs.free[g] = max(n.runs.free[g], a.End)
				if share := l.p.Tasks[r.Task].Share; share < 1 {
					n.runs.parts = append(n.runs.parts, gpuPart{int32(g), share, a.End})
				}
			}
		}
	}
	for n := range l.nodes {
		if r := l.nodes[n].runs; r != nil {
			l.nodes[n].begin = slices.Sorted(slices.Values(r.free))
		}
	}
}

// firstFresh returns the first node of a class on which nothing runs at the present.
func (l *listSchedule) firstFresh(class int) *nodeList {
	return &l.nodes[slices.IndexFunc(l.nodes, func(n nodeList) bool {
		return n.class == class && n.runs == nil
	})]
}

// copyPlan takes the places of a plan, and for each job the clocks that are nearest. ok
// is false where a job can't be at its place by its menu.
func (l *listSchedule) copyPlan(plan *planner.Plan) (ok bool) {
	l.removeAll()
	runs, numbers := l.p.RunningTasks(), l.nodeNumbers(plan)
	for _, task := range tasksByStart(plan) {
		if runs != nil && runs[task] {
			continue
		}
		i, a := int32(task), &plan.Assignments[task]
		m := l.menu(i, plan.Nodes[a.Node].Class)
		if m.gpus == 0 {
			return false
		}
		nodes := make([]int32, 0, m.nodes)
		for part := range a.Parts {
			nodes = append(nodes, numbers[part.Node])
		}
		l.add(i, nodes, nearestLevel(&m.time, a.Point.Time))
	}
	return l.retimeAll()
}

// nodeNumbers are by a plan's nodes those of the schedule: for what runs at the present the
// ones that begin with it, and in each class the first others for nodes with tasks.
func (l *listSchedule) nodeNumbers(plan *planner.Plan) []int32 {
	numbers := make([]int32, len(plan.Nodes))
	others := make([][]int32, len(l.classes)) // nodes on which nothing runs at the present
	for n := range l.nodes {
		if v := &l.nodes[n]; v.runs == nil {
			others[v.class] = append(others[v.class], int32(n))
		}
	}
	for n := range numbers {
		numbers[n] = -1
	}
	for n := range l.nodes {
		if r := l.nodes[n].runs; r != nil {
			numbers[r.node] = int32(n)
		}
	}
	for n, tasks := range tasksByNode(plan) {
		if class := plan.Nodes[n].Class; len(tasks) > 0 && numbers[n] < 0 {
			numbers[n] = others[class][0]
			others[class] = others[class][1:]
		}
	}
	return numbers
}

func nearestLevel(times *[priceCount]float64, want float64) int32 {
	best := freeOptimum
	for g := range times {
		if math.Abs(times[g]-want) < math.Abs(times[best]-want) {
			best = g
		}
	}
	return int32(best)
}
