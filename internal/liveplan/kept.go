package liveplan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// UsualTolerance is by how much the start of a short job may be off its plan and still be as planned: until
// an order is in Slurm, and Slurm's scheduler has gone by it, passes about as much.
const UsualTolerance = 2 * time.Minute

// Bounds of what is remembered of starts.
const (
	maxRecent  = 50
	maxStarted = 50_000 // jobs that run by a plan
)

// sameRunWithin is within which time a start is one on another node of a run.
const sameRunWithin = 10 * time.Minute

// Start is a job that starts.
type Start struct {
	Job, Array slurm.JobID // Array: of which it is a task; 0: of none
	User       string
	GPUModel   string
	dvfsmodel.Setting
	At time.Time
}

// runsByPlan is what a job that runs at a plan's clocks was planned to take.
type runsByPlan struct {
	gpus           int
	timeS, energyJ float64
}

// Started counts how the start of a job keeps to the plan in force: once for a run, on however many
// nodes it is.
func (f *InForce) Started(s *Start) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan == nil || f.plan.OrderOnly {
		return
	}
	if at, counted := f.counted[s.Job]; counted && s.At.Sub(at) < sameRunWithin {
		return
	}
	f.counted[s.Job] = s.At
	kept := live.PlanStart{Job: uint32(s.Job), User: s.User, At: s.At, GPUModel: s.GPUModel}
	kept.How, kept.Planned = f.classifyStart(s)
	if f.record.Starts == nil {
		f.record.Starts = make(map[live.PlanKept]int64)
	}
	f.record.Starts[kept.How]++
	f.recent = append(f.recent, kept)
	f.recent = f.recent[max(0, len(f.recent)-maxRecent):]
	delete(f.due, s.Job)
	if _, ran := f.running[s.Job]; ran { // it was requeued
		delete(f.running, s.Job)
		f.order = slices.DeleteFunc(f.order, func(job slurm.JobID) bool { return job == s.Job })
	}
	if p := kept.Planned; p != nil && !p.HeldOut && p.GPUModel == s.GPUModel &&
		p.Core == s.Core && p.Mem == s.Mem {
		f.noteRun(s.Job, runsByPlan{p.GPUs, p.TimeS, p.EnergyJ})
	}
}

// noteRun remembers a job that runs by a plan; of too many the ones that started first are
// forgotten. The lock is held.
func (f *InForce) noteRun(job slurm.JobID, as runsByPlan) {
	if f.running == nil {
		f.running = make(map[slurm.JobID]runsByPlan)
	}
	if len(f.order) >= maxStarted {
		delete(f.running, f.order[0])
		f.order = f.order[1:]
	}
	f.running[job], f.order = as, append(f.order, job)
}

// classifyStart says how a start keeps to the plan, and what was planned. The lock is held.
func (f *InForce) classifyStart(s *Start) (live.PlanKept, *live.PlannedJob) {
	at, ok := f.taskOf(s.Job, s.Array)
	switch {
	case f.staleness(s.At) != "":
		return live.KeptStale, nil
	case !ok && (f.known[s.Job] || f.known[s.Array]):
		return live.KeptNoPlace, nil
	case !ok:
		return live.KeptUnknown, nil
	}
	planned := &f.plan.Jobs[at]
	due, wasDue := f.due[s.Job]
	tolerance := f.toleranceOf(planned)
	switch {
	case planned.HeldOut:
		return live.KeptHeldOut, planned
	case planned.GPUModel != s.GPUModel:
		return live.KeptElsewhere, planned
	case planned.Start.After(s.At.Add(tolerance)):
		return live.KeptEarlier, planned
	case wasDue && s.At.Sub(due) > tolerance, s.At.Sub(planned.Start) > tolerance:
		return live.KeptLater, planned
	}
	return live.KeptAsPlanned, planned
}

// noteDue notes since when a plan has jobs start at once. Those that don't wait any more are
// forgotten. The lock is held.
func (f *InForce) noteDue(plan *live.Plan) {
	due := make(map[slurm.JobID]time.Time)
	for i := range plan.Jobs {
		j := &plan.Jobs[i]
		if j.Start.After(plan.At) {
			break // and so do all that follow
		}
		id := slurm.JobID(j.Job)
		if since, before := f.due[id]; before {
			due[id] = since
		} else {
			due[id] = plan.At
		}
	}
	f.due = due
	if f.counted == nil {
		f.counted = make(map[slurm.JobID]time.Time)
	}
	maps.DeleteFunc(f.counted, func(_ slurm.JobID, at time.Time) bool { return plan.At.Sub(at) > sameRunWithin })
}

// OffPlan is by which part of its planned time a run may take more, or start at another time, and be as
// planned: when a GPU comes free is known no better than how long jobs run. Plans keep deadlines even so.
const OffPlan = 0.1

// Ended counts what a run of a job on some GPUs took that ran at a plan's clocks. Numbers that
// aren't known count nothing.
func (f *InForce) Ended(job slurm.JobID, gpus int, timeS, energyJ live.Number) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.running[job]
	if !ok {
		return
	}
	t, timed := timeS.Get()
	e, measured := energyJ.Get()
	if !timed || !measured || p.gpus == 0 {
		return
	}
	f.record.Ended++
	f.record.PlannedJ += p.energyJ * float64(min(gpus, p.gpus)) / float64(p.gpus)
	f.record.MeasuredJ += e
	if t > (1+OffPlan)*p.timeS {
		f.record.Longer++
	}
}

// NotLocked counts a run of a job that didn't have a plan's clocks, or not to its end: it says nothing of the
// plan.
func (f *InForce) NotLocked(job slurm.JobID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.running[job]; ok {
		f.record.NotLocked++
	}
}

// toleranceOf is by how much a job's start may be off its plan and still be as planned.
func (f *InForce) toleranceOf(j *live.PlannedJob) time.Duration {
	return max(cmp.Or(f.Tolerance, UsualTolerance), live.Known(OffPlan*j.TimeS).Duration())
}
