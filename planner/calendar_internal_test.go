package planner

import (
	"math"
	"math/rand/v2"
	"testing"
)

// From earliestRoom on a task has room on a node, and at no end of a reservation before it.
func TestANodeHasRoomFromItsEarliestRoomOn(t *testing.T) {
	rng, late := rand.New(rand.NewPCG(1, 0)), 0
	for range 3000 {
		k := &NodeClass{Model: "A", GPUs: 1 + rng.IntN(4), CPUs: 16 * float64(rng.IntN(2)), MemGiB: 64}
		draw := func() Task {
			task := NewTask("", Option{Model: "A", GPUs: 1 + rng.IntN(k.GPUs)})
			if task.CPUs, task.MemGiB = float64(rng.IntN(9)), float64(rng.IntN(40)); rng.IntN(2) == 0 {
				task.Options[0].GPUs, task.Share = 1, [...]float64{0.1, 0.25, 0.3, 0.5}[rng.IntN(4)]
			}
			return task
		}
		c := calendar{keepsReservations: true}
		c.add(0, k.GPUs)
		for end := 10 * rng.Float64(); rng.IntN(12) > 0; end = 10 * rng.Float64() {
			held, gpus := draw(), GPUSet(0)
			for gpus.Len() < held.Options[0].GPUs {
				gpus |= 1 << uint(rng.IntN(k.GPUs))
			}
			c.holdResources(0, &held, 0, gpus, 2, end)
		}
		task, held := draw(), c.reservations[0]
		from := k.earliestRoom(&task, 0, held)
		if _, ok := k.gpusFreeFrom(&task, 0, held, from); !ok {
			t.Fatalf("no room from %v on beside %+v for %+v", from, held, task)
		}
		if !math.IsInf(from, -1) {
			late++
		}
		for _, h := range held {
			if _, ok := k.gpusFreeFrom(&task, 0, held, h.end); ok && h.end < from {
				t.Fatalf("room from %v on, not only from %v, beside %+v for %+v", h.end, from, held, task)
			}
		}
	}
	if late < 500 {
		t.Errorf("only %d tasks had to wait", late)
	}
}
