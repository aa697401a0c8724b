package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// question begins a question to Slurm.
func (c *Controller) question() int64 { return c.jobs.question(c.options.Clock().Sub(c.started)) }

// fresh tells whether the answer to a question is to be believed still.
func (c *Controller) fresh(asked int64) bool {
	return c.options.Clock().Sub(c.started)-time.Duration(asked) <= c.options.Fresh
}

// maxAsking is about how many jobs Slurm is asked at the same time, one by one:
// each question is a process here, or two, and a request to slurmctld from each.
const maxAsking = 16

// call is a question to Slurm that several may wait for.
type call struct {
	done chan struct{}
	job  *knownJob
	err  error
}

// resolve asks Slurm for a job, once however many want to know, and keeps the
// answer. A job that Slurm doesn't know is [slurm.ErrNotFound].
func (c *Controller) resolve(ctx context.Context, id slurm.JobID) (*knownJob, error) {
	if c.options.Resolve == nil {
		return nil, errNobody
	}
	c.mu.Lock()
	q, asked := c.calls[id]
	if !asked {
		q = &call{done: make(chan struct{})}
		c.calls[id] = q
		go c.ask(context.WithoutCancel(ctx), id, q)
	}
	c.mu.Unlock()
	timer := time.NewTimer(c.options.ResolveTimeout)
	defer timer.Stop()
	select {
	case <-q.done:
		return q.job, q.err
	case <-timer.C:
		return nil, errors.New("slurm didn't answer in time")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNobody tells that there is nobody to ask about jobs.
var errNobody = errors.New("there is no Slurm to ask")

func (c *Controller) ask(ctx context.Context, id slurm.JobID, q *call) {
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		close(q.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, c.options.ResolveTimeout)
	defer cancel()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		q.err = errors.New("slurm is asked about too many jobs at once")
		return
	}
	asked := c.question()
	j, err := c.options.Resolve(ctx, id)
	switch {
	case errors.Is(err, slurm.ErrNotFound):
		c.jobs.drop(id, asked)
		q.err = err
	case err != nil:
		q.err = err
	case j.ID != id:
		q.err = fmt.Errorf("asked for job %d, slurm answered with job %d", id, j.ID)
	default:
		q.job = c.observe(&j, asked)
	}
}

// Observe takes what Slurm says of jobs: all of them, or those that changed.
// Jobs that ended are forgotten.
func (c *Controller) Observe(list []slurm.Job) {
	asked := c.question()
	for i := range list {
		c.observe(&list[i], asked)
	}
}

// observe keeps what Slurm answered to a question about a job, and returns the
// latest that is known of it.
func (c *Controller) observe(j *slurm.Job, asked int64) *knownJob {
	return c.remember(listed{c.seen(j), j.ID, j.Priority, j.State.Ended()}, asked)
}

// seen is a job of Slurm's as it is kept.
func (c *Controller) seen(j *slurm.Job) *knownJob {
	before := c.jobs.get(j.ID)
	if before == nil && j.ArrayJob != 0 {
		before = c.jobs.get(j.ArrayJob)
	}
	return c.known(j, before)
}

// remember keeps a job unless it ended, and returns the latest that is known of it.
func (c *Controller) remember(l listed, asked int64) *knownJob {
	if l.ended {
		c.jobs.drop(l.id, asked)
		return l.job
	}
	return c.jobs.put(l.id, held{l.job, asked, l.priority})
}

// find is what is known of a job: from Slurm lately, else from Slurm now, else
// from Slurm some time ago, else from the request. The error says why it isn't
// as fresh as it should be. A job that ran before is asked for in any case: it
// may have been queued anew.
func (c *Controller) find(ctx context.Context, r *DecideRequest, ranBefore bool) (*knownJob, error) {
	before := c.jobs.when(r.Job)
	if before.job != nil && !ranBefore && c.fresh(before.asked) {
		return c.withToken(ctx, before.job, nil)
	}
	var err error
	if c.options.Resolve != nil {
		var now *knownJob
		if now, err = c.resolve(ctx, r.Job); err == nil {
			return c.withToken(ctx, now, nil)
		}
	}
	if before.job != nil {
		return c.withToken(ctx, before.job, err)
	}
	return &knownJob{
		uid: r.UID, user: kept(string(r.User)), partition: kept(string(r.Partition)), comment: keptComment(string(r.Comment)),
		account: kept(""),
	}, errors.Join(errUnknownJob, err)
}

var errUnknownJob = errors.New("the job isn't known")

// withToken adds what the submission said to a job whose token isn't in memory:
// the controller was restarted since. When that can't be looked up, the job's
// workload counts as unknown, so that its GPUs are left alone: the user may have
// asked for that.
func (c *Controller) withToken(ctx context.Context, job *knownJob, doubt error) (*knownJob, error) {
	if job.scripted || job.token == "" {
		return job, doubt
	}
	s, inMemory := c.jobs.token(job.token)
	if !inMemory {
		d, err := bounded(ctx, c.options.StoreWait, func(ctx context.Context) (record.Decision, error) {
			return c.options.Store.DecisionByToken(ctx, c.options.Cluster, job.token)
		})
		from, ok := parseSource(d.Workload)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && !ok:
			return job, doubt // nobody gave out this token
		case err != nil:
			return job.stranger(), errors.Join(doubt, errStore, fmt.Errorf("look up the submission: %w", err))
		}
		s = submitted{source: from, ownFreq: d.Reason == reasonOwnFreq, at: d.Created.Unix()}
		c.jobs.putToken(job.token, s)
	}
	more := *job
	more.source, more.scripted, more.ownFreq = s.source, true, job.ownFreq || s.ownFreq
	return &more, doubt
}

// errStore tells that records couldn't be looked up.
var errStore = errors.New("records can't be read")

// stranger is a job whose workload counts as unknown.
func (k *knownJob) stranger() *knownJob {
	other := *k
	other.source = source{}
	return &other
}

// bounded waits for an answer no longer than the bound, whatever the function
// does with its context.
func bounded[T any](ctx context.Context, bound time.Duration, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		v, err := f(ctx)
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
