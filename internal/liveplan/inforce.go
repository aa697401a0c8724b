package liveplan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// ClockQuestion asks which clocks a waiting job may have if it starts on a GPU model.
type ClockQuestion struct {
	Workload, GPUModel string
	Partition          string  // or several, with commas between
	Limit              float64 // seconds; +Inf: none
	Slowdown           float64 // how much longer it may run, by its user's wish; 0: as the partition has it
}

// InForce is the plan in force. Nobody waits for one: there is one, or none. The zero value
// has none. It is safe for concurrent use.
type InForce struct {
	// Tolerance is by how much the start of a short job may be off its plan and still be as planned; 0: two
	// minutes. Of others it's a tenth of their planned time.
	Tolerance time.Duration

	mu    sync.Mutex
	plan  *live.Plan            // never changed once it is here; nil: there is none
	tasks map[slurm.JobID][]int // by record: its tasks in the plan, in the order of their starts
	// Of the queue that the plan was made of, planned or not.
	known map[slurm.JobID]bool
	// Of the pending jobs lately, which the plan doesn't know.
	unknown, pending int
	unknownMax       float64             // part of them up to which the plan counts
	started          map[slurm.JobID]int // by job: which task of the plan it was taken for
	taken            map[slurm.JobID]int // by record: how many of its tasks started

	// How starts and runs kept to plans.
	due     map[slurm.JobID]time.Time  // since when plans have had jobs start at once
	counted map[slurm.JobID]time.Time  // jobs that started lately
	running map[slurm.JobID]runsByPlan // jobs at a plan's clocks
	order   []slurm.JobID              // of running, as they started
	record  live.PlanRecord
	recent  []live.PlanStart // the last ones, the newest last
}

// Put has a plan take the place of the one before, made of a queue with those records. It
// counts while no more than such a part of the pending jobs is unknown to it.
func (f *InForce) Put(plan *live.Plan, queued []slurm.JobID, unknownMax float64) {
	tasks := make(map[slurm.JobID][]int)
	for i := range plan.Jobs {
		id := slurm.JobID(plan.Jobs[i].Job)
		tasks[id] = append(tasks[id], i)
	}
	known := make(map[slurm.JobID]bool, len(queued))
	for _, id := range queued {
		known[id] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.tasks, f.known, f.unknownMax = plan, tasks, known, unknownMax
	f.unknown, f.pending = 0, len(queued)
	f.started, f.taken = make(map[slurm.JobID]int), make(map[slurm.JobID]int)
	f.record.Made++
	f.noteDue(plan)
}

// NoteFailure keeps the plan and says why there is no newer one.
func (f *InForce) NoteFailure(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan != nil {
		kept := *f.plan
		kept.Trouble = why
		f.plan = &kept
	}
	f.record.Failed++
}

// Drop has no plan in force.
func (f *InForce) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.tasks, f.known, f.started, f.taken = nil, nil, nil, nil, nil
	f.unknown, f.pending, f.due = 0, 0, nil
}

// Observe says which jobs wait now.
func (f *InForce) Observe(pending []slurm.JobID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unknown, f.pending = 0, len(pending)
	for _, id := range pending {
		if !f.known[id] {
			f.unknown++
		}
	}
}

// Plan returns the plan in force as it counts now; nil: there is none. Its jobs mustn't be
// changed.
func (f *InForce) Plan(now time.Time) *live.Plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan == nil {
		return nil
	}
	shown := *f.plan
	shown.Stale = f.staleness(now)
	shown.Record = f.record
	shown.Record.Starts = maps.Clone(f.record.Starts)
	shown.Recent = slices.Clone(f.recent)
	return &shown
}

// staleness is why the plan counts no more; empty: it does. The lock is held.
func (f *InForce) staleness(now time.Time) string {
	switch {
	case now.After(f.plan.Until):
		return "it is from " + f.plan.At.UTC().Format(time.RFC3339) + ", and couldn't be made anew"
	case float64(f.unknown) > math.Ceil(f.unknownMax*float64(f.pending)):
		return fmt.Sprintf("it doesn't know %d of the %d jobs that wait", f.unknown, f.pending)
	}
	return ""
}

// Advice is what the plan in force has for a job.
type Advice struct {
	Policy string // of the plan; empty: there is none, nor a reason
	// Job is nil where there is nothing planned for the job, or the plan counts no more.
	Job *live.PlannedJob
	Why string // there is none
}

// AdviceFor returns what is planned for a job that starts or waits; array is the number of the array
// that it is a task of, 0 without one. Of an array's tasks, which wait under one number, each that
// starts takes what is planned for the next one; asked again, it gets the same.
func (f *InForce) AdviceFor(job, array slurm.JobID, now time.Time) Advice {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan == nil || f.plan.OrderOnly {
		return Advice{}
	}
	a := Advice{Policy: f.plan.Policy}
	if stale := f.staleness(now); stale != "" {
		a.Why = "it is stale: " + stale
		return a
	}
	at, ok := f.taskOf(job, array)
	if !ok {
		a.Why = "it doesn't have the job"
		if f.known[job] || f.known[array] {
			a.Why = "it has no place for the job"
		}
		return a
	}
	a.Job = &f.plan.Jobs[at]
	return a
}

// taskOf finds the task of the plan that a job is, and keeps it for the job. The lock is held.
func (f *InForce) taskOf(job, array slurm.JobID) (int, bool) {
	if at, ok := f.started[job]; ok {
		return at, true
	}
	record := job
	tasks := f.tasks[record]
	if len(tasks) == 0 && array != 0 {
		record = array
		tasks = f.tasks[record]
	}
	if len(tasks) == 0 {
		return 0, false
	}
	next := min(f.taken[record], len(tasks)-1)
	if array != 0 {
		f.taken[record]++
		f.started[job] = tasks[next]
	}
	return tasks[next], true
}
