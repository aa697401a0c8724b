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
	adaptLevels = 24   // clocks among which a run is stepped
	leastSLA    = 1.02 // where less is left of the limit, clocks stay as they are
	leastWrites = 3    // down, up, and the end
	guarded     = 0.95 // of the limit: where more is needed, the agent's guard ends the adaptation
)

// adapt decides that a run's clock be adapted, if that is wanted and can be: on
// one node, by a model, within the limit. What the run may take then is the SLA's
// part of what it takes at default clocks at most.
func (ch *chooser) adapt(room float64) bool {
	rule, m, d, standard := &ch.settings.Live.Adapt, ch.model.Model, ch.decision, &ch.sure.Standard
	if rule.ModeOf(ch.job.Partition.Value()) != config.AdaptOn || rule.Writes < leastWrites ||
		ch.job.Nodes != 1 || !m.Covers(standard) {
		return false
	}
	sla := min(rule.SLA, ch.sure.Stretch, guarded*room/ch.sure.RequiredTime(standard))
	if !(sla >= leastSLA) {
		return false
	}
	levels := ch.levels()
	if len(levels) == 0 {
		return false
	}
	first := ch.first(levels, sla)
	at := ch.sure.At(levels[first].Core, standard.Mem)
	ch.predict(at)
	d.Upper = live.Known(m.UpperTime(standard, ch.sure.TimeMargin) * sla)
	d.Core, d.Arm = levels[first].Core, live.ArmTreated
	d.Adapt = &live.Adaptation{SLA: sla, TauS: rule.Tau, Writes: rule.Writes, Levels: levels}
	ch.act(fmt.Sprintf("adapted between core %v and %v MHz while it runs, at most %.2f times as long as at "+
		"default clocks, by %s",
		float64(levels[len(levels)-1].Core), float64(levels[0].Core), sla, m))
	if d.Mode != live.Enforce {
		d.Arm, d.Adapt = live.ArmExcluded, nil
	}
	return true
}

// levels are the clocks among which a run may be stepped; none where there is
// nothing to choose.
func (ch *chooser) levels() []live.AdaptLevel {
	standard := &ch.sure.Standard
	var all []live.AdaptLevel
	for _, pt := range slices.Backward(ch.table.Allowed) {
		if pt.Mem != standard.Mem || pt.Core > standard.Core {
			continue
		}
		at := ch.sure.At(pt.Core, pt.Mem)
		cost := float64(ch.whole(&at) / ch.whole(standard))
		if !ch.sure.Fitted.Covers(&at) || !(cost > 0) || math.IsInf(cost, 0) {
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
	return thinned(all, adaptLevels)
}

// thinned is a list with at most so many of its entries, the first and the last
// among them.
func thinned(all []live.AdaptLevel, most int) []live.AdaptLevel {
	if len(all) <= most {
		return all
	}
	few := make([]live.AdaptLevel, most)
	for i := range few {
		few[i] = all[i*(len(all)-1)/(most-1)]
	}
	return few
}

// stretch is how many times as long work takes at most at a point as at default
// clocks: no more than if all of it followed the core clock; and no more than
// makes the whole run as long as its model's upper bound, if the run is at work
// for the part of the time that it was before.
func (ch *chooser) stretch(pt *dvfsmodel.Point) float64 {
	standard := &ch.sure.Standard
	if pt.Core >= standard.Core {
		return 1
	}
	follows := float64(standard.Core / pt.Core)
	if ch.model.Usage <= 0 {
		return follows
	}
	whole := ch.sure.Fitted.UpperTime(pt, ch.sure.TimeMargin) / standard.Time
	return min(follows, max(1, 1+(whole-1)/ch.model.Usage))
}

// first is the level with which a run begins: the cheapest at which it keeps
// its SLA though it never waits.
func (ch *chooser) first(levels []live.AdaptLevel, sla float64) int {
	best := 0
	for i, l := range levels {
		if l.Stretch <= sla && l.Cost < levels[best].Cost {
			best = i
		}
	}
	return best
}
