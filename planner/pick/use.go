package pick

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// classUsage counts the GPUs in use of each node class.
type classUsage struct {
	problem *planner.Problem
	view    *planner.View
	total   []float64 // GPUs by class; +Inf: as many as wanted
	busy    []float64
}

func newClassUsage(v *planner.View) classUsage {
	classes := v.Problem.Cluster.Classes
	u := classUsage{
		problem: v.Problem, view: v, total: make([]float64, len(classes)),
		busy: make([]float64, len(classes)),
	}
	for i := range classes {
		if u.total[i] = float64(classes[i].Count * classes[i].GPUs); classes[i].Count == 0 {
			u.total[i] = math.Inf(1)
		}
	}
	return u
}

// take adds the GPUs of a task that starts, or with sign -1 takes off those of one
// that ends.
func (u *classUsage) take(task int, a *planner.Assignment, sign float64) {
	u.busy[u.view.Node(int(a.Node)).Class] += sign * float64(a.GPUCount()) * u.problem.Tasks[task].Share
}

// fits reports whether a pair's class has as many GPUs free as it needs.
func (u *classUsage) fits(p *pair) bool { return p.GPUs <= u.total[p.class]-u.busy[p.class]+shareSlack }

// usageWith is the part of its class that is in use once a pair has started.
func (u *classUsage) usageWith(p *pair) float64 { return (u.busy[p.class] + p.GPUs) / u.total[p.class] }

// shareSlack is the rounding that a sum of shares may carry.
const shareSlack = 1e-9
