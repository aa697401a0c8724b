package control

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"iter"
	"math"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/nodes"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Foresight is what jobs of Slurm's queue will do, by the models and profiles of their
// workloads: steering goes by it, and advice to users. Its methods may be called by
// several goroutines.
type Foresight struct {
	options  *Options
	settings func() *Settings
	jobs     *jobs.Tracker
	learner  *learn.Learner
	decider  *decide.Decider
	reports  *nodes.Reports
}

// gpuModels returns the GPU models of which anything is known, in order, each in one spelling.
func (f *Foresight) gpuModels() []string { return f.decider.GPUs.Models(f.learner.GPUModels()) }

// Upper returns how long a queued job runs at most at default clocks, on the
// slowest GPU model for which its workload has a model; false: there is none.
func (f *Foresight) Upper(j *slurm.Job) (time.Duration, bool) {
	workload := f.workloadOf(j.ID)
	if workload == "" {
		return 0, false
	}
	longest := f.upperAtDefault(workload, j.Partition)
	return longest, longest > 0
}

// Energy returns what a queued job's GPUs are expected to use at default clocks on a
// GPU model, in joules; false: its workload has no model there.
func (f *Foresight) Energy(j *slurm.Job, gpuModel string) (float64, bool) {
	workload := f.workloadOf(j.ID)
	if workload == "" {
		return 0, false
	}
	_, pt, ok := f.foresee(workload, j.Partition, gpuModel)
	return float64(pt.Energy) * float64(f.jobs.Get(j.ID).GPUs), ok
}

// fewRuns are too few to give advice by.
const fewRuns = 3

// upperAtDefault returns how long a workload runs at most at default clocks on the
// slowest GPU model on which it ran more than a few times; 0: there is none.
func (f *Foresight) upperAtDefault(workload, partition string) time.Duration {
	var longest time.Duration
	for runs, upper := range f.uppersAtDefault(workload, partition) {
		if runs > fewRuns {
			longest = max(longest, upper)
		}
	}
	return longest
}

// surelyAtDefault returns how long a workload runs at most at default clocks on the slowest GPU model on
// which it is known, and by how many runs; 0: on one of them there aren't at least so many.
func (f *Foresight) surelyAtDefault(workload, partition string, least int) (longest time.Duration, all int) {
	for runs, upper := range f.uppersAtDefault(workload, partition) {
		if runs < least {
			return 0, 0
		}
		longest, all = max(longest, upper), all+runs
	}
	return longest, all
}

// uppersAtDefault are by GPU model how many runs a workload is known by, and how long it runs at most at
// default clocks.
func (f *Foresight) uppersAtDefault(workload, partition string) iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		for _, name := range f.gpuModels() {
			m, pt, ok := f.foresee(workload, partition, name)
			if !ok {
				continue
			}
			upper := m.Model.UpperTime(&pt, f.settings().Live.TimeMargin)
			if !yield(m.Model.Samples+m.Hits, time.Duration(upper*float64(time.Second))) {
				return
			}
		}
	}
}

// foresee returns what a workload does at default clocks in a partition.
func (f *Foresight) foresee(workload, partition, gpuModel string) (learn.View, dvfsmodel.Point, bool) {
	m := f.learner.Model(record.WorkloadKey{
		Cluster: f.options.Cluster, GPUModel: gpuModel,
		Workload: decide.WorkloadIn(f.decider, workload, partition, gpuModel),
	})
	pt, ok := m.AtDefault()
	return m, pt, ok
}

// workloadOf returns the workload of a queued job as far as memory tells; "" if it
// doesn't.
func (f *Foresight) workloadOf(id slurm.JobID) string {
	job := f.jobs.Get(id)
	if job == nil || job.GPUs == 0 || job.GPUs > epdapi.MaxGPUs || job.Source == (jobs.Source{}) {
		return ""
	}
	return job.Source.Workload(int(job.GPUs))
}

// PlanRules returns those by which clocks of queued jobs are chosen.
func (f *Foresight) PlanRules() decide.PlanRules { return decide.NewPlanRules(f.decider) }

// Queue returns a digest of the jobs and nodes that Slurm has, which is another one when jobs came, began
// or ended, or nodes came or went; and which jobs wait for GPUs.
func (f *Foresight) Queue() (digest uint64, pending []slurm.JobID) {
	h := fnv.New64a()
	note := func(id uint64, text string) {
		var raw [8]byte
		binary.LittleEndian.PutUint64(raw[:], id)
		_, _ = h.Write(raw[:])
		_, _ = io.WriteString(h, text)
	}
	for id, job := range f.jobs.All() {
		state := job.State()
		if job.GPUs == 0 || state.Ended() {
			continue
		}
		note(uint64(id), string(state))
		if state == slurm.Pending {
			if job.IsDue() {
				note(0, "due") // one that was held comes into the queue
			}
			note(uint64(job.Tasks()), "") //nolint:gosec // a count
			pending = append(pending, id)
		}
	}
	for _, n := range f.jobs.Nodes() {
		if n.State.Usable() {
			note(0, n.Name)
		}
	}
	return h.Sum64(), pending
}

// gpuNames tell which GPU models Slurm's GPUs are, by profiles.
func (f *Foresight) gpuNames(profiles *config.Profiles) *query.GPUNames {
	return &query.GPUNames{
		Profiles: profiles, Known: f.gpuModels(), OfNode: f.decider.GPUs.Of, Nodes: f.decider.GPUs.Nodes,
	}
}

// powerOfGPUs returns the least and the most that one of the GPUs uses that a job may get, by
// their profiles: 0 and infinite where a profile doesn't say.
func (f *Foresight) powerOfGPUs() (idle, busy dvfsmodel.Watt) {
	names := f.gpuModels()
	if len(names) == 0 {
		return 0, dvfsmodel.Watt(math.Inf(1))
	}
	idle = dvfsmodel.Watt(math.Inf(1))
	s := f.settings()
	for _, name := range names {
		p, err := s.Profiles.Lookup(name)
		if err != nil {
			return 0, dvfsmodel.Watt(math.Inf(1))
		}
		idle = min(idle, p.IdleW)
		if busy = max(busy, p.BusyW); p.BusyW == 0 {
			busy = dvfsmodel.Watt(math.Inf(1))
		}
	}
	return idle, busy
}
