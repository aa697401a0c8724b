package config

import (
	"path/filepath"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/sharing"
)

// sharedGPU is how a GPU responds that jobs share by what they use of it. The
// defaults are the CATS paper's V100.
type sharedGPU struct {
	baseW, wPerMHz, beta    float64
	minMHz, maxMHz, stepMHz float64
	contention              string
}

func defaultSharedGPU() sharedGPU {
	p := sharing.PaperPhysics()
	return sharedGPU{
		baseW: p.BaseW, wPerMHz: p.WPerMHz, beta: p.Beta,
		minMHz: float64(p.LevelsMHz[0]), maxMHz: float64(p.Max()), stepMHz: float64(p.StepMHz),
	}
}

func (s *sharedGPU) fields() []field {
	clock := numberRange{max: 1e5, above: true}
	return []field{
		numberField("base_w",
			"Watts of a busy GPU, without the part that grows with its clock.", &s.baseW, nonNegativeRange),
		numberField("w_per_mhz", "Watts per MHz of its core clock.", &s.wPerMHz, nonNegativeRange),
		numberField("beta", "A job takes (max_mhz / clock) to the power of this as long as at max_mhz.",
			&s.beta, numberRange{max: 10}),
		numberField("min_mhz", "Lowest core clock.", &s.minMHz, clock),
		numberField("max_mhz", "Highest core clock, at which jobs' run times are given.", &s.maxMHz, clock),
		numberField("step_mhz", "Step between core clocks.", &s.stepMHz, clock),
		textField("contention", "As contention of [live.sharing], in plans.", &s.contention),
	}
}

// checkTogether notes clocks that aren't in order.
func (s *sharedGPU) checkTogether(d *document) {
	const most = 10_000
	if s.minMHz > s.maxMHz || (s.maxMHz-s.minMHz)/s.stepMHz > most {
		d.faultAt("cluster.sharing", "cluster.sharing has clocks from %v to %v MHz in steps of %v, want at "+
			"most %d of them, ascending",
			s.minMHz, s.maxMHz, s.stepMHz, most)
	}
}

// sharingPhysics returns the power and the run times that the planner reckons with. The
// highest clock is one of them whatever the step.
func (s *sharedGPU) sharingPhysics() sharing.Physics {
	p := sharing.Physics{BaseW: s.baseW, WPerMHz: s.wPerMHz, Beta: s.beta, StepMHz: dvfsmodel.MHz(s.stepMHz)}
	for i := 0; s.minMHz+float64(i)*s.stepMHz < s.maxMHz; i++ {
		p.LevelsMHz = append(p.LevelsMHz, dvfsmodel.MHz(s.minMHz+float64(i)*s.stepMHz))
	}
	p.LevelsMHz = append(p.LevelsMHz, dvfsmodel.MHz(s.maxMHz))
	return p
}

// Contention returns the file with what sharing a GPU of the cluster costs in time;
// empty where none is named. [sharing.ReadCurve] reads it.
func (c *Config) Contention() string {
	return c.resolvePath("cluster.sharing.contention", c.sharedGPU.contention)
}

// resolvePath returns a file that a key names: beside the file that has the key, unless its
// path is absolute.
func (c *Config) resolvePath(key, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	// Which stands for standard input elsewhere.
	if name = filepath.Join(filepath.Dir(c.origin[key].File), name); name == "-" {
		return "./-"
	}
	return name
}

// sharedClass is whether jobs may share the GPUs of a kind of node.
type sharedClass struct {
	share bool
	memGB float64
}

func (s *sharedClass) fields() []field {
	return []field{
		boolField("share",
			"Whether jobs with a profile (util_pct) may share a GPU, by policies such as cats-safe.", &s.share),
		numberField("gpu_mem_gb", "Memory of one GPU in GB, for sharing; 0: not stated.", &s.memGB,
			nonNegativeRange),
	}
}

// complete lets a kind of node be shared.
func (s *sharedClass) complete(d *document, at string, k *planner.NodeClass) {
	if !s.share {
		return
	}
	if s.memGB == 0 {
		d.faultAt(joinKey(at, "share"), "share is true, want gpu_mem_gb above 0 with it")
		return
	}
	k.SharedGB = slices.Repeat([]float64{s.memGB}, k.GPUs)
}
