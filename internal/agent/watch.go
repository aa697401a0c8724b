package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
)

// How often things are looked at.
const (
	sampleEvery = time.Second
	learnEvery  = sampleEvery / 10 // the GPUs of a run that is to be learnt from
	guardEvery  = 15 * time.Second
	sweepEvery  = 30 * time.Second
)

// Clocks count as somebody else's after so many samples in a row, over such a
// time.
const (
	externalSamples = 5
	externalFor     = 4 * time.Second
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
		repeat(ctx, a.sampleInterval, a.opened, func() { a.sampleDue(ctx, w.OnProblem) })
	})
	group.Go(func() {
		repeat(ctx, a.adaptInterval, a.adapts, func() {
			if err := a.adapt(ctx, time.Now); err != nil {
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

// sampleInterval is how long until the next sample: as often as the run that learns
// needs.
func (a *Agent) sampleInterval() time.Duration {
	if len(a.openRuns(func(r *openRun) bool { return r.Learning })) > 0 {
		return learnEvery
	}
	return sampleEvery
}

// sampleDue samples the GPUs whose time has come.
func (a *Agent) sampleDue(ctx context.Context, trouble func(error)) {
	now := time.Now()
	var due []*managedGPU
	a.mu.Lock()
	for _, c := range a.gpus.all() {
		runs := a.runsOn(c)
		every := sampleEvery
		if slices.ContainsFunc(runs, func(r *openRun) bool { return r.Learning }) {
			every = learnEvery
		}
		if len(runs) > 0 && now.Sub(c.sampled) >= every-learnEvery/2 {
			c.sampled = now
			due = append(due, c)
		}
	}
	a.mu.Unlock()
	if len(due) == 0 {
		return
	}
	if err := errors.Join(a.react(ctx, a.sample(due)), a.meterHostReporting()); err != nil {
		trouble(err)
	}
}

// sampleResult is what a sample says about a card; a nil error says nothing.
type sampleResult struct {
	gpu  *managedGPU
	util float64 // 0 where it couldn't be read
	err  error
}

// sample reads cards side by side and hands the readings to the runs on them.
func (a *Agent) sample(cards []*managedGPU) []sampleResult {
	found := make([]sampleResult, len(cards))
	var group errgroup.Group
	group.SetLimit(a.maxParallel)
	for i, c := range cards {
		group.Go(func() error {
			util, err := a.sampleOne(c)
			found[i] = sampleResult{c, util, err}
			return nil
		})
	}
	_ = group.Wait() // errors are in found
	return found
}

// sampleOne reads a card for the runs on it. The error says that it couldn't be
// read, or that somebody else sets its clocks.
func (a *Agent) sampleOne(c *managedGPU) (util float64, err error) {
	reading, err := call(c, gpu.Device.Read)
	a.mu.Lock()
	runs := a.runsOn(c)
	markSharedRuns(runs)
	for _, r := range runs {
		if err != nil {
			r.sampler.Miss(c.uuid)
		} else {
			r.sampler.Add(c.uuid, reading)
		}
	}
	a.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return reading.Utilisation, c.checkExternalChange(&reading)
}

// react puts the runs on cards to default clocks where a sample says so.
func (a *Agent) react(ctx context.Context, found []sampleResult) error {
	var errs []error
	for _, f := range found {
		switch {
		case f.err == nil:
			continue
		case errors.Is(f.err, gpu.ErrReloaded):
			errs = append(errs, a.gpus.open())
		case errors.Is(f.err, ErrExternalChange):
			// It was epd restore.
			if heeded, err := a.applyReturned(ctx, []string{f.gpu.uuid}); len(heeded) > 0 {
				errs = append(errs, err)
				continue
			}
		case errors.Is(f.err, gpu.ErrLost):
		default:
			errs = append(errs, f.err) // the next sample may go well
			continue
		}
		errs = append(errs, a.settleAll(ctx, a.giveUp([]*managedGPU{f.gpu}, f.err.Error())))
	}
	return errors.Join(errs...)
}

// checkExternalChange says that somebody else sets the card's clocks, once enough samples
// in a row don't fit what it is locked at.
func (c *managedGPU) checkExternalChange(r *gpu.Reading) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entry == nil || !c.isEntryTrue || c.externalChange != "" {
		return nil
	}
	want := c.entry.Setting()
	if !isExternal(r, want) {
		c.strayCount = 0
		return nil
	}
	if c.strayCount++; c.strayCount == 1 {
		c.firstStray = r.At
	}
	if c.strayCount < externalSamples || r.At.Sub(c.firstStray) < externalFor {
		return nil
	}
	runs, locked := shownValues(r, want)
	c.externalChange = fmt.Sprintf("%s runs at %s, was locked at %s", c.uuid, runs, locked)
	return fmt.Errorf("%w: %s", ErrExternalChange, c.externalChange)
}

// isExternal reports whether what a reading shows of a control can't come from the lock: it
// is above it, or below it under load without a reason to throttle.
func isExternal(r *gpu.Reading, want dvfsmodel.Setting) bool {
	loaded := r.Utilisation > 0 && r.Throttle&(throttling|gpu.ThrottleIdle) == 0
	for control := range gpu.NumControls {
		v, tolerance, ok := control.Shown(r)
		if ok && loaded && v > 0 && v < control.Of(want)-tolerance {
			return true
		}
	}
	return isAbove(r, want)
}
