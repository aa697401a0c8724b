package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// classUsage is the tasks that run, as predicted, and the GPUs in use of each node class.
type classUsage struct {
	v       *planner.View
	total   []float64 // GPUs by class; +Inf: as many as wanted
	busy    []float64
	running []runningTask
}

type runningTask struct {
	pair  pair
	start float64
}

func newClassUsage(v *planner.View) classUsage {
	classes := v.Problem.Cluster.Classes
	u := classUsage{v: v, total: make([]float64, len(classes)), busy: make([]float64, len(classes))}
	for i := range classes {
		if u.total[i] = float64(classes[i].Count * classes[i].GPUs); classes[i].Count == 0 {
			u.total[i] = math.Inf(1)
		}
	}
	return u
}

// started adds a task, and tells which pair it is.
func (u *classUsage) started(task int, a *planner.Assignment) pair {
	p := pair{task: task, class: u.v.Node(int(a.Node)).Class, Prediction: planner.Prediction{
		Time: max(a.End-a.Start, math.SmallestNonzeroFloat32),
		GPUs: float64(a.GPUCount()) * u.v.Problem.Tasks[task].Share,
	}}
	u.busy[p.class] += p.GPUs
	u.running = append(u.running, runningTask{pair: p, start: a.Start})
	return p
}

func (u *classUsage) ended(task int, a *planner.Assignment) {
	u.busy[u.v.Node(int(a.Node)).Class] -= float64(a.GPUCount()) * u.v.Problem.Tasks[task].Share
	u.running = slices.DeleteFunc(u.running, func(r runningTask) bool { return r.pair.task == task })
}

// pairs returns a task on each class that suits it.
func (u *classUsage) pairs(task int) []pair {
	u.v.RestrictTask(task, planner.AnyClass)
	var all []pair
	for class := range u.v.Problem.Cluster.Classes {
		if u.v.CanRunOn(task, class) {
			all = append(all, pair{task: task, class: class, Prediction: u.v.Predict(task, class)})
		}
	}
	return all
}

// fits reports whether a pair's class has as many GPUs free as it needs.
func (u *classUsage) fits(p *pair) bool {
	return p.GPUs <= u.total[p.class]-u.busy[p.class]+planner.ShareSlack
}

// usageWith returns the part of its class that is in use once a pair has started.
func (u *classUsage) usageWith(p *pair) float64 { return (u.busy[p.class] + p.GPUs) / u.total[p.class] }

// noPair marks that no task is being offered.
const noPair = -1

// pair is a task on a node class that suits it.
type pair struct {
	task, class int
	planner.Prediction
	key float64 // what it is ranked by
}

// kWh returns an energy in the unit that the PREDICT paper's weights count.
func (p *pair) kWh() float64 { return p.Energy.KWh() }

func (p *pair) work() float64 { return p.GPUs * p.Time }
