package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/epplan/epplan/live"
)

// How often runs are guarded and swept.
const (
	guardEvery = 15 * time.Second
	sweepEvery = 30 * time.Second
)

// WatchHooks is what an agent is told while runs last.
type WatchHooks struct {
	Slurm     JobProbe // what Slurm knows of a run: limits and models change while it lasts
	Processes JobProbe // whether anything runs on its GPUs
	// ClosedRun is told of runs that a sweep closed, Trouble of what went wrong
	// and is tried again; neither may wait for long.
	OnClosed  func(ClosedRun)
	OnProblem func(error)
}

// Watch samples, adapts, guards and sweeps until the context ends, and returns
// when all four have stopped.
func (a *Agent) Watch(ctx context.Context, w WatchHooks) {
	var group sync.WaitGroup
	group.Go(func() {
		repeat(ctx, a.poller.interval, a.poller.opened, func() { a.poller.sampleDue(ctx, w.OnProblem) })
	})
	group.Go(func() {
		repeat(ctx, a.adapter.interval, a.adapter.opened, func() {
			if err := a.adapter.adapt(ctx, time.Now); err != nil {
				w.OnProblem(err)
			}
		})
	})
	group.Go(func() {
		repeat(ctx, func() time.Duration { return guardEvery }, nil, func() {
			if err := a.Guard(ctx, w.Slurm); err != nil {
				w.OnProblem(err)
			}
		})
	})
	group.Go(func() {
		repeat(ctx, a.leases.wait, a.leases.news, func() {
			if err := a.leases.end(ctx); err != nil {
				w.OnProblem(err)
			}
		})
	})
	group.Go(func() {
		first := make(chan struct{}, 1)
		first <- struct{}{} // at once: jobs may have ended while there was no agent
		repeat(ctx, func() time.Duration { return sweepEvery }, first, func() {
			swept, err := a.Sweep(ctx, w.Slurm, w.Processes)
			for _, c := range swept.Closed {
				w.OnClosed(c)
			}
			if err != nil {
				w.OnProblem(err)
			}
		})
	})
	group.Wait()
}

// repeat does something again and again, with pauses that end early when there
// is news.
func repeat(ctx context.Context, pause func() time.Duration, news <-chan struct{}, do func()) {
	for {
		timer := time.NewTimer(pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-news:
			timer.Stop()
		}
		do()
	}
}

// limitPart says which part of a short limit the guard wants to be left, a
// twentieth, where that is less than its margin.
const limitPart = 20

// Guard asks for each run at lowered clocks what its limit is now, and puts
// those to default clocks for which it is at risk, unless their users chose
// them. When nobody answers, what was known before holds. Runs whose jobs are over
// need their clocks no longer.
func (a *Agent) Guard(ctx context.Context, ask JobProbe) error {
	var errs []error
	for _, run := range a.runs.loweredRuns() {
		now, err := ask(ctx, run)
		if err != nil {
			errs = append(errs, fmt.Errorf("limit of job %d: %w", run.Job, err))
			now = live.Outlook{}
		}
		if !now.Ended.IsZero() { // others' Epilogs run before ours
			errs = append(errs, a.reconciler.reconcile(ctx, a.gpus.byUUIDs(a.runs.releaseEnded(run.ID))))
			continue
		}
		run, open := a.runs.updateForecast(run, now)
		if reason := riskReason(&run, time.Since(run.Started), a.options.Margin); open && reason != "" &&
			!run.Wish.Fixed {
			errs = append(errs, a.revertToDefault(ctx, run.ID,
				live.NotLocked{Kind: live.NotLockedLimit, Why: reason}))
			a.guarded.Add(1)
		}
	}
	return errors.Join(errs...)
}

// riskReason says why a run's limit is at risk at its setting; "" when it isn't.
func riskReason(run *live.Run, elapsed, margin time.Duration) string {
	limit, limited := run.Limit.Duration()
	if !limited {
		return ""
	}
	end := limit - min(margin, limit/limitPart)
	switch {
	case run.Upper <= 0:
		return "nobody knows how long it takes at most"
	case elapsed > run.Upper:
		return fmt.Sprintf("runs longer than %s, its bound", run.Upper)
	case run.Upper > end:
		return fmt.Sprintf("may run for %s, too near to its limit of %s", run.Upper, limit)
	}
	return ""
}
