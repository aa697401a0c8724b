package agent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Life is whether a run's job is still there.
type Life uint8

// What isn't known is never acted upon.
const (
	LifeUnknown Life = iota
	LifeAlive
	LifeGone
)

// Probe finds out whether a run's job is still there. An error counts as
// LifeUnknown.
type Probe func(context.Context, Run) (Life, error)

// Swept is what a sweep did.
type Swept struct {
	Closed []Closed // runs whose job is gone
	Report Report   // entries of GPUs that no run wants locked
}

// Sweep closes runs whose jobs are gone by the word of Slurm and of the
// machine's processes alike, and tries again what went wrong before: entries
// that were kept, ends that couldn't be written down, a journal that couldn't
// be read, GPUs none of which could be opened. The error joins all that went
// wrong now.
func (a *Agent) Sweep(ctx context.Context, slurm, processes Probe) (Swept, error) {
	var swept Swept
	var errs []error
	if len(a.allCards()) == 0 { // the driver may come after the agent
		errs = append(errs, a.open())
	}
	young := time.Now().Add(-a.options.Grace)
	for _, id := range a.openRuns(func(r *Run) bool { return !r.Started.After(young) }) {
		gone, err := a.isGone(ctx, id, slurm, processes)
		if err != nil {
			errs = append(errs, err)
		}
		if !gone {
			continue
		}
		closed, err := a.end(ctx, id, "its job is gone")
		if errors.Is(err, ErrNoRun) {
			continue // ended meanwhile
		}
		swept.Closed, errs = append(swept.Closed, closed), append(errs, err)
	}
	errs = append(errs, a.keepAgain())
	report, err := a.sweepJournal(ctx)
	swept.Report = report
	return swept, errors.Join(append(errs, err, report.Err())...)
}

// isGone asks both; each may say that the run lives.
func (a *Agent) isGone(ctx context.Context, id string, probes ...Probe) (bool, error) {
	a.mu.Lock()
	r, ok := a.runs[id]
	if !ok {
		a.mu.Unlock()
		return false, nil
	}
	run := r.Run
	a.mu.Unlock()
	for _, probe := range probes {
		life, err := probe(ctx, run)
		if err != nil {
			return false, fmt.Errorf("look for job %d: %w", run.Job, err)
		}
		if life != LifeGone {
			return false, nil
		}
	}
	return true, nil
}

// keepAgain writes down ends that couldn't be before.
func (a *Agent) keepAgain() error {
	a.mu.Lock()
	var left []runFile
	for _, r := range a.runs {
		if r.ended && !r.kept {
			left = append(left, r.file)
		}
	}
	a.mu.Unlock()
	errs := make([]error, 0, len(left))
	for i := range left {
		errs = append(errs, a.keep(left[i].Run.ID, &left[i]))
	}
	return errors.Join(errs...)
}

// sweepJournal replays the entries of GPUs that no run wants locked, with fresh
// handles: a GPU may have come back.
func (a *Agent) sweepJournal(ctx context.Context) (Report, error) {
	a.mu.Lock()
	replayed := a.replayed
	a.mu.Unlock()
	if !replayed {
		opening := a.open()
		report, err := a.replay(ctx, nil)
		return report, errors.Join(opening, err)
	}
	names, _, err := liveFiles(a.journal.folder, false)
	if err != nil {
		return Report{}, fmt.Errorf("read the journal: %w", err)
	}
	var report Report
	opened := false
	for _, uuid := range names {
		if c := a.card(uuid); c != nil && a.untouchable(c) {
			continue
		}
		if !opened {
			opened, err = true, a.open()
		}
		if item := a.replayOne(ctx, uuid, true); item.Fate != "" {
			report.GPUs = append(report.GPUs, item)
		}
	}
	return report, err
}
