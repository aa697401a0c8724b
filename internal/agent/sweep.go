package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/live"
)

// JobProbe finds out what is known of a run by now: whether its job is still there, and
// how long it may last. An error counts as [live.JobUnknown].
type JobProbe func(context.Context, live.Run) (live.Outlook, error)

// SweepResult is what a sweep did.
type SweepResult struct {
	Closed []ClosedRun // runs whose job is gone
	Report Report      // entries of GPUs that no run wants locked
}

// Sweep closes runs whose jobs are gone, and tries again what went wrong before:
// entries that were kept, runs and ends that couldn't be written down, a journal that
// couldn't be read, GPUs that couldn't be opened or were lost since. The error joins
// all that went wrong now.
func (a *Agent) Sweep(ctx context.Context, slurm, processes JobProbe) (SweepResult, error) {
	var swept SweepResult
	var errs []error
	if a.gpus.isIncomplete() { // the driver may come after the agent, and a GPU come back
		errs = append(errs, a.gpus.open())
	}
	closed, err := a.closeGoneRuns(ctx, func(*openRun) bool { return true }, slurm, processes)
	swept.Closed = closed
	errs = append(errs, err, a.runs.retryWrites())
	_, err = a.reconciler.applyReturned(ctx, nil)
	errs = append(errs, err)
	report, err := a.holder.sweep(ctx)
	swept.Report = report
	return swept, errors.Join(append(errs, err, report.Err())...)
}

// CloseGoneOn closes the runs on GPUs whose jobs are gone, as a sweep does: a new run
// on them is to begin. What isn't known by the end of the context stays open.
func (a *Agent) CloseGoneOn(
	ctx context.Context, uuids []string, slurm, processes JobProbe,
) ([]ClosedRun, error) {
	return a.closeGoneRuns(ctx, func(r *openRun) bool {
		return slices.ContainsFunc(r.GPUs, func(uuid string) bool { return slices.Contains(uuids, uuid) })
	}, slurm, processes)
}

// closeGoneRuns closes those of some runs whose jobs are gone. Young ones aren't asked
// about, as Slurm may not know yet that they started; those that were open when
// the agent started are.
func (a *Agent) closeGoneRuns(
	ctx context.Context, rule func(*openRun) bool, slurm, processes JobProbe,
) (all []ClosedRun, err error) {
	young := time.Now().Add(-a.options.Grace)
	var errs []error
	for _, id := range a.runs.open(func(
		r *openRun,
	) bool {
		return rule(r) && (r.reread || !r.Started.After(young))
	}) {
		gone, ended, err := a.isGone(ctx, id, slurm, processes)
		if err != nil {
			errs = append(errs, err)
		}
		if !gone {
			continue
		}
		closed, err := a.end(ctx, id, runEnd{reason: "its job is gone", at: ended, late: ended.IsZero()})
		if errors.Is(err, ErrNoRun) {
			continue // ended meanwhile
		}
		all, errs = append(all, closed), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// isGone asks Slurm and then the machine's processes whether a run's job is gone:
// each may say that it lives. Where Slurm knows when the job ended that is enough,
// and whatever still runs on its GPUs is somebody else's.
func (a *Agent) isGone(
	ctx context.Context, id string, slurm, processes JobProbe,
) (gone bool, ended time.Time, err error) {
	run, ok := a.runs.find(id)
	if !ok {
		return false, time.Time{}, nil
	}
	for _, probe := range []JobProbe{slurm, processes} {
		now, err := probe(ctx, run)
		switch {
		case err != nil:
			return false, time.Time{}, fmt.Errorf("look for job %d: %w", run.Job, err)
		case now.Life != live.LifeGone:
			return false, time.Time{}, nil
		case !now.Ended.IsZero():
			return true, now.Ended, nil
		}
	}
	return true, time.Time{}, nil
}
