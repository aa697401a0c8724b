package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/live"
)

// Applied is what a run got.
type Applied struct {
	Locked   bool   // its GPUs are locked, at its setting or a faster one
	HandsOff string // why they aren't
}

// Apply opens a run and locks all its GPUs, or none. It returns once they are
// locked, or back at default clocks; the error says why not, and what couldn't
// be undone; or that the driver refuses what the run does without. A run that is open
// already is reconciled again. An open run of the same job is closed first: its Epilog
// never came.
func (a *Agent) Apply(ctx context.Context, run live.Run) (Applied, error) {
	if err := checkRun(&run); err != nil {
		return Applied{}, err
	}
	run.GPUs = slices.Compact(slices.Sorted(slices.Values(run.GPUs)))
	if !run.HookDeadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, run.HookDeadline, ErrLate)
		defer cancel()
	}
	superseded := a.replaceOpenRun(ctx, &run)
	_, heeding := a.reconciler.applyReturned(ctx, run.GPUs) // what was given back is no word about this run
	refusal := a.admission.check(ctx, &run)
	keeping := a.registerRun(&run, refusal)
	cards := a.gpus.byUUIDs(run.GPUs)
	reconciling := a.reconciler.reconcile(ctx, cards)
	if reconciling == nil && (ctx.Err() != nil || isHookLate(&run, time.Now())) {
		reconciling = a.releaseLate(ctx, run.ID, ErrLate)
	}
	return a.applied(run.ID),
		errors.Join(superseded, heeding, refusal, keeping, reconciling)
}

// releaseLate puts a run that completed too late to default clocks.
func (a *Agent) releaseLate(ctx context.Context, id string, reason error) error {
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.UndoTimeout)
	defer cancel()
	return errors.Join(reason, a.revertToDefault(undo, id, notLockedReason(reason)))
}

// applied returns what a run has now.
func (a *Agent) applied(id string) Applied {
	why := a.runs.whyNotLocked(id, func(uuid string) bool {
		c := a.gpus.byUUID(uuid)
		return c != nil && c.journalEntry().isOfRun()
	})
	return Applied{Locked: why == "", HandsOff: why}
}

// RevertToDefault puts a run to default clocks for the rest of its time. The first reason stays.
func (a *Agent) RevertToDefault(ctx context.Context, id, reason string) error {
	return a.revertToDefault(ctx, id, live.NotLocked{Kind: live.NotLockedRestart, Why: reason})
}

// revertToDefault puts a run to default clocks for the rest of its time.
func (a *Agent) revertToDefault(ctx context.Context, id string, why live.NotLocked) error {
	uuids, err := a.runs.revertToDefault(id, why)
	if err != nil {
		return err
	}
	return a.reconciler.reconcile(ctx, a.gpus.byUUIDs(uuids))
}

// registerRun registers a run and writes it down. One that is refused, or that can't be
// written down, gets default clocks: of the latter nobody would know after a crash.
func (a *Agent) registerRun(run *live.Run, refusal error) error {
	if a.runs.refuse(run.ID, refusal) {
		return nil
	}
	r := &openRun{Run: *run, file: runFile{Schema: runSchema, Run: *run}, sampler: NewSampler(*run)}
	if refusal != nil {
		r.revertToDefault(notLockedReason(refusal))
	}
	if run.Missed {
		r.sampler.partial = true
		r.note("its GPUs weren't opened when it began: it was at default clocks until " +
			time.Now().UTC().Format(time.TimeOnly) + " UTC, and isn't measured from its start")
	}
	if energy := a.poller.counters(run); len(energy) > 0 {
		r.file.Counters = &counters{Boot: a.options.Boot, Driver: a.options.Driver, Energy: energy}
	}
	rec := r.file
	err := a.runs.write(&rec)
	_ = a.poller.meterHost() // what was used up to now is others'; the next sample says what fails
	a.runs.begin(r, err)
	a.poller.begin(run.GPUs)
	notify(a.adapter.opened)
	return err
}

// replaceOpenRun closes an open run of the same job under another id.
func (a *Agent) replaceOpenRun(ctx context.Context, run *live.Run) error {
	var err error
	for _, old := range a.runs.open(func(r *openRun) bool {
		return r.Job == run.Job && r.Node == run.Node && r.ID != run.ID
	}) {
		_, ending := a.end(ctx, old, runEnd{reason: "superseded by another run of the job", late: true})
		if !errors.Is(ending, ErrNoRun) { // else it ended meanwhile
			err = errors.Join(err, ending)
		}
	}
	return err
}

// isHookLate reports whether the hook that waits for a run has given up.
func isHookLate(r *live.Run, now time.Time) bool {
	return !r.HookDeadline.IsZero() && now.After(r.HookDeadline)
}

// End closes the run of a job on a node and gives its GPUs back, unless others
// run on them. What it returns stays on file until [RunSet.Forget]. The error
// is ErrNoRun, or says what couldn't be given back or written down; the run is
// closed all the same.
func (a *Agent) End(ctx context.Context, job uint32, node string) (ClosedRun, error) {
	ids := a.runs.open(func(r *openRun) bool { return r.Job == job && r.Node == node })
	if len(ids) == 0 {
		return ClosedRun{}, fmt.Errorf("job %d on %s: %w", job, node, ErrNoRun)
	}
	var last ClosedRun
	var errs []error
	for _, id := range ids {
		closed, err := a.end(ctx, id, runEnd{reason: JobEnded})
		last, errs = closed, append(errs, err)
	}
	return last, errors.Join(errs...)
}

// end closes a run: first its clocks, then its file, so that a crash between
// leaves an open run without clocks, which a sweep closes.
func (a *Agent) end(ctx context.Context, id string, how runEnd) (ClosedRun, error) {
	run, ok := a.runs.find(id)
	if !ok {
		return ClosedRun{}, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	cards := a.gpus.byUUIDs(run.GPUs)
	if how.at.IsZero() {
		_ = a.poller.revertAtRisk(ctx, a.poller.sample(cards)) // the last sample; what fails here fails below
		_ = a.poller.meterHost()
	}
	rec, err := a.runs.close(id, how)
	if err != nil {
		return ClosedRun{}, err
	}
	reconciling := a.reconciler.reconcile(ctx, cards)
	return closedRunOf(&rec), errors.Join(reconciling, a.runs.keepEnd(id))
}
