package share

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// Placement is an answer to an instance.
type Placement struct {
	GPUs [][]int         // by task: the GPUs that it runs on; nil where it has no place
	MHz  []dvfsmodel.MHz // by GPU: its frequency; 0: asleep
}

// Evaluation is what a placement takes and what it breaks, by the instance's
// contention whatever problem it was made for.
type Evaluation struct {
	PowerW        float64
	GPUsOn        int
	ServersOn     int
	Unplaced      int       // tasks without a place
	Violations    int       // tasks that are slowed down more than they allow
	WorstSlowdown float64   // the greatest slowdown of a task; 1 where nothing runs
	OverMemory    int       // GPUs whose tasks need more memory than there is
	Slowdown      []float64 // by task: the greatest of its GPUs; 0 where it has no place
	TooSlow       int       // tasks that the frequency alone slows down more than they allow
	Faults        []string  // what no placement may be: wrong GPUs, counts or frequencies
}

// Feasible reports whether all tasks have a place, memory holds and no task is
// slowed down too much.
func (v *Evaluation) Feasible() bool { return v.FeasibleFor(Safe) }

// FeasibleFor is [Evaluation.Feasible] by what the problem counts as slowing a
// task down.
func (v *Evaluation) FeasibleFor(problem Problem) bool {
	slow := v.Violations
	if problem == AsPrinted {
		slow = v.TooSlow
	}
	return v.Unplaced == 0 && slow == 0 && v.OverMemory == 0 && len(v.Faults) == 0
}

// Evaluate says what a placement takes and what it breaks. It believes nothing
// and shares no code with what places.
func Evaluate(in *sharing.Instance, p Placement) Evaluation {
	j := evaluator{
		in: in, p: p, result: Evaluation{WorstSlowdown: 1, Slowdown: make([]float64, len(in.Tasks))},
	}
	for server := range in.Servers {
		for _, mem := range in.Servers[server].GPUMemGB {
			j.gpus = append(j.gpus, evaluatedGPU{server: server, memGB: mem})
		}
	}
	j.collectTasks()
	j.checkClocks()
	j.checkSlowdowns()
	j.sumPower()
	return j.result
}

// evaluator is a placement being judged.
type evaluator struct {
	in     *sharing.Instance
	p      Placement
	gpus   []evaluatedGPU
	result Evaluation
}

type evaluatedGPU struct {
	server int
	memGB  float64
	tasks  []int
}

func (j *evaluator) addFault(format string, args ...any) {
	j.result.Faults = append(j.result.Faults, fmt.Sprintf(format, args...))
}

// collectTasks finds out what runs where.
func (j *evaluator) collectTasks() {
	if len(j.p.GPUs) != len(j.in.Tasks) {
		j.addFault("places of %d tasks, want %d", len(j.p.GPUs), len(j.in.Tasks))
	}
	for l := range j.in.Tasks {
		if l >= len(j.p.GPUs) || len(j.p.GPUs[l]) == 0 {
			j.result.Unplaced++
			continue
		}
		on := j.p.GPUs[l]
		if len(on) != j.in.Tasks[l].GPUs {
			j.addFault("task %s is on %d GPUs, want %d", j.in.Tasks[l].ID, len(on), j.in.Tasks[l].GPUs)
		}
		for i, g := range on {
			switch {
			case g < 0 || g >= len(j.gpus):
				j.addFault("task %s is on GPU %d, want 0 to %d", j.in.Tasks[l].ID, g, len(j.gpus)-1)
			case slices.Contains(on[:i], g):
				j.addFault("task %s is on GPU %d twice", j.in.Tasks[l].ID, g)
			default:
				j.gpus[g].tasks = append(j.gpus[g].tasks, l)
			}
		}
	}
}

// checkClocks looks at the frequencies.
func (j *evaluator) checkClocks() {
	if len(j.p.MHz) != len(j.gpus) {
		j.addFault("frequencies of %d GPUs, want %d", len(j.p.MHz), len(j.gpus))
	}
	for g := range j.gpus {
		switch f := j.mhz(g); {
		case f == 0 && len(j.gpus[g].tasks) > 0:
			j.addFault("GPU %d sleeps, but has tasks", g)
		case f != 0 && !slices.Contains(j.in.Physics.LevelsMHz, f):
			j.addFault("GPU %d runs at %g MHz, want one of the levels", g, f)
		}
	}
}

func (j *evaluator) mhz(gpu int) dvfsmodel.MHz {
	if gpu >= len(j.p.MHz) {
		return 0
	}
	return j.p.MHz[gpu]
}

// checkSlowdowns works out by how much each task is slowed down: in a slot a GPU
// does at most a slot's work, and slower than at f_max.
func (j *evaluator) checkSlowdowns() {
	byFrequency := make([]float64, len(j.in.Tasks))
	for g := range j.gpus {
		f, tasks := j.mhz(g), j.gpus[g].tasks
		if len(tasks) == 0 || f <= 0 {
			continue
		}
		stretch := math.Pow(float64(slices.Max(j.in.Physics.LevelsMHz)/f), j.in.Physics.Beta)
		slowdown := stretch * j.slotsNeeded(tasks) * j.interference(g)
		for _, l := range tasks {
			j.result.Slowdown[l] = max(j.result.Slowdown[l], slowdown)
			byFrequency[l] = max(byFrequency[l], stretch)
		}
	}
	for l, slowdown := range j.result.Slowdown {
		j.result.WorstSlowdown = max(j.result.WorstSlowdown, slowdown)
		if slowdown > j.in.Tasks[l].Kappa+sharing.Tolerance {
			j.result.Violations++
		}
		if byFrequency[l] > j.in.Tasks[l].Kappa+sharing.Tolerance {
			j.result.TooSlow++
		}
	}
}

// slotsNeeded returns how many slots a GPU needs for a slot of its tasks, on average.
func (j *evaluator) slotsNeeded(tasks []int) float64 {
	needed, slots := 0.0, len(j.in.Tasks[tasks[0]].UtilPct)
	for slot := range slots {
		percent := 0.0
		for _, l := range tasks {
			percent += j.in.Tasks[l].UtilPct[slot]
		}
		busy := math.Max(percent, 100) / 100
		if curve := j.in.Contention; curve != nil {
			busy = math.Pow(busy, curve.Exponent)
		}
		needed += busy
	}
	if slots == 0 {
		return 1
	}
	return needed / float64(slots)
}

// interference returns what a GPU's tasks cost each other beside the work, by their number
// and their memory.
func (j *evaluator) interference(gpu int) float64 {
	tasks, curve := j.gpus[gpu].tasks, j.in.Contention
	if curve == nil || len(tasks) < 2 {
		return 1
	}
	need := 0.0
	for _, l := range tasks {
		need += j.in.Tasks[l].MemGB
	}
	full := math.Min(1, need/j.gpus[gpu].memGB)
	return 1 + float64(len(tasks)-1)*curve.ByTask + full*curve.ByMemory
}

// sumPower adds up what is on, and looks at memory.
func (j *evaluator) sumPower() {
	on := make([]bool, len(j.in.Servers))
	for g := range j.gpus {
		need := 0.0
		for _, l := range j.gpus[g].tasks {
			need += j.in.Tasks[l].MemGB
		}
		if need > j.gpus[g].memGB+1e-9 {
			j.result.OverMemory++
		}
		if f := j.mhz(g); f > 0 {
			j.result.PowerW += j.in.Physics.BaseW + j.in.Physics.WPerMHz*float64(f)
			j.result.GPUsOn++
			on[j.gpus[g].server] = true
		}
	}
	for server, is := range on {
		if is {
			j.result.PowerW += j.in.Servers[server].StaticW + j.in.Servers[server].OtherW
			j.result.ServersOn++
		}
	}
}
