package learn

import (
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
)

// What workloads have in common is learnt from others' runs, too: models that rest on
// it are fitted anew.
func TestWhatWorkloadsHaveInCommonForgetsTheRunsThatAreTakenOut(t *testing.T) {
	var p priors
	key := func(workload string) record.WorkloadKey {
		return record.WorkloadKey{Cluster: "alpha", Workload: workload, GPUModel: "V100"}
	}
	samples := make([]dvfsmodel.Sample, 0, len(clocks))
	for _, core := range clocks {
		fc, truth := float64(core/base.Core), memoryBound()
		pt := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
		samples = append(samples, dvfsmodel.Sample{Core: core, Mem: 877, Time: pt.Time, Power: pt.Power})
	}
	for _, workload := range []string{"a", "b", "c", "d"} {
		p.note(key(workload), workloadRuns{samples: samples, user: workload}, base)
	}
	p.learn(priorKey{gpuModel: "V100"})
	with := p.get(priorKey{gpuModel: "V100"}, base, "")
	p.forget(key("none"))
	if p.get(priorKey{gpuModel: "V100"}, base, "") != with {
		t.Error("it forgot what it didn't learn")
	}
	p.forget(key("d"))
	if p.get(priorKey{gpuModel: "V100"}, base, "") == with {
		t.Error("until it has learnt anew it goes by what it learnt")
	}
	p.learn(priorKey{gpuModel: "V100"})
	now := p.get(priorKey{gpuModel: "V100"}, base, "")
	if now == with || len(p.byGPU[priorKey{gpuModel: "V100"}].samples) != 3 {
		t.Errorf("it goes by what it learnt: %v", now == with)
	}
}
