package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// source is what repeats when a job is submitted again: its user's script, or
// its name where the script isn't known. Together with the number of GPUs it is
// a workload.
type source [12]byte

// sourceOf names a script by its hash, else by the job's name.
func sourceOf(uid uint32, scriptHash, name string) source {
	kind, what := "script", scriptHash
	if scriptHash == "" {
		kind, what = "name", name
	}
	sum := sha256.Sum256([]byte(strconv.FormatUint(uint64(uid), 10) + "\x00" + kind + "\x00" + what))
	return source(sum[:len(source{})])
}

func (s source) String() string { return hex.EncodeToString(s[:]) }

func parseSource(text string) (source, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(source{}) {
		return source{}, false
	}
	return source(raw), true
}

// workload is the key of a source on a number of GPUs.
func (s source) workload(gpus int) string { return s.String() + "x" + strconv.Itoa(gpus) }

// knownJob is what is kept of a job: there may be hundreds of thousands.
type knownJob struct {
	source              source
	scripted            bool // the source is a script's
	ownFreq             bool // the user's own --gpu-freq
	uid                 uint32
	gpus                uint32 // on all nodes; 0: not known
	nodes               uint32
	asOf                int64 // when Slurm said so, Unix seconds
	submitted, deadline int64 // Unix seconds; 0: not known, none
	limit               time.Duration
	user, account       unique.Handle[string]
	partition           unique.Handle[string]
	name, comment       unique.Handle[string]
	token               string
}

// Values of knownJob.limit that aren't a limit.
const (
	limitUnknown   time.Duration = 0
	limitUnlimited time.Duration = math.MaxInt64
)

// Bounds of what is kept.
const (
	maxJobs    = 500_000
	maxTokens  = 100_000
	maxKept    = 256 // bytes of a name
	tokenTrust = 7 * 24 * time.Hour
)

// jobs are the jobs that are known, and submissions whose job id isn't.
type jobs struct {
	mu     sync.RWMutex
	byID   map[slurm.JobID]*knownJob
	tokens map[string]submitted
}

// submitted is what a token stands for.
type submitted struct {
	source  source
	ownFreq bool
	at      int64
}

func (j *jobs) init() {
	j.byID, j.tokens = make(map[slurm.JobID]*knownJob), make(map[string]submitted)
}

func (j *jobs) get(id slurm.JobID) *knownJob {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.byID[id]
}

func (j *jobs) token(token string) (submitted, bool) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, ok := j.tokens[token]
	return s, ok
}

// put keeps a job; jobs beyond the bound aren't kept, and asked for each time.
func (j *jobs) put(id slurm.JobID, job *knownJob) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.byID[id]; known || len(j.byID) < maxJobs {
		j.byID[id] = job
	}
}

func (j *jobs) drop(id slurm.JobID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.byID, id)
}

// putToken keeps a submission. When there are too many, old ones go: the store
// has them.
func (j *jobs) putToken(token string, s submitted) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.tokens) >= maxTokens {
		for old, kept := range j.tokens {
			if s.at-kept.at > int64(tokenTrust/time.Second) || len(j.tokens) >= maxTokens {
				delete(j.tokens, old)
			}
		}
	}
	j.tokens[token] = s
}

func (j *jobs) len() (known, tokens int) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.byID), len(j.tokens)
}

// Observe takes what Slurm says of jobs: all of them, or those that changed.
// Jobs that ended are forgotten.
func (c *Controller) Observe(list []slurm.Job) {
	now := c.options.Clock()
	for i := range list {
		j := &list[i]
		if j.State.Ended() {
			c.forget(j.ID)
			continue
		}
		c.jobs.put(j.ID, c.known(j, now))
	}
}

// forget drops a job that ended with its decisions.
func (c *Controller) forget(id slurm.JobID) {
	job := c.jobs.get(id)
	if job == nil {
		return
	}
	c.jobs.drop(id)
}

// known is a job as it is kept. What a token stands for is taken from memory.
func (c *Controller) known(j *slurm.Job, now time.Time) *knownJob {
	token, _, _ := slurm.ParseToken(j.AdminComment)
	k := &knownJob{
		uid: j.UID, nodes: uint32(min(max(0, j.NodeCount), math.MaxInt32)), asOf: now.Unix(),
		ownFreq: j.GPUFreq != "", token: token, limit: limitOf(j.TimeLimit),
		user: kept(j.User), account: kept(j.Account), partition: kept(j.Partition), name: kept(j.Name),
		comment: keptComment(j.Comment),
	}
	if n := j.Allocated.GPUs(); n > 0 {
		k.gpus = uint32(min(n, math.MaxInt32))
	}
	if !j.Submit.IsZero() {
		k.submitted = j.Submit.Unix()
	}
	if !j.Deadline.IsZero() {
		k.deadline = j.Deadline.Unix()
	}
	k.source = sourceOf(j.UID, "", j.Name)
	if s, ok := c.jobs.token(token); ok && token != "" {
		k.source, k.scripted, k.ownFreq = s.source, true, k.ownFreq || s.ownFreq
	}
	return k
}

func kept(text string) unique.Handle[string] { return unique.Make(text[:min(len(text), maxKept)]) }

// keptComment keeps a comment that may hold wishes.
func keptComment(text string) unique.Handle[string] {
	text = text[:min(len(text), slurm.MaxText)]
	if !strings.Contains(text, "epplan:") {
		text = ""
	}
	return unique.Make(text)
}

func limitOf(l slurm.Limit) time.Duration {
	switch {
	case !l.Set:
		return limitUnknown
	case l.Unlimited:
		return limitUnlimited
	}
	return max(l.Duration, time.Second)
}

// call is a question to Slurm that several may wait for.
type call struct {
	done chan struct{}
	job  *knownJob
	err  error
}

// resolve asks Slurm for a job, once however many want to know, and keeps the
// answer.
func (c *Controller) resolve(ctx context.Context, id slurm.JobID) (*knownJob, error) {
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

func (c *Controller) ask(ctx context.Context, id slurm.JobID, q *call) {
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		close(q.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, c.options.ResolveTimeout)
	defer cancel()
	j, err := c.options.Resolve(ctx, id)
	if err != nil {
		q.err = err
		return
	}
	if j.ID != id {
		q.err = fmt.Errorf("asked for job %d, slurm answered with job %d", id, j.ID)
		return
	}
	q.job = c.known(&j, c.options.Clock())
	c.jobs.put(id, q.job)
}

// find is what is known of a job: from Slurm lately, else from Slurm now, else
// from Slurm some time ago, else from the request. The second value says why it
// isn't as fresh as it should be.
func (c *Controller) find(ctx context.Context, r *DecideRequest) (*knownJob, error) {
	now := c.options.Clock()
	job := c.jobs.get(r.Job)
	if job != nil && now.Unix()-job.asOf <= int64(c.options.Fresh/time.Second) {
		return c.withToken(ctx, job, nil)
	}
	var err error
	if c.options.Resolve != nil {
		var fresh *knownJob
		if fresh, err = c.resolve(ctx, r.Job); err == nil {
			return c.withToken(ctx, fresh, nil)
		}
	}
	if job != nil {
		return c.withToken(ctx, job, err)
	}
	return &knownJob{
		uid: r.UID, user: kept(string(r.User)), partition: kept(string(r.Partition)), comment: keptComment(string(r.Comment)),
		account: kept(""), name: kept(""),
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
			return job.stranger(), errors.Join(doubt, fmt.Errorf("look up the submission: %w", err))
		}
		s = submitted{source: from, ownFreq: d.Reason == reasonOwnFreq, at: d.Created.Unix()}
		c.jobs.putToken(job.token, s)
	}
	more := *job
	more.source, more.scripted, more.ownFreq = s.source, true, job.ownFreq || s.ownFreq
	return &more, doubt
}

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
