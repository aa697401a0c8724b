package agent

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// AdaptationState is how a run fares whose clock is adapted.
type AdaptationState struct {
	SLA      float64
	Slowdown float64 // times as long as at default clocks, at most, so far
}

// isAdapted reports whether the run's clock is stepped. The agent's mu is held.
func (r *openRun) isAdapted() bool {
	return r.stepper != nil && !r.ended && !r.jobEnded && r.handsOff == "" && !r.Wish.OptOut
}

// adaptationState is how the run fares; nil where its clock isn't adapted. The agent's
// mu is held.
func (r *openRun) adaptationState() *AdaptationState {
	if !r.isAdapted() {
		return nil
	}
	return &AdaptationState{SLA: r.Adapt.SLA, Slowdown: r.stepper.slowdown()}
}

// checkAdaptation takes the levels out of a run's adaptation that a GPU doesn't
// have or mustn't be at; without the ceiling or the clock it begins with, there
// is none.
func (a *Agent) checkAdaptation(run *live.Run) error {
	if run.Adapt == nil {
		return nil
	}
	if err := checkAdaptation(run.Adapt); err != nil {
		return err
	}
	rule := *run.Adapt
	rule.Levels = slices.Clone(rule.Levels)
	for _, uuid := range run.GPUs {
		c := a.gpus.byUUID(uuid)
		if c == nil {
			return ErrNoGPU
		}
		table, err := c.clocks()
		if err != nil {
			return err
		}
		rule.Levels = slices.DeleteFunc(rule.Levels, func(l live.AdaptLevel) bool {
			at := run.Setting
			at.Core = l.Core
			return !supports(table, at) || a.checkRange(c, at) != nil
		})
	}
	run.Adapt = &rule
	if levelOf(&rule, run.Setting) < 0 || rule.Levels[0].Stretch != 1 {
		run.Adapt = nil
	}
	return nil
}

// levelOf is the level that a setting is; -1 where it is none.
func levelOf(a *live.Adaptation, s dvfsmodel.Setting) int {
	return slices.IndexFunc(a.Levels, func(l live.AdaptLevel) bool { return l.Core == s.Core })
}

// beginAdaptation begins a run's adaptation, if it has one.
func (r *openRun) beginAdaptation(now time.Time) {
	if r.Adapt == nil || r.handsOff != "" || r.Wish.OptOut || len(r.GPUs) == 0 {
		return
	}
	if level := levelOf(r.Adapt, r.Setting); level >= 0 {
		r.stepper, r.residency = newClockStepper(r.Adapt, level, now), newResidencyTracker(r.Adapt.Levels)
	}
}

// idlePause is a pause while no clock is adapted; a run that begins ends it.
const idlePause = time.Hour

// adaptInterval is how long until the next run is to be looked at, half the shortest
// period at least.
func (a *Agent) adaptInterval() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	pause := idlePause
	for _, r := range a.runs {
		if r.isAdapted() {
			pause = min(pause, r.Adapt.Tau()-time.Since(r.stepper.last))
		}
	}
	return max(minTau/2, pause)
}

// adapt looks once at the GPUs of each run whose clock is adapted, and steps it.
// A GPU that can't be read counts as one at work, a clock that can't be set puts
// the runs on the GPU to default clocks.
func (a *Agent) adapt(ctx context.Context, clock func() time.Time) error {
	cards := a.adaptedGPUs()
	if len(cards) == 0 || ctx.Err() != nil {
		return nil
	}
	found := a.sample(cards)
	trouble := a.react(ctx, found)
	stepped, changed := a.step(found, clock())
	if len(stepped) == 0 {
		return trouble
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.UndoTimeout)
	defer cancel()
	settling := a.settleAll(ctx, changed)
	now := clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range stepped {
		if r.isAdapted() { // else it is at default clocks, or going there
			r.stepper.noteInForce(now)
			a.steps++
		}
	}
	return errors.Join(trouble, settling)
}

// adaptedGPUs are the GPUs of the runs whose clocks are adapted.
func (a *Agent) adaptedGPUs() []*managedGPU {
	var uuids []string
	a.mu.Lock()
	for _, r := range a.runs {
		if r.isAdapted() {
			uuids = append(uuids, r.GPUs...)
		}
	}
	a.mu.Unlock()
	return a.gpus.some(uuids)
}

// step steps each run by what was found, and returns those whose clocks change,
// with their cards. A run that shares a GPU goes to its ceiling, as the driver
// doesn't say whose work it sees there.
func (a *Agent) step(found []sampleResult, now time.Time) (stepped []*openRun, cards []*managedGPU) {
	used := make(map[string]sampleResult, len(found))
	for _, f := range found {
		used[f.gpu.uuid] = f
	}
	var uuids []string
	a.mu.Lock()
	for _, r := range a.runs {
		if !r.isAdapted() {
			continue
		}
		util, left, alone := 0.0, r.Adapt.Writes, true
		for _, uuid := range r.GPUs {
			f, seen := used[uuid]
			if !seen || f.err != nil || !gpu.Measured(f.util) {
				util = math.NaN() // and stays so
			}
			util += f.util
			if c := a.gpus.byUUID(uuid); c != nil {
				left = min(left, c.writesLeft(now, r.Adapt.Writes))
				alone = alone && len(a.runsOn(c)) == 1
			}
		}
		level := r.stepper.level
		changed := r.stepper.stepShared(now, util, left, alone)
		spent, _ := r.sampler.SoFar()
		r.residency.book(now, level, r.stepper.passed, r.stepper.workPart, spent, alone)
		if changed {
			stepped, uuids = append(stepped, r), append(uuids, r.GPUs...)
		}
	}
	a.mu.Unlock()
	return stepped, a.gpus.some(uuids)
}

// noteWrite notes that a clock of the card was written.
func (c *managedGPU) noteWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recentWrites.add(time.Now())
	c.writes++
}

// writesLeft is how many writes there may still be in this minute.
func (c *managedGPU) writesLeft(now time.Time, most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recentWrites.remaining(now, most)
}
