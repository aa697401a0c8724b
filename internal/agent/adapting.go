package agent

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/gpu"
)

// adapter steps the clocks of the runs that are adapted, by what a look at their GPUs
// shows.
type adapter struct {
	gpus        *GPUSet
	runs        *RunSet
	reconciler  *reconciler
	poller      *poller
	undoTimeout time.Duration // of a GPU's turn when a clock is stepped
	opened      chan struct{} // wakes its loop when a run begins
	steps       atomic.Int64  // clock changes
}

// idlePause is a pause while no clock is adapted; a run that begins ends it.
const idlePause = time.Hour

// interval returns how long until the next run is to be looked at, half the shortest
// period at least.
func (d *adapter) interval() time.Duration {
	pause := idlePause
	d.runs.eachOpen(func(r *openRun) {
		if r.isAdapted() {
			pause = min(pause, r.Adapt.Interval()-time.Since(r.stepper.last))
		}
	})
	return max(minTau/2, pause)
}

// adapt looks once at the GPUs of each run whose clock is adapted, and steps it.
// A GPU that can't be read counts as one at work, a clock that can't be set puts
// the runs on the GPU to default clocks.
func (d *adapter) adapt(ctx context.Context, clock func() time.Time) error {
	cards := d.adaptedGPUs()
	if len(cards) == 0 || ctx.Err() != nil {
		return nil
	}
	found := d.poller.sample(cards)
	trouble := d.poller.revertAtRisk(ctx, found)
	stepped, changed := d.step(found, clock())
	if len(stepped) == 0 {
		return trouble
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.undoTimeout)
	defer cancel()
	reconciling := d.reconciler.reconcile(ctx, changed)
	now := clock()
	d.runs.eachOpen(func(r *openRun) {
		if slices.Contains(stepped, r) && r.isAdapted() { // else it is at default clocks, or going there
			r.stepper.noteInForce(now)
			d.steps.Add(1)
		}
	})
	return errors.Join(trouble, reconciling)
}

// adaptedGPUs returns the GPUs of the runs whose clocks are adapted.
func (d *adapter) adaptedGPUs() []*managedGPU {
	var uuids []string
	d.runs.eachOpen(func(r *openRun) {
		if r.isAdapted() {
			uuids = append(uuids, r.GPUs...)
		}
	})
	return d.gpus.byUUIDs(uuids)
}

// step steps each run by what was found, and returns those whose clocks change,
// with their cards. A run that shares a GPU goes to its ceiling, as the driver
// doesn't say whose work it sees there.
func (d *adapter) step(found []sampleResult, now time.Time) (stepped []*openRun, cards []*managedGPU) {
	used := make(map[string]sampleResult, len(found))
	for _, f := range found {
		used[f.gpu.uuid] = f
	}
	var uuids []string
	d.runs.eachOpen(func(r *openRun) {
		if !r.isAdapted() {
			return
		}
		util, left, alone := 0.0, r.Adapt.Writes, true
		for _, uuid := range r.GPUs {
			f, seen := used[uuid]
			if !seen || f.err != nil || !gpu.IsMeasured(f.util) {
				util = math.NaN() // and stays so
			}
			util += f.util
			if c := d.gpus.byUUID(uuid); c != nil {
				left = min(left, c.writesLeft(now, r.Adapt.Writes))
				alone = alone && len(d.runs.runsOn(c)) == 1
			}
		}
		level := r.stepper.level
		changed := r.stepper.stepShared(now, util, left, alone)
		spent, _ := r.sampler.SoFar()
		r.residency.book(now, level, r.stepper.passed, r.stepper.workPart, spent, alone)
		if changed {
			stepped, uuids = append(stepped, r), append(uuids, r.GPUs...)
		}
	})
	return stepped, d.gpus.byUUIDs(uuids)
}
