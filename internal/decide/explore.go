package decide

import (
	"fmt"
	"slices"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/live"
)

// Of the runs of a workload that has a model, a part explores: it runs at the
// clocks after which the next choice is expected to be best, if it takes hardly
// longer there and is as sure to keep its limit as any other run. Such a run
// counts as treated: what exploring costs is part of what epd costs. Where power
// limits are chosen beside clocks it explores both.

// probeReason begins the reason of a decision that explores.
const probeReason = "probe: "

// probe returns the point at which most can be learnt.
func (ch *chooser) probe(best *dvfsmodel.Point, budget float64) (dvfsmodel.Point, bool) {
	if !ch.explores || ch.decision.Mode != live.Enforce {
		return dvfsmodel.Point{}, false
	}
	m := ch.model.Model
	longest := max(best.Time, ch.safe.Standard.Time) * (1 + ch.settings.Live.ExploreSlowdown)
	for _, c := range probeCandidates(ch) {
		if !slices.Contains(ch.table.Allowed, dvfsmodel.Setting{Core: c.At.Core, Mem: c.At.Mem}) {
			continue
		}
		pt := ch.safe.At(c.At.Core, c.At.Mem)
		expected, sure := expectedTime(m, &pt), choose.IsPossible(&pt) && ch.safe.Fits(&pt, budget)
		if c.At.Cap > 0 {
			if !ch.request.PowerLimit.Takes(c.At.Cap) {
				continue
			}
			pt, sure = ch.safe.UnderCap(ch.cappedModel(), c.At, budget)
			expected = c.Expected * ch.safe.Standard.Time
			sure = sure && c.AtMost*ch.safe.Standard.Time <= ch.safe.LongestTime(budget)
		}
		if sure && expected <= longest && ch.others.allSure(&pt, budget) {
			return pt, pt.Core != best.Core || pt.Mem != best.Mem || pt.Cap != best.Cap
		}
	}
	return dvfsmodel.Point{}, false
}

// probeCandidates returns the settings at which most can be learnt: with power limits where these are chosen
// beside clocks.
func probeCandidates(ch *chooser) []learn.Candidate {
	if !ch.request.CoreFixed && ch.capMode() == config.CapChosen && len(ch.model.LimitCandidates) > 0 {
		return ch.model.LimitCandidates
	}
	return ch.model.Candidates
}

// takeProbe has the run explore.
func (ch *chooser) takeProbe(pt *dvfsmodel.Point) {
	d := ch.decision
	ch.setPoint(pt)
	d.Arm = live.ArmTreated
	ch.applyByMode(fmt.Sprintf("%s%s, to learn how the workload responds: about %.0f%% of the time at "+
		"default clocks, by %s",
		probeReason, d.Words(), 100*pt.Time/ch.safe.Standard.Time, ch.model.Model))
}

// expectedTime returns how long a run at a point is thought to take. At memory clocks beyond
// the measured ones that is the longest it can: a model may know one only.
func expectedTime(m *learn.Model, pt *dvfsmodel.Point) float64 {
	if m.Covers(pt) {
		return pt.Time
	}
	return m.UpperTime(pt, 0) / (1 + m.Margin)
}
