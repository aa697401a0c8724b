package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Skew is how far apart the clocks of Slurm and of a run's node may be.
const Skew = 2 * time.Second

// runState is what Slurm's answer about a job says of a run.
type runState int

const (
	runLasts runState = iota // its Epilogs aren't done, or the answer is an old one
	runEnded
	idReused // the answer is about another job: Slurm gives ids again
)

// ending is how a job's run ended.
type ending struct {
	state     slurm.State
	submitted int64 // Unix seconds; 0: not known
	restarts  uint32
	start     int64  // Unix seconds; 0: not known
	at        int64  // Unix seconds; 0: not known
	gpus      int    // that Slurm gave it, on all nodes; 0: not known
	suspended bool   // for a while
	nodes     string // that it ran on, as Slurm lists them; "": not known
}

// Run is a run of a job by what was decided for it.
type Run struct {
	Decided     bool      // else nobody but its node says when it began
	Began       time.Time // zero: not known
	StartByNode time.Time // when it began by its node; zero: it doesn't say
	Submitted   time.Time // the job, as far as was known then; zero: it wasn't
	GPUs        int       // that the job had; 0: not known
	Limit       live.Limit
}

// runState returns what became of a run. Job ids come again, and restart counts differ
// between Prolog and Epilog of one run, so that runs are told apart by time:
// Slurm gives a job that is requeued another submit time.
//
// Of a run that was requeued Slurm's queue says no more than that: its state is
// REQUEUED, whatever the reason was.
func (job *Job) runState(run Run) (runState, ending) {
	s := job.stateOf()
	switch {
	case run.beganBefore(job):
		if job.Restarts() > 0 {
			return runEnded, ending{
				state: slurm.Requeued, restarts: job.Restarts() - 1, at: run.requeuedAt(job), gpus: job.GivenGPUs(),
			}
		}
		return idReused, ending{}
	case s.Ended():
		suspended, nodes := job.rareParts().suspended, job.rareParts().nodeList
		if job.inEpilog() {
			nodes = "" // Slurm takes out those whose Epilogs are over
		}
		return runEnded, ending{
			s.Base, job.Submitted, job.Restarts(), job.rareParts().start, job.rareParts().end, job.GivenGPUs(),
			suspended > 0 && suspended >= run.Began.Add(-Skew).Unix(), nodes,
		}
	}
	return runLasts, ending{}
}

// endOf returns when a run ended, Unix seconds, also while its job's Epilogs run; 0: it
// didn't, or that isn't known.
func (job *Job) endOf(run Run) int64 {
	f, end := job.runState(run)
	switch {
	// Else it is of the run before.
	case f == runLasts && timeOf(job.rareParts().end).After(run.Began.Add(-Skew)):
		return job.rareParts().end
	// It gets another submit time after that.
	case f == runEnded && (end.state != slurm.Requeued || !job.inEpilog()):
		return end.at
	}
	return 0
}

// End returns when a run ended, also while its job's Epilogs run; zero: it didn't, or that
// isn't known.
func (job *Job) End(run Run) time.Time { return timeOf(job.endOf(run)) }

// inEpilog reports whether a job's Epilogs run.
func (job *Job) inEpilog() bool { return job.completing || job.state.state() == slurm.Completing }

// beganBefore reports whether a run began before the job was submitted or started as
// Slurm has it now.
func (r Run) beganBefore(job *Job) bool {
	if r.Began.IsZero() { // which start of a requeued job it was, its node alone knows
		return job.Restarts() > 0 && !r.StartByNode.IsZero() && job.Submitted > r.StartByNode.Add(Skew).Unix()
	}
	later, since := r.Began.Add(Skew).Unix(), job.Submitted
	if start := job.rareParts().start; start > 0 && job.state.state() != slurm.Pending {
		since = start // even if that is before its submission: the clock was set back while it waited
	}
	return since > later ||
		!r.Submitted.IsZero() && job.Submitted > r.Submitted.Unix() && job.Submitted >= r.Began.Unix()
}

// requeuedAt returns when a run ended after which its job was queued anew, Unix seconds:
// that is when Slurm has it submitted. After several requeues it is a later one.
func (r Run) requeuedAt(job *Job) int64 {
	if job.Submitted < r.Began.Unix() {
		return 0
	}
	return job.Submitted
}

// runs reports whether a run lasts.
func (job *Job) runs(run Run) bool {
	if f, _ := job.runState(run); f != runLasts {
		return false
	}
	switch job.state.state() { //nolint:exhaustive // the others don't run
	case slurm.Running, slurm.Suspended, slurm.Completing, slurm.Configuring:
		return true
	}
	return job.completing
}

const (
	// patience is how long an outcome waits, from when it first came, for Slurm
	// to say how its job ended.
	patience = time.Minute
	// maxWaiting is how many outcomes are known to wait; further ones begin to
	// wait anew each time.
	maxWaiting = 100_000
)

// isLate reports whether an outcome goes on well beyond the end of its job, and beyond the time that Slurm
// gives a job which it ends: something ran before its Epilog, and its agent didn't know. A node whose clock is
// ahead of the controller's ended no later for that.
func (e *ending) isLate(o *record.Outcome, run *Run) bool {
	const whole = time.Second // Slurm cuts fractions off
	_, timed := o.TimeS.Get()
	most, ahead := Skew+whole, time.Duration(0)
	if e.state != slurm.Completed {
		most += killSlack
	}
	if run.Decided && !o.Started.IsZero() {
		ahead = max(0, o.Started.Sub(run.Began))
	}
	return timed && e.at > 0 && o.Ended.Add(-ahead).Sub(timeOf(e.at)) > most
}

// errGone means that nobody can say how a job ended.
var errGone = errors.New("slurm doesn't know the job any more")

// errNotThere means that Slurm knows the job, and it can't have had the run that is asked about.
var errNotThere = errors.New("slurm doesn't have the job there")

// Settled is what Slurm and the decision say of a run that ended.
type Settled struct {
	Submitted int64         // Unix seconds, when Slurm has the job submitted; 0: nobody knows
	Job       *Job          // nil: Slurm doesn't know it any more
	Bounds    record.Bounds // but for the power of its GPUs
}

// Settle adds to the outcome of a run how its job (0: it has none) ended. The Epilog itself isn't told of
// time limits and cancellations. Where nobody knows, what the Epilog knew stands. An outcome that nobody
// decided about is [record.Outcome.Unmatched] if Slurm says that its job ran on other nodes, is elsewhere,
// was submitted after it, or was requeued, and nobody knows since when it can have run. An error says why it
// is too early to tell.
func (t *Tracker) Settle(
	ctx context.Context, id slurm.JobID, o *record.Outcome, run Run,
) (Settled, error) {
	if o.Unmatched || id == 0 || !t.options.asksSlurm() {
		return Settled{Bounds: new(ending).bounds(&run, o.Node, t)}, nil // nobody knows the job
	}
	if run.StartByNode = o.Started; run.StartByNode.IsZero() && !o.Ended.IsZero() {
		run.StartByNode = o.Ended.Add(-live.Known(o.TimeS.Or(0)).Duration())
	}
	end, job, err := t.endingOf(ctx, id, run, o)
	switch {
	case err == nil:
		o.ExitState, o.Restart = string(end.state), int(end.restarts)
		isKnown := true                                               // since when it can have run
		if end.submitted == 0 && o.Submitted.IsZero() && end.at > 0 { // it was requeued
			before := t.SubmittedAt(ctx, id, timeOf(end.at).Add(-time.Second))
			if isKnown = before != nil; isKnown {
				end.submitted = before.Submitted.Unix()
				end.start, run.GPUs, run.Limit = end.submitted, before.GPUs, before.Limit
			}
		}
		o.Unmatched = o.DecisionID == 0 && (!isKnown || !mayListNode(end.nodes, o.Node))
		if end.submitted > 0 {
			o.Submitted = timeOf(end.submitted)
		}
		switch {
		case end.suspended:
			o.MoveToRestarted(record.Restarted{Suspended: true})
		case end.isLate(o, &run):
			o.MoveToRestarted(record.Restarted{Late: true})
		}
	case !errors.Is(err, errGone) && t.waiting.mustWait(o.Key(), t.options.Clock()):
		return Settled{}, fmt.Errorf("how job %d ended: %w", o.JobID, err)
	default:
		o.Unmatched = o.DecisionID == 0 && errors.Is(err, errNotThere)
		if t.unknown.isNew(o.Node, t.options.Clock()) {
			t.options.Log.Info("how a job ended isn't known", "job", o.JobID, "run", o.RunID, "node", o.Node,
				"reason", err)
		}
	}
	t.waiting.end(o.Key())
	if job != nil && !run.Limit.IsSet() {
		run.Limit = job.Limit
	}
	return Settled{end.submitted, job, end.bounds(&run, o.Node, t)}, nil
}

// endingOf returns how the run of an outcome ended: by Slurm's last list, by asking Slurm, or by its
// accounting, which doesn't tell the job.
func (t *Tracker) endingOf(
	ctx context.Context, id slurm.JobID, run Run, o *record.Outcome,
) (ending, *Job, error) {
	if h := t.table.endedJob(id); h.job != nil {
		if f, end := h.job.runState(run); f == runEnded {
			return end, h.job, nil
		}
	}
	isLater := false
	job, err := t.resolve(ctx, id)
	if err == nil {
		switch f, end := job.runState(run); f {
		case runEnded:
			return end, job, nil
		case runLasts:
			err := fmt.Errorf("it is %s", job.state.state())
			if !job.MayRunOn(o.Node) {
				err = fmt.Errorf("%w: %w", errNotThere, err)
			}
			return ending{}, nil, err
		case idReused:
			isLater = true
		}
	} else if !errors.Is(err, slurm.ErrNotFound) && !errors.Is(err, errNoSlurm) {
		return ending{}, nil, err
	}
	end, err := t.accounts.endingOf(ctx, t.options.Account, id, run, run.since(o.Ended, t.options.Clock()))
	if isLater && err != nil {
		err = fmt.Errorf("%w: it was submitted later: %w", errNotThere, err)
	}
	return end, nil, err
}

// logLimiter remembers of which nodes something was told lately.
type logLimiter struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// Bounds of what is told of nodes.
const (
	repeatAfter   = time.Hour
	maxRemembered = 20_000
)

// isNew reports whether that wasn't told of a node lately, and notes that it is.
func (e *logLimiter) isNew(node string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, known := e.told[node]; known && now.Sub(at) < repeatAfter {
		return false
	}
	if e.told == nil || len(e.told) >= maxRemembered {
		e.told = make(map[string]time.Time)
	}
	e.told[node] = now
	return true
}

// waitingOutcomes are the outcomes that wait, by run, with when they came first.
type waitingOutcomes struct {
	mu    sync.Mutex
	since map[record.RunKey]time.Time
}

// mustWait reports whether an outcome still has to wait. It doesn't go by when the
// run ended, since that is the time of another machine.
func (w *waitingOutcomes) mustWait(run record.RunKey, now time.Time) bool {
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

func (w *waitingOutcomes) end(run record.RunKey) {
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
	if h := t.table.answer(id); h.job != nil && t.table.isFresh(h.asked) && h.job.runs(run) &&
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
