package decide

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// Bounds of an adaptation.
const (
	maxAdaptLevels = 24   // clocks among which a run is stepped
	minSLA         = 1.02 // where less is left of the limit, clocks stay as they are
	minWrites      = 3    // down, up, and the end
	guardedPart    = 0.95 // of the limit: where more is needed, the agent's guard ends the adaptation
)

// adaptedReason begins the reason of a decision that a run's clock be adapted, with the lowest clock.
const adaptedReason = "adapted between core %v"

// decideAdaptation decides that a run's clock be adapted, if that is wanted and can be: on
// one node, on no more GPUs than are wanted, by a model, within the limit. What the run may take then is the SLA's
// part of what it takes at default clocks at most.
func (ch *chooser) decideAdaptation(budget float64) bool {
	rule, m, d, standard := &ch.settings.Live.Adapt, ch.model.Model, ch.decision, &ch.safe.Standard
	if rule.ModeOf(ch.job.Partition.Value()) != config.AdaptOn || rule.Writes < minWrites ||
		ch.job.Nodes != 1 || ch.request.GPUs > rule.MaxGPUs || !m.Covers(standard) || ch.constantCap() > 0 ||
		ch.holdsByCap() {
		return false
	}
	sla := min(rule.SLA, ch.safe.Stretch, guardedPart*budget/ch.safe.RequiredTime(standard))
	if !(sla >= minSLA) {
		return false
	}
	levels := ch.adaptLevels()
	if len(levels) == 0 || largestSaving(levels) < ch.settings.Live.MinGainOf(ch.job.Partition.Value()) {
		return false
	}
	first := ch.firstLevel(levels, sla)
	at := ch.safe.At(levels[first].Core, standard.Mem)
	ch.setPrediction(at)
	d.Upper = live.Known(m.UpperTime(standard, ch.safe.TimeMargin) * sla)
	d.Core, d.Arm = levels[first].Core, live.ArmTreated
	d.Adapt = &live.Adaptation{
		SLA: sla, TauS: rule.Tau, Writes: rule.Writes, WritePauseS: rule.WritePause, Levels: levels,
	}
	ch.applyByMode(fmt.Sprintf(adaptedReason+" and %v MHz while it runs, at most %.2f times as long "+
		"as at default clocks, by %s",
		float64(levels[len(levels)-1].Core), float64(levels[0].Core), sla, m))
	if d.Mode != live.Enforce {
		d.Arm, d.Adapt = live.ArmExcluded, nil
	}
	return true
}

// restSLA is how many times as long as at default clocks a run without a model may take at every moment of it
// because its GPUs were at their lowest clock when it had work again.
const restSLA = 1.002

// lowerWhenIdle decides that the GPUs of a run without a model go to their lowest clock while it leaves them
// without work, if that is wanted and can be, on one node. At work they are at default clocks.
func lowerWhenIdle(ch *chooser) {
	rule, d, base := &ch.settings.Live.Adapt, ch.decision, ch.table.Base
	if rule.Rest == 0 || rule.Writes < minWrites || d.Mode != live.Enforce || ch.job.Nodes != 1 ||
		ch.constantCap() > 0 {
		return
	}
	lowest, reachable := base, false
	for _, at := range ch.table.Allowed {
		if at.Mem == base.Mem && at.Core <= lowest.Core {
			lowest = at
		}
		reachable = reachable || at == base
	}
	if !reachable || lowest.Core == base.Core {
		return
	}
	d.Core = base.Core
	d.Adapt = &live.Adaptation{
		SLA: restSLA, TauS: rule.Tau, Writes: rule.Writes, WritePauseS: rule.WritePause, RestS: rule.Rest,
		Levels: []live.AdaptLevel{
			{Core: base.Core, Stretch: 1, Cost: 1},
			{Core: lowest.Core, Stretch: float64(base.Core / lowest.Core), Cost: 1 + restSLA}, // never at work
		},
	}
	ch.applyByMode(fmt.Sprintf(adaptedReason+" MHz after %v s without work and %v MHz at work; %s",
		float64(lowest.Core), rule.Rest, float64(base.Core), d.Reason))
}

// adaptLevels returns the clocks among which a run may be stepped; none where there is
// nothing to choose.
func (ch *chooser) adaptLevels() []live.AdaptLevel {
	standard := &ch.safe.Standard
	var all []live.AdaptLevel
	for _, pt := range slices.Backward(ch.table.Allowed) {
		if pt.Mem != standard.Mem || pt.Core > standard.Core {
			continue
		}
		at := ch.safe.At(pt.Core, pt.Mem)
		cost := float64(ch.energyWithHost(&at) / ch.energyWithHost(standard))
		if !ch.safe.Fitted.Covers(&at) || !(cost > 0) || math.IsInf(cost, 0) {
			continue
		}
		level := live.AdaptLevel{Core: pt.Core, Stretch: ch.stretch(&at), Cost: cost}
		if len(all) > 0 { // never less than at a higher clock
			level.Stretch = max(level.Stretch, all[len(all)-1].Stretch)
		}
		all = append(all, level)
	}
	if len(all) < 2 || all[0].Core != standard.Core {
		return nil
	}
	return thinOut(all, maxAdaptLevels)
}

// largestSaving returns the part of the energy at default clocks that the cheapest of some levels saves.
func largestSaving(levels []live.AdaptLevel) float64 {
	least := 1.0
	for i := range levels {
		least = min(least, levels[i].Cost)
	}
	return 1 - least
}

// thinOut returns a list with at most so many of its entries, the first and the last
// among them.
func thinOut(all []live.AdaptLevel, most int) []live.AdaptLevel {
	if len(all) <= most {
		return all
	}
	few := make([]live.AdaptLevel, most)
	for i := range few {
		few[i] = all[i*(len(all)-1)/(most-1)]
	}
	return few
}

// stretch returns how many times as long work takes at most at a point as at default
// clocks: no more than if all of it followed the core clock; and no more than
// makes the whole run as long as its model's upper bound, if the run is at work
// for the part of the time that it was before.
func (ch *chooser) stretch(pt *dvfsmodel.Point) float64 {
	standard := &ch.safe.Standard
	if pt.Core >= standard.Core {
		return 1
	}
	follows := float64(standard.Core / pt.Core)
	if ch.model.Usage <= 0 {
		return follows
	}
	whole := ch.safe.Fitted.UpperTime(pt, ch.safe.TimeMargin) / standard.Time
	for i := range ch.others.list {
		o := ch.others.list[i].safe
		at := o.At(pt.Core, pt.Mem)
		whole = max(whole, o.Fitted.UpperTime(&at, o.TimeMargin)/o.Standard.Time)
	}
	return min(follows, max(1, 1+(whole-1)/ch.model.Usage))
}

// firstLevel returns the level with which a run begins: the cheapest at which it keeps
// its SLA though it never waits.
func (ch *chooser) firstLevel(levels []live.AdaptLevel, sla float64) int {
	best := 0
	for i, l := range levels {
		if l.Stretch <= sla && l.Cost < levels[best].Cost {
			best = i
		}
	}
	return best
}
