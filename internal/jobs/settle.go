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
	// maxWaiting is how many outcomes are known to wait; further ones begin to
	// wait anew each time.
	maxWaiting = 100_000
)

// late reports whether an outcome goes on well beyond the end of its job, of one that
// did all its work: something ran before its Epilog, and its agent didn't know.
func (e *ending) late(o *record.Outcome) bool {
	const whole = time.Second // Slurm cuts fractions off
	_, timed := o.TimeS.Get()
	return timed && e.state == slurm.Completed && e.at > 0 && o.Ended.Sub(timeOf(e.at)) > Skew+whole
}

// errGone means that nobody can say how a job ended.
var errGone = errors.New("slurm doesn't know the job any more")

// Settle adds to the outcome of a run how its job ended. The Epilog itself isn't told
// of time limits and cancellations. Where nobody knows, what the Epilog knew stands.
// It returns when the job was submitted, Unix seconds, 0 if nobody knows, and the job
// if Slurm still knows it. An error says why it is too early to tell.
func (t *Tracker) Settle(
	ctx context.Context, o *record.Outcome, run Run,
) (submitted int64, job *Job, err error) {
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
			o.MoveToRestarted(record.Restarted{Suspended: true})
		case end.late(o):
			o.MoveToRestarted(record.Restarted{Late: true})
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
func (t *Tracker) endingOf(
	ctx context.Context, id slurm.JobID, run Run, ended time.Time,
) (ending, *Job, error) {
	if h := t.table.endedJob(id); h.job != nil {
		if f, end := h.job.runState(run); f == runEnded {
			return end, h.job, nil
		}
	}
	job, err := t.resolve(ctx, id)
	if err == nil {
		switch f, end := job.runState(run); f {
		case runEnded:
			return end, job, nil
		case runLasts:
			return ending{}, nil, fmt.Errorf("it is %s", job.state.state())
		case idReused:
		}
	} else if !errors.Is(err, slurm.ErrNotFound) && !errors.Is(err, errNoSlurm) {
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

// longer reports whether an outcome still has to wait. It doesn't go by when the
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

// startGrace is the age of a run up to which a job that waits may be one of which
// Slurm didn't say yet that it starts.
const startGrace = 30 * time.Second

// Runs reports whether a run of a job lasts, with what is known of the job; nil:
// nothing. That it is over is believed of a new answer only; at its end, that it goes
// on is, too. The error says why nobody can tell.
func (t *Tracker) Runs(
	ctx context.Context, id slurm.JobID, run Run, ending bool,
) (job *Job, runs bool, err error) {
	if h := t.table.answer(id); h.job != nil && t.table.fresh(h.asked) && h.job.runs(run) &&
		(!ending || h.job.endOf(run) > 0) {
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
	if f, _ := job.runState(run); f != runLasts {
		return job, false, nil
	}
	if job.state.state() == slurm.Pending && !run.Began.IsZero() &&
		t.options.Clock().Sub(run.Began) > startGrace {
		return job, false, nil
	}
	return job, false, errors.New("slurm may not know yet that the job starts")
}
