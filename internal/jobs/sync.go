package jobs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Lister lists all of a cluster's jobs and nodes; [slurm.Client] is one.
type Lister interface {
	// EachJob gives all jobs, one after the other, or says that some are missing, or could not be read.
	EachJob(ctx context.Context, each func(*slurm.Job) error) (slurm.Unread, error)
	Nodes(ctx context.Context) ([]slurm.Node, slurm.Unread, error)
}

// How often Slurm is asked for everything.
const (
	syncEvery  = 10 * time.Second
	nodesEvery = time.Minute
	// syncRest is how long Slurm is left alone at least, in times of what it
	// took to answer: a big queue is asked for less often.
	syncRest = 9
	// syncPause is the longest pause after failures.
	syncPause  = time.Minute
	maxTrouble = 400             // bytes of what goes wrong that are shown
	syncBound  = epdapi.ListWait // of one question
	// manyJobs is the length of a list from which on the memory that reading it
	// took is given back at once.
	manyJobs = 10_000
)

// syncing is how a sync fares.
type syncing struct {
	what  string
	clock func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	at       time.Time // of the last answer
	failures int       // since then
	err      error
	unread   slurm.Unread // of the last answer
	due      time.Time    // of the next question, after somebody else's answer
	others   int          // that ask at present, whose answers count, too
}

// Sync keeps up with Slurm until the context ends: it asks for all jobs again
// and again (0: every 10 s), and for the nodes every minute. When Slurm doesn't
// answer it is asked less often, and what is known stays.
func (t *Tracker) Sync(ctx context.Context, source Lister, every time.Duration) {
	every = cmp.Or(max(0, every), syncEvery)
	var both sync.WaitGroup
	both.Go(func() {
		t.jobs.repeat(ctx, every, func(ctx context.Context) error { return t.syncJobs(ctx, source) })
	})
	both.Go(func() {
		t.nodes.repeat(ctx, max(every, nodesEvery), func(ctx context.Context) error {
			return t.syncNodes(ctx, source)
		})
	})
	both.Wait()
}

// repeat asks until the context ends.
func (s *syncing) repeat(ctx context.Context, every time.Duration, ask func(context.Context) error) {
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		if rest = s.wait(); rest > 0 {
			continue
		}
		begin := time.Now()
		at := s.clock()
		bound, cancel := context.WithTimeout(ctx, syncBound)
		err := ask(bound)
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.report(err)
		rest = s.note(at, err, every, time.Since(begin))
	}
}

// report logs what changed.
func (s *syncing) report(err error) {
	s.mu.Lock()
	failures := s.failures
	s.mu.Unlock()
	switch {
	case err != nil && failures == 0:
		s.log.Warn("Slurm doesn't say what there is; what is known stays", "of", s.what, "error", err)
	case err == nil && failures > 0:
		s.log.Info("Slurm answers again", "of", s.what, "failures", failures)
	}
}

// note keeps how a question went, and returns the pause until the next one.
func (s *syncing) note(at time.Time, err error, every, took time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if at.After(s.at) {
			s.at = at
		}
		s.failures, s.err = 0, nil
		return max(every, syncRest*took)
	}
	s.failures++
	s.err = err
	const doublings = 10
	return max(every, min(every<<min(s.failures, doublings), syncPause), syncRest*took)
}

// noteUnread notes which records of an answer could not be read, and logs it when their number changes.
func (s *syncing) noteUnread(unread slurm.Unread) {
	s.mu.Lock()
	before := s.unread.Records
	s.unread = unread
	s.mu.Unlock()
	switch {
	case unread.Records == before:
	case unread.Records > 0:
		s.log.Warn("records of Slurm's can't be read and are passed over", "of", s.what,
			"records", unread.Records, "first", slurm.Printable(unread.Reason, maxTrouble))
	default:
		s.log.Info("all of Slurm's records can be read again", "of", s.what)
	}
}

// status returns how the sync fares, for showing.
func (s *syncing) status() epdapi.SyncStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := epdapi.SyncStatus{At: s.at, Failures: s.failures}
	if s.err != nil {
		status.Trouble = slurm.Printable(s.err.Error(), maxTrouble)
	}
	if status.Unread = s.unread.Records; status.Unread > 0 {
		status.UnreadReason = slurm.Printable(s.unread.Reason, maxTrouble)
	}
	return status
}

// syncJobs asks for all jobs. Those that Slurm doesn't name any more are
// forgotten, unless they were asked for later than all.
func (t *Tracker) syncJobs(ctx context.Context, source Lister) error {
	end := t.options.LowerGCPercent()
	n, err := t.takeJobs(ctx, source)
	end()
	if n >= manyJobs {
		debug.FreeOSMemory() // the list is garbage by now
	}
	return err
}

// listed is a job as Slurm's list has it, until the whole list is there.
type listed struct {
	job      *Job
	id       slurm.JobID
	priority uint32
	ended    bool
	begun    bool // its Prologs are over
}

// takeJobs asks for all jobs and returns how many there are. A list that breaks
// off changes nothing. Jobs as they were before are kept once.
func (t *Tracker) takeJobs(ctx context.Context, source Lister) (int, error) {
	asked, began := t.table.nextQuestion(), t.options.Clock()
	known, _ := t.table.len()
	list := make([]listed, 0, known+known/8)
	unread, err := source.EachJob(ctx, func(j *slurm.Job) error {
		list = append(list, listed{t.jobFrom(j), j.ID, j.Priority, j.State.Ended(), hasBegun(j)})
		return nil
	})
	if err != nil {
		return len(list), err
	}
	ended := make(map[slurm.JobID]knownJob)
	now := t.options.Clock()
	for _, l := range list {
		t.keep(l, asked)
		if l.job.Scripted {
			t.table.settleToken(l.job.Token, now)
		}
		if l.ended && len(ended) < maxEnded {
			ended[l.id] = knownJob{l.job, asked, 0}
		}
	}
	t.jobs.noteUnread(unread)
	t.Hooks.takeList(began, list)
	t.table.prune(asked, ended, t.table.mayBeUnread(asked, &unread, func(id slurm.JobID) error {
		_, err := t.resolve(ctx, id)
		return err
	}))
	t.missed.recordMissed(ctx, ended)
	t.scripts.ask(ctx) // last: a slow Slurm holds up nothing of the list
	return len(list), nil
}

// scriptsAtOnce bounds the scripts that Slurm is asked for after a list.
const scriptsAtOnce = 10

// scripts asks Slurm for the scripts of jobs whose submission wasn't heard of, as when
// job_submit.lua found nobody for some seconds: else what one script does is two workloads.
type scripts struct {
	options *Options
	table   *table
	hooks   *HookWatch
}

// ask asks for some of those that are due. Where Slurm doesn't answer they are asked for again
// after the next list.
func (s *scripts) ask(ctx context.Context) {
	var again []unheard
	defer func() { s.hooks.askAgain(again) }()
	for range scriptsAtOnce {
		u, ok := s.hooks.nextUnheard()
		if !ok {
			return
		}
		job := s.table.get(u.job)
		if job == nil {
			continue
		}
		bound, cancel := context.WithTimeout(ctx, s.options.ResolveTimeout)
		_, err := s.join(bound, u.job, job)
		cancel()
		if err != nil && !errors.Is(err, slurm.ErrNotFound) {
			again = append(again, u)
		}
	}
}

// join returns a job with its script asked for, if its submission wasn't heard of where others' are.
// With an error, or if the job has no script, as srun's, it is the job as it was.
func (s *scripts) join(ctx context.Context, id slurm.JobID, job *Job) (*Job, error) {
	if job.Scripted || job.Token != "" || job.GPUs == 0 || s.options.Script == nil ||
		!s.hooks.hearsSubmissions() {
		return job, nil
	}
	script, err := s.options.Script(ctx, id, hooks.SentScript)
	if err != nil || script == "" {
		return job, err
	}
	return s.table.setSource(id, job, SourceOf(job.UID, ScriptHash(hooks.Hex(script)), job.Name)), nil
}

// maxAskedMissing bounds the jobs that are asked for one by one after a list.
const maxAskedMissing = 20

// mayBeUnread gives the jobs that a list doesn't name and of which one of the records may be that could not be
// read. If a record didn't even say its number, resolve asks Slurm for jobs one by one before they count as gone.
func (j *table) mayBeUnread(
	asked int64, unread *slurm.Unread, resolve func(id slurm.JobID) error,
) map[slurm.JobID]bool {
	keep := make(map[slurm.JobID]bool)
	if unread.Records == 0 {
		return keep
	}
	for _, id := range j.missing(asked) {
		if !unread.MayList(id.String()) {
			continue
		}
		keep[id] = true
		if unread.IsNameless() && len(keep) <= maxAskedMissing {
			keep[id] = !errors.Is(resolve(id), slurm.ErrNotFound)
		}
	}
	return keep
}

func (t *Tracker) syncNodes(ctx context.Context, source Lister) error {
	nodes, unread, err := source.Nodes(ctx)
	if err != nil {
		return err
	}
	t.nodes.noteUnread(unread)
	t.nodesMu.Lock()
	defer t.nodesMu.Unlock()
	for _, n := range t.nodeList { // what was known of a node that can't be read now stays
		if slices.Contains(unread.Names, n.Name) {
			nodes = append(nodes, n)
		}
	}
	t.nodeList = nodes
	return nil
}
