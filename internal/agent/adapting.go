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

// Adapted is how a run fares whose clock is adapted.
type Adapted struct {
	SLA      float64
	Slowdown float64 // times as long as at default clocks, at most, so far
}

// adapts tells whether the run's clock is stepped. The agent's mu is held.
func (r *openRun) adapts() bool {
	return r.adapter != nil && !r.ended && !r.over && r.handsOff == "" && !r.Wish.OptOut
}

// adapted is how the run fares; nil where its clock isn't adapted. The agent's
// mu is held.
func (r *openRun) adapted() *Adapted {
	if !r.adapts() {
		return nil
	}
	return &Adapted{SLA: r.Adapt.SLA, Slowdown: r.adapter.slowdown()}
}

// vetAdaptation takes the levels out of a run's adaptation that a GPU doesn't
// have or mustn't be at; without the ceiling or the clock it begins with, there
// is none.
func (a *Agent) vetAdaptation(run *live.Run) error {
	if run.Adapt == nil {
		return nil
	}
	if err := checkAdaptation(run.Adapt); err != nil {
		return err
	}
	rule := *run.Adapt
	rule.Levels = slices.Clone(rule.Levels)
	for _, uuid := range run.GPUs {
		c := a.card(uuid)
		if c == nil {
			return ErrNoGPU
		}
		table, err := c.clocks()
		if err != nil {
			return err
		}
		rule.Levels = slices.DeleteFunc(rule.Levels, func(l live.AdaptLevel) bool {
			at := dvfsmodel.Setting{Core: l.Core, Mem: run.Setting.Mem}
			return !supports(table, at) || a.allowed(c, at) != nil
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

// adaptation begins a run's adaptation, if it has one.
func (r *openRun) adaptation(now time.Time) {
	if r.Adapt == nil || r.handsOff != "" || r.Wish.OptOut || len(r.GPUs) == 0 {
		return
	}
	if level := levelOf(r.Adapt, r.Setting); level >= 0 {
		r.adapter, r.stays = newAdapter(r.Adapt, level, now), newStays(r.Adapt.Levels)
	}
}

// idlePause is a pause while no clock is adapted; a run that begins ends it.
const idlePause = time.Hour

// adaptPace is how long until the next run is to be looked at, half the shortest
// period at least.
func (a *Agent) adaptPace() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	pause := idlePause
	for _, r := range a.runs {
		if r.adapts() {
			pause = min(pause, r.Adapt.Tau()-time.Since(r.adapter.last))
		}
	}
	return max(minTau/2, pause)
}

// adapt looks once at the GPUs of each run whose clock is adapted, and steps it.
// A GPU that can't be read counts as one at work, a clock that can't be set puts
// the runs on the GPU to default clocks.
func (a *Agent) adapt(ctx context.Context, clock func() time.Time) error {
	cards := a.adaptable()
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
		if r.adapts() { // else it is at default clocks, or going there
			r.adapter.settled(now)
			a.steps++
		}
	}
	return errors.Join(trouble, settling)
}

// adaptable are the GPUs of the runs whose clocks are adapted.
func (a *Agent) adaptable() []*card {
	var uuids []string
	a.mu.Lock()
	for _, r := range a.runs {
		if r.adapts() {
			uuids = append(uuids, r.GPUs...)
		}
	}
	a.mu.Unlock()
	return a.cardsOf(uuids)
}

// step steps each run by what was found, and returns those whose clocks change,
// with their cards. A run that shares a GPU goes to its ceiling, as the driver
// doesn't say whose work it sees there.
func (a *Agent) step(found []finding, now time.Time) (stepped []*openRun, cards []*card) {
	used := make(map[string]finding, len(found))
	for _, f := range found {
		used[f.card.uuid] = f
	}
	var uuids []string
	a.mu.Lock()
	for _, r := range a.runs {
		if !r.adapts() {
			continue
		}
		util, left, alone := 0.0, r.Adapt.Writes, true
		for _, uuid := range r.GPUs {
			f, seen := used[uuid]
			if !seen || f.err != nil || !gpu.Measured(f.util) {
				util = math.NaN() // and stays so
			}
			util += f.util
			if c := a.cards[uuid]; c != nil {
				left = min(left, c.writesLeft(now, r.Adapt.Writes))
				alone = alone && len(a.runsOn(c)) == 1
			}
		}
		level := r.adapter.level
		changed := r.adapter.look(now, util, left, alone)
		spent, _ := r.sampler.SoFar()
		r.stays.look(now, level, r.adapter.passed, r.adapter.charge, spent, alone)
		if changed {
			stepped, uuids = append(stepped, r), append(uuids, r.GPUs...)
		}
	}
	a.mu.Unlock()
	return stepped, a.cardsOf(uuids)
}

// wrote notes that a clock of the card was written.
func (c *card) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written.add(time.Now())
	c.writes++
}

// writesLeft is how many writes there may still be in this minute.
func (c *card) writesLeft(now time.Time, most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written.left(now, most)
}
