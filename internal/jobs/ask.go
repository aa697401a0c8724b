package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// maxAsking is about how many jobs Slurm is asked at the same time, one by one:
// each question is a process here, or two, and a request to slurmctld from each.
const maxAsking = 16

// call is a question to Slurm that several may wait for.
type call struct {
	done chan struct{}
	job  *Job
	err  error
}

// resolve asks Slurm for a job, once however many want to know, and keeps the
// answer. A job that Slurm doesn't know is [slurm.ErrNotFound].
func (t *Tracker) resolve(ctx context.Context, id slurm.JobID) (*Job, error) {
	if t.options.Resolve == nil {
		return nil, errNoSlurm
	}
	t.mu.Lock()
	q, asked := t.calls[id]
	if !asked {
		q = &call{done: make(chan struct{})}
		t.calls[id] = q
		go t.ask(context.WithoutCancel(ctx), id, q)
	}
	t.mu.Unlock()
	timer := time.NewTimer(t.options.ResolveTimeout)
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

// errNoSlurm means that there is nobody to ask about jobs.
var errNoSlurm = errors.New("there is no Slurm to ask")

func (t *Tracker) ask(ctx context.Context, id slurm.JobID, q *call) {
	defer func() {
		t.mu.Lock()
		delete(t.calls, id)
		t.mu.Unlock()
		close(q.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, t.options.ResolveTimeout)
	defer cancel()
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		q.err = errors.New("slurm is asked about too many jobs at once")
		return
	}
	asked := t.table.nextQuestion()
	j, err := t.options.Resolve(ctx, id)
	switch {
	case errors.Is(err, slurm.ErrNotFound):
		t.table.drop(id, asked)
		q.err = err
	case err != nil:
		q.err = err
	case j.ID != id:
		q.err = fmt.Errorf("asked for job %d, slurm answered with job %d", id, j.ID)
	default:
		q.job, _ = t.scripts.join(ctx, id, t.observe(&j, asked)) // the script is asked for again
	}
}

// Find returns what is known of a job: from Slurm lately, else from Slurm now, else
// from Slurm some time ago, else nil. The error, such as [ErrUnknown], says why it isn't as fresh as it
// should be. A job that ran before is asked for in any case: it may have been queued
// anew.
func (t *Tracker) Find(ctx context.Context, id slurm.JobID, ranBefore bool) (*Job, error) {
	before := t.table.answer(id)
	if before.job != nil && !ranBefore && t.table.isFresh(before.asked) {
		return t.WithSubmission(ctx, before.job)
	}
	var err error
	if t.options.Resolve != nil {
		var now *Job
		if now, err = t.resolve(ctx, id); err == nil {
			return t.WithSubmission(ctx, now)
		}
	}
	if before.job != nil {
		job, lookup := t.WithSubmission(ctx, before.job)
		return job, errors.Join(err, lookup)
	}
	return nil, errors.Join(ErrUnknown, err)
}

// FindOn returns what is known of a job that is said to start on a node: as [Tracker.Find]. Where that says
// that the job is elsewhere, or waits, Slurm is asked now, for what is known may be of before its start. If
// it says so, too, the error is [ErrNotOnNode].
func (t *Tracker) FindOn(ctx context.Context, id slurm.JobID, node string, ranBefore bool) (*Job, error) {
	job, staleErr := t.Find(ctx, id, ranBefore)
	if job == nil || t.options.Resolve == nil || job.MayRunOn(node) {
		return job, staleErr
	}
	now, err := t.resolve(ctx, id)
	switch {
	case errors.Is(err, slurm.ErrNotFound):
		return nil, errors.Join(ErrUnknown, err)
	case err != nil: // what was known counts
		return job, staleErr
	case !now.MayRunOn(node):
		return nil, fmt.Errorf("%w: %s", ErrNotOnNode, now.whereabouts())
	}
	return t.WithSubmission(ctx, now)
}

// ErrNotOnNode means that a job isn't on a node, as Slurm says.
var ErrNotOnNode = errors.New("Slurm doesn't have the job on this node")

// MayRunOn reports whether a job can be on a node, as Slurm has it: while its Epilogs run, Slurm names only
// the nodes that are left.
func (job *Job) MayRunOn(node string) bool {
	return job.inEpilog() || job.state.state() != slurm.Pending && mayListNode(job.rareParts().nodeList, node)
}

// mayListNode reports whether a list of Slurm's may name a node: one that is empty tells nothing.
func mayListNode(list, node string) bool {
	if list == "" || list == node {
		return true
	}
	nodes, err := slurm.ExpandHostlist(list)
	return err != nil || slices.Contains(nodes, node)
}

// whereabouts says where a job is, as Slurm has it.
func (job *Job) whereabouts() string {
	if list := job.rareParts().nodeList; list != "" {
		return "it is on " + slurm.Printable(list, MaxText)
	}
	return "it is " + string(job.state.state())
}

// ErrUnknown means that nothing is known of a job.
var ErrUnknown = errors.New("the job isn't known")

// WithSubmission adds what the submission said to a job whose token isn't in memory:
// the tracker is younger. When that can't be looked up the error is [ErrRecords], and the
// job's workload counts as unknown, so that its GPUs are left alone: the user may have
// asked for that.
func (t *Tracker) WithSubmission(ctx context.Context, job *Job) (*Job, error) {
	if job.Scripted || job.Token == "" {
		return job, nil
	}
	s, inMemory := t.table.token(job.Token)
	if !inMemory {
		d, err := store.WaitAtMost(ctx, t.options.StoreTimeout, func(ctx context.Context) (record.Decision, error) {
			return t.options.Records.DecisionByToken(ctx, t.options.Cluster, job.Token)
		})
		from, ok := parseSource(d.Workload)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && !ok:
			return job, nil // nobody gave out this token
		case err != nil:
			return job.WithoutWorkload(), errors.Join(ErrRecords,
				fmt.Errorf("look up the submission: %w", err))
		}
		s = submitted{source: from, ownFreq: d.Reason == ReasonOwnFreq, at: d.Created.Unix()}
		t.table.putToken(job.Token, s)
	}
	more := *job
	more.Source, more.Scripted, more.OwnFreq = s.source, true, job.OwnFreq || s.ownFreq
	return &more, nil
}

// ErrRecords means that records couldn't be looked up.
var ErrRecords = errors.New("records can't be read")

// WithoutWorkload returns a job whose workload counts as unknown.
func (job *Job) WithoutWorkload() *Job {
	other := *job
	other.Source = Source{}
	return &other
}
