package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// The counter of a GH200 has its CPU in it. Outcomes say so, and their nodes' CPUs aren't
// counted a second time; delivered again they are the same.
func TestAnEnergyOfAModuleIsMarkedInItsOutcome(t *testing.T) {
	r := newRig(t, nil)
	for from, want := range map[record.Source]record.Source{
		record.Counter: record.ModuleCounter, record.Integrated: record.ModuleSamples,
	} {
		o := record.Outcome{
			RunID: "run-" + string(from), JobID: 7, Node: "n1", Workload: "w", GPUModel: "NVIDIA GH200 480GB",
			Arm: live.ArmTreated, ExitState: record.Completed, GPUs: []string{"GPU-a"}, Ended: start,
			TimeS: live.Known(100), GPUEnergyJ: live.Known(40_000), GPUSource: from,
		}
		again := o
		r.record(&o, store.Stored)
		r.record(&again, store.Repeated)
		got, err := r.store.OutcomesOfJob(t.Context(), "alpha", 7)
		if err != nil || len(got) == 0 {
			t.Fatal(got, err)
		}
		last := got[len(got)-1]
		if last.GPUSource != want || last.NodeEnergyJ != o.GPUEnergyJ || last.NodeSource != record.Modelled ||
			!strings.Contains(last.GPUSource.Words(), "CPUs included") {
			t.Errorf("%s: %s, node %v by %s; want %s", from, last.GPUSource, last.NodeEnergyJ, last.NodeSource,
				want)
		}
	}
}

func TestSavingsOfModulesAreNeverAddedToThoseOfGPUs(t *testing.T) {
	r := newRig(t, nil)
	arms := func(model string, treated, held float64) {
		for i := range 4 {
			for arm, joules := range map[live.Arm]float64{live.ArmTreated: treated, live.ArmHeldOut: held} {
				r.ended(&record.Outcome{
					RunID: fmt.Sprintf("%s-%s-%d", model, arm, i), Workload: "w", GPUModel: model, Arm: arm,
					ExitState: record.Completed, GPUEnergyJ: live.Known(joules + float64(i)),
				})
			}
		}
	}
	arms("GH200", 500, 700)
	s := r.savings()
	if s.EnergyOf != epdapi.OfModules || s.Module != nil || s.GPU.Runs != 4 || int(s.GPU.SavedJ) != 800 {
		t.Errorf("modules alone: %+v", s)
	}
	arms("V100", 80, 100)
	s = r.savings()
	if s.EnergyOf != "" || s.Module == nil || int(s.Module.SavedJ) != 800 || s.Module.Runs != 4 ||
		int(s.GPU.SavedJ) != 80 || s.GPU.Runs != 4 {
		t.Errorf("modules beside GPUs: %+v, %+v", s, s.Module)
	}
}
