package agent

import (
	"context"
	"sync"
	"time"
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
