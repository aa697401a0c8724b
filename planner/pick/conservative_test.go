package pick_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/pick"
)

// referenceTask asks a Conservative for the end of each task as it arrives, and leaves the
// rest to another picker.
type referenceTask struct {
	planner.Picker
	beside *pick.Conservative
	ends   []float64
}

func (b *referenceTask) Arrive(tasks []int) {
	for _, task := range tasks {
		b.ends = append(b.ends, b.beside.BookArrival(task))
	}
	b.Picker.Arrive(tasks)
}

func TestConservativeBackfillingLeavesThoseWhoCameBeforeAlone(t *testing.T) {
	job := func(arrival float64, gpus int, seconds float64) planner.Task {
		o := planner.Option{Model: "A", GPUs: gpus, Response: &dvfsmodel.Fixed{At: dvfsmodel.Point{
			Scaling: dvfsmodel.DefaultScaling(), Time: seconds, Power: 100,
			Energy: dvfsmodel.Watt(100).Over(seconds),
		}}}
		task := planner.NewTask("", o)
		task.Arrival = arrival
		return task
	}
	for _, c := range []struct {
		name  string
		tasks []planner.Task
		ends  []float64
	}{
		{"one that is alone waits for its node", []planner.Task{job(0, 4, 100)}, []float64{105}},
		{"a second one shares it", []planner.Task{job(0, 2, 100), job(1, 2, 100)}, []float64{105, 101}},
		{
			"one that finds no room waits for it",
			[]planner.Task{job(0, 4, 100), job(1, 2, 50)},
			[]float64{105, 155},
		},
		{
			"a short one goes in front of one that waits",
			[]planner.Task{job(0, 2, 100), job(1, 4, 50), job(2, 2, 90)},
			[]float64{105, 155, 92},
		},
		{
			"a long one doesn't",
			[]planner.Task{job(0, 2, 100), job(1, 4, 50), job(2, 2, 110)},
			[]float64{105, 155, 265},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &planner.Problem{
				Mode: planner.Online, Tasks: c.tasks, Cluster: planner.Cluster{Classes: []planner.NodeClass{
					{Name: "A", Model: "A", Count: 1, GPUs: 4, TurnOnDelay: 5},
				}},
			}
			var b *referenceTask
			schedule(t, p, nil, func(v *planner.View, pl planner.Placer) planner.Picker {
				b = &referenceTask{Picker: pick.FCFS(v, pl), beside: pick.NewConservative(v)}
				return b
			})
			for i, want := range c.ends {
				if math.Abs(b.ends[i]-want) > 1e-9 {
					t.Errorf("task %d ends at %v s, want %v", i, b.ends[i], want)
				}
			}
		})
	}
}
