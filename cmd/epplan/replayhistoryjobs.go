package main

import (
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// add adds a past job to the batch, if it can be planned.
func (h *history) add(batch *queue.Batch, cluster *planner.Cluster, at int) {
	p := &h.past[at]
	span := p.RunTime().Or(0)
	gpus, nodes := int(p.GPUs.Or(0)), max(1, int(p.Nodes.Or(1)))
	each := (gpus + nodes - 1) / nodes // GPUs on a node
	if each*nodes < gpus || each*(nodes-1) >= gpus {
		nodes = (gpus + each - 1) / each // some nodes have none
	}
	model, widest := modelsFor(cluster, p.GPUModel, h)
	switch {
	case span <= 0:
		h.left.NoTime++
		return
	case widest == 0:
		h.left.Elsewhere++
		return
	case each > widest:
		h.left.TooWide++
		return
	}
	if h.begin.IsZero() {
		h.begin = p.Submitted
	}
	job := queue.NewJob(p.JobID)
	job.User, job.Name = p.User, string(p.Name)
	job.Arrival, job.Runtime = p.Submitted.Sub(h.begin).Seconds(), span
	limit := math.Inf(1)
	if p.Limit > 0 {
		limit = p.Limit.Seconds()
		// What ran longer may do so again, and a margin must not forbid default clocks.
		job.Limit = max(limit, span*(1+h.config.Safety.LimitMargin))
		limit = max(limit, span)
	}
	h.workload(&job, p, float64(gpus))
	if nodes > 1 {
		h.left.Several++
	}
	for n := range nodes {
		part := job
		if nodes > 1 {
			part.ID = fmt.Sprintf("%s/%d", p.JobID, n+1)
		}
		part.ID = fmt.Sprintf("%s@%d", part.ID, at) // ids come again
		part.RuntimeModel = queue.AnyModel          // a log that doesn't name the GPU model says it of any
		part.GPUs = []queue.GPUCount{{Model: model, Count: min(each, gpus-n*each)}}
		batch.Jobs = append(batch.Jobs, part)
		h.jobs = append(h.jobs, historyJob{past: at, limit: limit, span: span})
	}
}

// modelsFor is the cluster's name for a job's GPU model, "" for any, and how
// many GPUs its widest node has; 0: there are none.
func modelsFor(cluster *planner.Cluster, gpuModel string, h *history) (name string, widest int) {
	if gpuModel != "" {
		if profile, err := h.config.Profiles().Lookup(gpuModel); err == nil {
			name = profile.Name
		}
	}
	for i := range cluster.Classes {
		if k := &cluster.Classes[i]; k.Model == name || gpuModel == "" {
			widest = max(widest, k.GPUs)
		}
	}
	return name, widest
}

// workload says what is known of how the job responds to clocks.
func (h *history) workload(job *queue.Job, p *record.Past, gpus float64) {
	energy, metered := p.EnergyJ.Get()
	if metered {
		h.metered++
		h.measured += energy
	} else {
		h.left.NoPower++
	}
	if p.State == string(slurm.Timeout) {
		// How much it had to do nobody knows: slower clocks would only have done less.
		h.left.AtDefault++
		job.Power = joblog.PowerPerGPU(p).Or(0)
		return
	}
	key := p.User + "\x00" + string(p.Name)
	k := h.kinds[key]
	if k == nil {
		k = &workloadKind{model: h.modelOf(string(p.Name))}
		h.kinds[key] = k
	}
	k.jobs++
	if metered {
		k.energy += energy
		k.seconds += gpus * job.Runtime
	}
	switch {
	case k.model != "":
		h.left.KnownJobs++
	case k.jobs <= h.learning:
		h.left.Learning++
		job.Power = joblog.PowerPerGPU(p).Or(0)
		return
	default:
		h.left.PriorJobs++
	}
	job.Workload = key
}

// modelOf is the workload in the models file of jobs of a name, or "".
func (h *history) modelOf(name string) string {
	if h.models == nil {
		return ""
	}
	for _, n := range h.names {
		if ok, err := path.Match(n[0], name); ok && err == nil {
			return n[1]
		}
	}
	if h.models.Check(name) == nil {
		return name
	}
	return ""
}

// text says what was left out.
func (l *historyLeft) text() string {
	var parts []string
	for _, part := range []struct {
		n   int
		why string
	}{
		{l.NoGPUs, "without GPUs"},
		{l.Elsewhere, "on GPU models that the cluster hasn't"},
		{l.NoTime, "without run time"},
		{l.TooWide, "with more GPUs by node than any node has"},
	} {
		if part.n > 0 {
			parts = append(parts, report.FormatCount(part.n)+" "+part.why)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
