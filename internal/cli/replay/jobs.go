package replay

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// add adds a past job to the batch, if it can be planned.
func (h *historyReplay) add(batch *queue.Batch, cluster *planner.Cluster, at int) {
	p := &h.past[at]
	span := p.RunTime().Or(0)
	gpus, model := int(p.GPUs.Or(0)), h.modelOn(p)
	widest := widestNode(cluster, model)
	nodes := nodesOf(p, gpus, widest)
	each := (gpus + nodes - 1) / nodes // GPUs on a node
	even := gpus == each*nodes
	switch {
	case span <= 0:
		h.excluded.NoTime++
		return
	case widest == 0:
		h.excluded.Elsewhere++
		return
	case each > widest:
		h.excluded.TooWide++
		return
	case even && nodes > 1 && !slices.ContainsFunc(cluster.Classes, func(k planner.NodeClass) bool {
		return (model == "" || k.Model == model) && k.GPUs >= each && (k.Count == 0 || k.Count >= nodes)
	}):
		h.excluded.TooMany++
		return
	}
	if h.begin.IsZero() {
		h.begin = p.Submitted
	}
	job := queue.NewJob(p.JobID)
	job.User, job.Name, job.Pos.File = p.User, string(p.Name), h.name
	job.Arrival, job.Runtime = p.Submitted.Sub(h.begin).Seconds(), span
	limit := p.Limit.Seconds()
	if !math.IsInf(limit, 1) {
		// What ran longer may do so again, and a margin must not forbid default clocks.
		job.Limit = max(limit, span*(1+h.setup.Config.Safety.LimitMargin))
		limit = max(limit, span)
	}
	kind := h.workload(&job, p, float64(gpus))
	parts := nodes // one for each node, which start as they can
	switch {
	case nodes > 1 && even:
		parts, each, job.Nodes = 1, gpus, nodes
		h.excluded.Several++
	case nodes > 1:
		h.excluded.Uneven++
	}
	for n := range parts {
		part := job
		if parts > 1 {
			part.ID = fmt.Sprintf("%s/%d", p.JobID, n+1)
		}
		part.ID = fmt.Sprintf("%s@%d", part.ID, at) // ids come again
		part.RuntimeModel = queue.AnyModel          // of the GPU model that it names, or that h.unnamed says
		part.GPUs = []queue.GPUCount{{Model: model, Count: min(each, gpus-n*each)}}
		if model == "" && !h.takeUnnamed(&part, p.JobID) {
			return
		}
		batch.Jobs = append(batch.Jobs, part)
		h.jobs = append(h.jobs, historyJob{past: at, limit: limit, span: span, kind: kind})
	}
}

// nodesOf is on how many nodes a job ran; where the log doesn't say, as few as hold it in
// equal parts.
func nodesOf(p *record.HistoryJob, gpus, widest int) int {
	nodes := int(p.Nodes.Or(0))
	if nodes < 1 {
		for nodes = 1; nodes < gpus && (gpus%nodes > 0 || gpus/nodes > widest); {
			nodes++
		}
		return nodes
	}
	if each := (gpus + nodes - 1) / nodes; each > 0 && each*(nodes-1) >= gpus {
		return (gpus + each - 1) / each // some nodes have none
	}
	return nodes
}

// takeUnnamed reports whether a job can be planned that names no GPU model.
func (h *historyReplay) takeUnnamed(job *queue.Job, id string) bool {
	ok, warning := h.unnamed.Take(job, id)
	if warning != nil {
		h.warnings = append(h.warnings, warning)
	}
	return ok
}

// modelOn returns the GPU model on which a job ran, "" for any: by the log, or by its partition.
func (h *historyReplay) modelOn(p *record.HistoryJob) string {
	return cmp.Or(h.modelName(p.GPUModel), h.unnamed.Model(p.Partition))
}

// modelName returns the name of a profile for a job's GPU model, "" for any. One that has no
// profile keeps its own.
func (h *historyReplay) modelName(gpuModel string) string {
	if profile, err := h.setup.Config.Profiles().Lookup(gpuModel); gpuModel != "" && err == nil {
		return profile.Name
	}
	return gpuModel
}

// widestNode returns how many GPUs the widest node of a GPU model has, "" for any; 0: there
// are none.
func widestNode(cluster *planner.Cluster, model string) (widest int) {
	for i := range cluster.Classes {
		if k := &cluster.Classes[i]; model == "" || k.Model == model {
			widest = max(widest, k.GPUs)
		}
	}
	return widest
}

// workload has a job respond as its kind does, where that is known when it starts, and returns the kind.
func (h *historyReplay) workload(job *queue.Job, p *record.HistoryJob, gpus float64) *jobKind {
	energy, metered := p.EnergyJ.Get()
	if metered {
		h.meteredJobs++
		h.measuredJ += energy
	} else {
		h.excluded.NoPower++
	}
	key, model := p.User+"\x00"+record.NameKind(p.Name), h.modelOf(string(p.Name))
	if model != "" { // names that differ in digits may be of several models
		key += "\x00" + model
	}
	k := h.kinds[key]
	if k == nil {
		k = &jobKind{model: model}
		h.kinds[key] = k
	}
	if p.State == string(slurm.Timeout) {
		// How much it had to do nobody knows: slower clocks would only have done less.
		h.excluded.AtDefault++
		job.Power = h.limits.PerGPU(p).Or(0)
		return k
	}
	k.jobs++
	if metered {
		k.energy += energy
		k.seconds += gpus * job.Runtime
	}
	switch {
	case k.model != "":
		h.excluded.KnownJobs++
	case k.jobs <= h.learning:
		h.excluded.Learning++
		job.Power = h.limits.PerGPU(p).Or(0)
		return k
	default:
		h.excluded.PriorJobs++
	}
	job.Workload = key
	return k
}

// modelOf returns the workload in the models file of jobs of a name, or "".
func (h *historyReplay) modelOf(name string) string {
	if h.setup.Models == nil {
		return ""
	}
	for _, n := range h.names {
		if ok, err := path.Match(n[0], name); ok && err == nil {
			return n[1]
		}
	}
	if h.setup.Models.Check(name) == nil {
		return name
	}
	return ""
}

func (l *historyExclusions) text() string {
	parts := terminal.TextsOf(terminal.Present(
		terminal.Count(l.NoGPUs, "without GPUs"),
		terminal.Count(l.Elsewhere, "on GPU models that the cluster hasn't"),
		terminal.Count(l.NoTime, "without run time"),
		terminal.Count(l.TooWide, "with more GPUs by node than any node has"),
		terminal.Count(l.TooMany, "on more nodes than there are"),
	), func(part terminal.Counted) string { return report.FormatCount(part.N) + " " + part.What })
	return cmp.Or(strings.Join(parts, ", "), "none")
}
