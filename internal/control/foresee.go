package control

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Upper is how long a queued job runs at most at default clocks, on the
// slowest GPU model for which its workload has a model; false: there is none.
func (c *Controller) Upper(j *slurm.Job) (time.Duration, bool) {
	longest := 0.0
	for _, name := range c.gpuModels() {
		if m, pt, ok := c.foresee(j, name); ok {
			longest = max(longest, m.upper(&pt, c.settings.Load().Live.TimeMargin))
		}
	}
	return time.Duration(longest * float64(time.Second)), longest > 0
}

// Energy is what a queued job's GPUs are expected to use at default clocks on a
// GPU model, in joules; false: its workload has no model there.
func (c *Controller) Energy(j *slurm.Job, gpuModel string) (float64, bool) {
	_, pt, ok := c.foresee(j, gpuModel)
	return float64(pt.Energy) * float64(c.gpusOfJob(j.ID)), ok
}

// foresee is what a queued job's workload does at default clocks. It asks
// nobody: a workload that isn't in memory isn't known.
func (c *Controller) foresee(j *slurm.Job, gpuModel string) (*model, dvfsmodel.Point, bool) {
	job, gpus := c.jobs.get(j.ID), c.gpusOfJob(j.ID)
	if job == nil || gpus == 0 || job.source == (source{}) {
		return nil, dvfsmodel.Point{}, false
	}
	key := record.WorkloadKey{Cluster: c.options.Cluster, Workload: job.source.workload(gpus), GPUModel: gpuModel}
	m := c.models.get(key).model
	if m == nil {
		return nil, dvfsmodel.Point{}, false
	}
	base := m.shape.base()
	pt := m.at(dvfsmodel.Point{Core: base.Core, Mem: base.Mem})
	return m, pt, m.covers(&pt)
}

// gpusOfJob is how many GPUs a job that is known wants.
func (c *Controller) gpusOfJob(id slurm.JobID) int {
	if job := c.jobs.get(id); job != nil {
		return int(min(job.gpus, maxGPUs))
	}
	return 0
}
