package control

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Upper is how long a queued job runs at most at default clocks, on the
// slowest GPU model for which its workload has a model; false: there is none.
func (c *Controller) Upper(j *slurm.Job) (time.Duration, bool) {
	workload := c.workloadOf(j.ID)
	if workload == "" {
		return 0, false
	}
	longest := c.upperAtDefault(workload)
	return longest, longest > 0
}

// Energy is what a queued job's GPUs are expected to use at default clocks on a
// GPU model, in joules; false: its workload has no model there.
func (c *Controller) Energy(j *slurm.Job, gpuModel string) (float64, bool) {
	workload := c.workloadOf(j.ID)
	if workload == "" {
		return 0, false
	}
	_, pt, ok := c.foresee(workload, gpuModel)
	return float64(pt.Energy) * float64(c.jobs.Get(j.ID).GPUs), ok
}

// fewRuns are too few to give advice by.
const fewRuns = 3

// upperAtDefault is how long a workload runs at most at default clocks on the
// slowest GPU model on which it ran more than a few times; 0: there is none.
func (c *Controller) upperAtDefault(workload string) time.Duration {
	longest := 0.0
	for _, name := range c.gpuModels() {
		if m, pt, ok := c.foresee(workload, name); ok && m.Model.Samples+m.Hits > fewRuns {
			longest = max(longest, m.Model.UpperTime(&pt, c.settings.Load().Live.TimeMargin))
		}
	}
	return time.Duration(longest * float64(time.Second))
}

// foresee is what a workload does at default clocks.
func (c *Controller) foresee(workload, gpuModel string) (learn.View, dvfsmodel.Point, bool) {
	m := c.learner.Model(record.WorkloadKey{
		Cluster: c.options.Cluster, Workload: workload, GPUModel: gpuModel,
	})
	pt, ok := m.AtDefault()
	return m, pt, ok
}

// workloadOf is the workload of a queued job as far as memory tells; "" if it
// doesn't.
func (c *Controller) workloadOf(id slurm.JobID) string {
	job := c.jobs.Get(id)
	if job == nil || job.GPUs == 0 || job.GPUs > epdapi.MaxGPUs || job.Source == (jobs.Source{}) {
		return ""
	}
	return job.Source.Workload(int(job.GPUs))
}
