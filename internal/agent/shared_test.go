package agent_test

import (
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// What a GPU takes that several runs have had is nobody's alone: neither run is booked all of it. A run on
// another GPU is booked its own.
func TestRunsThatShareAGPUAreBookedNoEnergy(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, quick, 0)
	apply(h, a, "r2", 2, dvfsmodel.Setting{}, 0)
	apply(h, a, "r3", 3, dvfsmodel.Setting{}, 1)
	for _, job := range []uint32{2, 1, 3} {
		if err := a.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		closed, err := a.End(t.Context(), job, "n1")
		if err != nil {
			t.Fatal(err)
		}
		if closed.Outcome.Shared != (job != 3) {
			t.Errorf("job %d: shared %v", job, closed.Outcome.Shared)
		}
		o := closed.Outcome
		if _, known := o.GPUEnergyJ.Get(); job != 3 && (known || o.NodeEnergyJ != (live.Number{}) || !o.Shared) {
			t.Errorf("job %d is booked %s J, of the node %s J", job, o.GPUEnergyJ, o.NodeEnergyJ)
		}
	}
}

// Slurm says that others may come to its GPU: nobody knows who was there that epd didn't see.
func TestARunWithAPartOfAGPUIsBookedNoEnergyAlsoAlone(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	r := h.run("r1", 1, dvfsmodel.Setting{}, 0)
	r.Shared = true
	if _, err := a.Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	closed, err := a.End(t.Context(), 1, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if o := closed.Outcome; !o.Shared || o.GPUEnergyJ != (live.Number{}) || o.MeanPowerW != (live.Number{}) {
		t.Errorf("booked %+v", o)
	}
}
