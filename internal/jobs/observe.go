package jobs

import (
	"math"
	"time"
	"unique"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Observe takes what Slurm says of jobs: all of them, or those that changed.
// Jobs that ended are forgotten.
func (t *Tracker) Observe(list []slurm.Job) {
	asked := t.table.nextQuestion()
	for i := range list {
		t.observe(&list[i], asked)
	}
}

// observe keeps what Slurm answered to a question about a job, and returns the
// latest that is known of it.
func (t *Tracker) observe(j *slurm.Job, asked int64) *Job {
	return t.keep(listed{t.jobFrom(j), j.ID, j.Priority, j.State.Ended(), hasBegun(j)}, asked)
}

// jobFrom returns a job of Slurm's as it is kept.
func (t *Tracker) jobFrom(j *slurm.Job) *Job {
	before := t.table.get(j.ID)
	if before == nil && j.ArrayJob != 0 {
		before = t.table.get(j.ArrayJob)
	}
	return t.newJob(j, before)
}

// keep keeps a job unless it ended, and returns the latest that is known of it.
func (t *Tracker) keep(l listed, asked int64) *Job {
	if l.ended {
		t.table.drop(l.id, asked)
		return l.job
	}
	job, isNew := t.table.put(l.id, knownJob{l.job, asked, l.priority})
	if isNew {
		t.Hooks.countSubmission(l.id, job)
	}
	return job
}

// newJob returns a job of Slurm's as it is kept: what was known of it before, if nothing has
// changed. What a token stands for is taken from memory, or from what was known
// of the job before.
func (t *Tracker) newJob(j *slurm.Job, before *Job) *Job {
	token, _, _ := slurm.ParseToken(j.AdminComment)
	// Not on the heap: most jobs don't change, and garbage between what stays
	// would cost more memory than that.
	job := Job{
		state: codeOf(j.State.Base),
		completing: j.State.Is(slurm.Completing) &&
			j.State.Base != slurm.Completing,
		OwnFreq: j.GPUFreq != "",
		UID:     j.UID,
		GPUs:    toUint32(j.Allocated.GPUs()),
		Nodes:   toUint32(j.NodeCount),
		nice:    int32(min(max(j.Nice, math.MinInt32), math.MaxInt32)),
		Submitted: unix(
			j.Submit,
		),
		Limit:     t.Limit(j.TimeLimit),
		User:      internText(j.User),
		Account:   internText(j.Account),
		Partition: internText(j.Partition),
		Comment:   internComment(j.Comment),
		Name:      cut(j.Name),
		Token:     token,
		about: unique.Make(about{
			qos: j.QOS, reason: j.Reason, features: j.Features, prefer: j.Prefer, gpuFreq: j.GPUFreq,
			perNode:   j.TRESPerNode,
			requested: tresText(j.Requested), allocated: tresText(j.Allocated), sharesGPUs: j.SharesGPUs(),
		}),
	}
	if job.GPUs == 0 { // it didn't start yet, or Slurm doesn't count GPUs
		job.GPUs = toUint32(j.GPUCount())
	}
	t.setWorkload(&job, j, before)
	r := rare{
		nodeList: j.NodeList, arrayTasks: j.ArrayTasks, arrayJob: j.ArrayJob, hetJob: j.HetJob,
		arrayTask: toInt32(j.ArrayTask), hetOffset: toInt32(j.HetOffset), restarts: toUint32(j.Restarts),
		deadline: unix(j.Deadline), start: unix(j.Start), suspended: unix(j.Suspended),
	}
	if j.State.Ended() || j.State.Is(slurm.Completing) {
		r.end = unix(j.End)
	}
	if before != nil && before.isUnchanged(&job, r) {
		return before
	}
	t.options.SeeUser(job.UID, job.User.Value(), job.Account.Value(), job.Partition.Value())
	return job.ownedCopy(r, before)
}

// setWorkload says of which workload a job is.
func (t *Tracker) setWorkload(job *Job, j *slurm.Job, before *Job) {
	if s, ok := t.table.token(job.Token); ok && job.Token != "" {
		job.Source, job.Scripted, job.OwnFreq = s.source, true, job.OwnFreq || s.ownFreq
		return
	}
	if before != nil && before.Scripted && before.Token == job.Token && before.UID == job.UID {
		job.Source, job.Scripted, job.OwnFreq = before.Source, true, job.OwnFreq || before.OwnFreq
		return
	}
	job.Source = SourceOf(j.UID, "", j.Name)
}

// Limit returns a limit of Slurm's in the GPUs' time.
func (t *Tracker) Limit(l live.Limit) live.Limit {
	return l.Map(func(d time.Duration) time.Duration {
		if t.options.Speed != 0 {
			d = time.Duration(float64(d) / t.options.Speed)
		}
		return max(d, time.Second)
	})
}
