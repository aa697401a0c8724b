package taskset_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/epplan/epplan/lab/taskset"
)

func TestDrawnStreamsOfSharingTasksAreProblemsOfTheKindAskedFor(t *testing.T) {
	for _, spec := range []taskset.SharedSpec{taskset.SharedLikePAI(), taskset.SharedLikePhilly()} {
		p := taskset.Shared(rand.New(rand.NewPCG(1, 2)), &spec)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		work, multi := 0.0, 0
		for i := range p.Tasks {
			task := &p.Tasks[i]
			work += task.Options[0].Response.Default().Time
			if task.Options[0].GPUs == 2 {
				multi++
			}
			if mem := task.Profile.MemGB; mem < spec.MemGB[0] || mem > spec.MemGB[1] {
				t.Errorf("task %d takes %g GB, want %v", i, mem, spec.MemGB)
			}
			if i > 0 && task.Arrival < p.Tasks[i-1].Arrival {
				t.Errorf("task %d arrives before the one before it", i)
			}
		}
		if atOnce := work / p.Tasks[len(p.Tasks)-1].Arrival; math.Abs(atOnce/spec.AtOnce-1) > 0.15 {
			t.Errorf("%.0f tasks at a time, want about %.0f", atOnce, spec.AtOnce)
		}
		if part := float64(multi) / float64(len(p.Tasks)); len(p.Tasks) != spec.Tasks ||
			math.Abs(part-spec.MultiGPU) > 0.03 {
			t.Errorf("%d tasks, %.2f of them on two GPUs, want %d and %g", len(p.Tasks), part, spec.Tasks,
				spec.MultiGPU)
		}
	}
}

func TestDrawnInstancesHaveMoreGPUsThanTasksAndFollowFromTheSeed(t *testing.T) {
	for _, tasks := range []int{1, 2, 32, 128} {
		in := taskset.Consolidation(rand.New(rand.NewPCG(1, 2)), tasks)
		if len(in.Tasks) != tasks || len(in.GPUs()) <= tasks {
			t.Errorf("%d tasks on %d GPUs, want %d on more", len(in.Tasks), len(in.GPUs()), tasks)
		}
		for i := range in.Tasks {
			for _, u := range in.Tasks[i].UtilPct {
				if !(u >= 0 && u <= 100) {
					t.Fatalf("utilisation %g", u)
				}
			}
		}
		if again := taskset.Consolidation(rand.New(rand.NewPCG(1, 2)), tasks); !reflect.DeepEqual(in, again) {
			t.Error("the same seed gives another instance")
		}
	}
}
