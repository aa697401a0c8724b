package slurmqueue_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Whatever a user submits, the others' jobs are put in order.
func TestNoJobKeepsTheOthersFromBeingPutInOrder(t *testing.T) {
	p := policyOf(t, "value")
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) live.Number {
			v := rapid.SampledFrom([]float64{
				-1, 0, 1e-9, 0.5, 1, 59, 3600, 1e5, 1e9, 1e15, 1e300,
			}).Draw(t, name)
			if rapid.Bool().Draw(t, name+" known") {
				return live.Known(v)
			}
			return live.Number{}
		}
		q := &epdapi.Queue{
			Nodes: v100s(8), Jobs: []epdapi.QueuedJob{waits(1, 1, 1000, 100), waits(2, 1, 10, 50)},
		}
		for id := range int64(rapid.IntRange(1, 5).Draw(t, "jobs")) {
			text := rapid.SampledFrom([]string{
				"", "ada", "a\x00b", "=1", "a\nb", "\xff", "gpu:v100", "\"", "V100",
			})
			q.Jobs = append(q.Jobs, epdapi.QueuedJob{
				ID: 10 + id, User: text.Draw(t, "user"), Name: text.Draw(t, "name"),
				Partition: text.Draw(t, "partition"),
				State: string(rapid.SampledFrom([]slurm.State{
					slurm.Pending, slurm.Running, "COMPLETING", "odd",
				}).Draw(t, "state")),
				Tasks:    rapid.SampledFrom([]int{-1, 0, 1, 3, 50}).Draw(t, "tasks"),
				Nodes:    rapid.SampledFrom([]int{-1, 0, 1, 2, 100_000}).Draw(t, "nodes"),
				GPUs:     rapid.SampledFrom([]int{0, 1, 7, 8, 9, 64, 65, 1 << 20}).Draw(t, "GPUs"),
				GPUModel: text.Draw(t, "GPU model"),
				Workload: text.Draw(t, "workload"), Limit: live.LimitOfSeconds(number("limit").Or(-1)),
				AgeS: number("age"), EndsS: number("ends"),
				DeadlineS: number("deadline"), RuntimeS: number("runtime"), PowerW: number("power"),
				HandsOff: rapid.Bool().Draw(t, "hands off"),
			})
		}
		o, err := slurmqueue.NewOrder(t.Context(), q, usual(), p)
		if err != nil {
			t.Fatalf("%v, with %+v", err, q.Jobs[2:])
		}
		for _, id := range []slurm.JobID{1, 2} {
			found := false
			for _, other := range o.Jobs {
				found = found || other == id
			}
			if !found {
				t.Errorf("job %s has no place: %v", id, o.Jobs)
			}
		}
	})
}
