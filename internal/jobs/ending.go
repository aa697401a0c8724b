package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

const (
	// patience is how long an outcome waits, from when it first came, for Slurm
	// to say how its job ended.
	patience = time.Minute
	// skew is how far apart the clocks of Slurm and of a run's node may be.
	Skew = 2 * time.Second
	// maxWaiting is how many outcomes are known to wait; further ones begin to
	// wait anew each time.
	maxWaiting = 100_000
)

// ending is how a job's run ended.
type ending struct {
	state     slurm.State
	submitted int64 // Unix seconds; 0: not known
	restarts  uint32
	at        int64 // Unix seconds; 0: not known
	suspended bool  // for a while
}

// missed tells whether an outcome goes on well beyond the end of its job, of one that
// did all its work: something ran before its Epilog, and its agent didn't know.
func (e *ending) missed(o *record.Outcome) bool {
	const whole = time.Second // Slurm cuts fractions off
	_, timed := o.TimeS.Get()
	return timed && e.state == slurm.Completed && e.at > 0 && o.Ended.Sub(timeOf(e.at)) > Skew+whole
}

// fate is what Slurm's answer about a job says of a run.
type fate int

const (
	stillThere fate = iota // its Epilogs aren't done, or the answer is an old one
	over
	another // the answer is about another job: Slurm gives ids again
)

// lap is when a run of a job began.
type Run struct {
	Began     time.Time // zero: not known
	Submitted time.Time // the job, as far as was known then; zero: it wasn't
}

// fate tells what became of a run. Job ids come again, and restart counts differ
// between Prolog and Epilog of one run, so that runs are told apart by time:
// Slurm gives a job that is requeued another submit time.
//
// Of a run that was requeued Slurm's queue says no more than that: its state is
// REQUEUED, whatever the reason was.
func (k *Job) fate(run Run) (fate, ending) {
	s := k.stateOf()
	switch {
	case run.before(k):
		if k.Restarts > 0 {
			return over, ending{state: slurm.Requeued, restarts: k.Restarts - 1, at: run.requeued(k)}
		}
		return another, ending{}
	case s.Ended():
		suspended := k.unusual().suspended
		return over, ending{s.Base, k.Submitted, k.Restarts, k.unusual().end, suspended > 0 && suspended >= run.Began.Add(-Skew).Unix()}
	}
	return stillThere, ending{}
}

// endOf is when a run ended, Unix seconds, also while its job's Epilogs run; 0: it
// didn't, or that isn't known.
func (k *Job) endOf(run Run) int64 {
	f, end := k.fate(run)
	switch {
	case f == stillThere && timeOf(k.unusual().end).After(run.Began.Add(-Skew)): // else it is of the run before
		return k.unusual().end
	case f == over && (end.state != slurm.Requeued || !k.inEpilog()): // it gets another submit time after that
		return end.at
	}
	return 0
}

// End is when a run ended, also while its job's Epilogs run; zero: it didn't, or that
// isn't known.
func (k *Job) End(run Run) time.Time { return timeOf(k.endOf(run)) }

// inEpilog tells whether a job's Epilogs run.
func (k *Job) inEpilog() bool { return k.completing || k.state.state() == slurm.Completing }

// before tells whether a run began before the job was submitted or started as
// Slurm has it now.
func (l Run) before(k *Job) bool {
	if l.Began.IsZero() {
		return false
	}
	later, since := l.Began.Add(Skew).Unix(), k.Submitted
	if start := k.unusual().start; start > 0 && k.state.state() != slurm.Pending {
		since = start // even if that is before its submission: the clock was set back while it waited
	}
	return since > later ||
		!l.Submitted.IsZero() && k.Submitted > l.Submitted.Unix() && k.Submitted >= l.Began.Unix()
}

// requeued is when a run ended after which its job was queued anew, Unix seconds:
// that is when Slurm has it submitted. After several requeues it is a later one.
func (l Run) requeued(k *Job) int64 {
	if k.Submitted < l.Began.Unix() {
		return 0
	}
	return k.Submitted
}

// errGone tells that nobody can say how a job ended.
var errGone = errors.New("slurm doesn't know the job any more")

// Settle adds to the outcome of a run how its job ended. The Epilog itself isn't told
// of time limits and cancellations. Where nobody knows, what the Epilog knew stands.
// It returns when the job was submitted, Unix seconds, 0 if nobody knows, and the job
// if Slurm still knows it. An error says why it is too early to tell.
func (t *Tracker) Settle(ctx context.Context, o *record.Outcome, run Run) (submitted int64, job *Job, err error) {
	if t.options.Resolve == nil && t.options.Account == nil {
		return 0, nil, nil // nobody knows the job
	}
	end, job, err := t.endingOf(ctx, slurm.JobID(o.JobID), run, o.Ended) //nolint:gosec // the caller says so
	switch {
	case err == nil:
		o.ExitState, o.Restart = string(end.state), int(end.restarts)
		if end.submitted > 0 {
			o.Submitted = timeOf(end.submitted)
		}
		switch {
		case end.suspended:
			o.SetAside(record.Restarted{Suspended: true})
		case end.missed(o):
			o.SetAside(record.Restarted{Late: true})
		}
	case !errors.Is(err, errGone) && t.waiting.longer(o.Key(), t.options.Clock()):
		return 0, nil, fmt.Errorf("how job %d ended: %w", o.JobID, err)
	default:
		t.options.Log.Info("how a job ended isn't known", "job", o.JobID, "run", o.RunID, "reason", err)
	}
	t.waiting.end(o.Key())
	return end.submitted, job, nil
}

// endingOf is how a run ended: by Slurm's last list, by asking Slurm, or by its
// accounting, which doesn't tell the job.
func (t *Tracker) endingOf(ctx context.Context, id slurm.JobID, run Run, ended time.Time) (ending, *Job, error) {
	if h := t.table.over(id); h.job != nil {
		if f, end := h.job.fate(run); f == over {
			return end, h.job, nil
		}
	}
	job, err := t.resolve(ctx, id)
	if err == nil {
		switch f, end := job.fate(run); f {
		case over:
			return end, job, nil
		case stillThere:
			return ending{}, nil, fmt.Errorf("it is %s", job.state.state())
		case another:
		}
	} else if !errors.Is(err, slurm.ErrNotFound) && !errors.Is(err, errNobody) {
		return ending{}, nil, err
	}
	end, err := t.accounts.endingOf(ctx, t.options.Account, id, run, ended)
	return end, nil, err
}

// waiting are the outcomes that wait, by run, with when they came first.
type waiting struct {
	mu    sync.Mutex
	since map[record.RunKey]time.Time
}

// longer tells whether an outcome has to wait still. It doesn't go by when the
// run ended, since that is the time of another machine.
func (w *waiting) longer(run record.RunKey, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, known := w.since[run]
	switch {
	case known:
		return now.Sub(since) < patience
	case w.since == nil:
		w.since = make(map[record.RunKey]time.Time)
	case len(w.since) >= maxWaiting:
		for old := range w.since {
			delete(w.since, old)
			break
		}
	}
	w.since[run] = now
	return true
}

func (w *waiting) end(run record.RunKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, run)
}

// runs tells whether a run lasts.
func (k *Job) runs(run Run) bool {
	if f, _ := k.fate(run); f != stillThere {
		return false
	}
	switch k.state.state() { //nolint:exhaustive // the others don't run
	case slurm.Running, slurm.Suspended, slurm.Completing, slurm.Configuring:
		return true
	}
	return k.completing
}

// young is the age of a run up to which a job that waits may be one of which
// Slurm didn't say yet that it starts.
const young = 30 * time.Second

// Runs reports whether a run of a job lasts, with what is known of the job; nil:
// nothing. That it is over is believed of a new answer only; at its end, that it goes
// on is, too. The error says why nobody can tell.
func (t *Tracker) Runs(ctx context.Context, id slurm.JobID, run Run, ending bool) (job *Job, runs bool, err error) {
	if h := t.table.when(id); h.job != nil && t.table.fresh(h.asked) && h.job.runs(run) && (!ending || h.job.endOf(run) > 0) {
		return h.job, true, nil
	}
	job, err = t.resolve(ctx, id)
	switch {
	case errors.Is(err, slurm.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case job.runs(run):
		return job, true, nil
	}
	if f, _ := job.fate(run); f != stillThere {
		return job, false, nil
	}
	if job.state.state() == slurm.Pending && !run.Began.IsZero() && t.options.Clock().Sub(run.Began) > young {
		return job, false, nil
	}
	return job, false, errors.New("slurm may not know yet that the job starts")
}
