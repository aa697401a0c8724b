package control

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/live"
)

// Of the runs of a workload that has a model, a part explores: it runs at the
// clocks after which the next choice is expected to be best, if it takes hardly
// longer there and is as sure to keep its limit as any other run. Such a run
// counts as treated: what exploring costs is part of what epd costs.

// probeReason begins the reason of a decision that explores.
const probeReason = "probe: "

const (
	probeGain  = 0.001 // part of the energy below which nothing is left to learn
	maxChoices = 24    // settings among which a probe is chosen
)

// lesson is a setting at which something can be learnt: by what part the energy
// of later runs is expected to fall.
type lesson struct {
	at   dvfsmodel.Setting
	gain float64
}

// lessons are the settings of a GPU at which something can be learnt of a
// workload, the most first.
func lessons(known *pooled.Posterior, noise pooled.Noise, t *table, host dvfsmodel.Watt) []lesson {
	step := max(1, (len(t.allowed)+maxChoices-1)/maxChoices)
	settings := make([]dvfsmodel.Setting, 0, maxChoices+1)
	for i := 0; i < len(t.allowed); i += step {
		settings = append(settings, t.allowed[i])
	}
	b := known.Belief(settings, host)
	all := b.Settings()
	var list []lesson
	for i, gain := range b.Gains(noise) {
		if gain >= probeGain && !math.IsInf(gain, 0) {
			list = append(list, lesson{all[i], gain})
		}
	}
	slices.SortStableFunc(list, func(a, b lesson) int { return cmp.Compare(b.gain, a.gain) })
	return list
}

// learnable are the lessons of a workload, where some of the runs explore.
func (c *Controller) learnable(gpuModel string, known *pooled.Posterior, noise pooled.Noise) []lesson {
	s := c.settings.Load()
	c.mu.Lock()
	t := c.clocks[gpuModel]
	c.mu.Unlock()
	if t == nil || s.Live.Explore == 0 {
		return nil
	}
	return lessons(known, noise, t, s.hostPower(gpuModel))
}

// probe is the point at which most can be learnt.
func (ch *chooser) probe(best *dvfsmodel.Point, room float64) (dvfsmodel.Point, bool) {
	if !ch.explores || ch.decision.Mode != live.Enforce {
		return dvfsmodel.Point{}, false
	}
	m := ch.model.model
	longest := max(best.Time, ch.sure.Standard.Time) * (1 + ch.settings.Live.ExploreSlowdown)
	for _, l := range ch.model.lessons {
		if !slices.Contains(ch.table.allowed, l.at) {
			continue
		}
		pt := ch.sure.At(l.at.Core, l.at.Mem)
		if choose.Possible(&pt) && m.guess(&pt) <= longest && ch.sure.Fits(&pt, room) {
			return pt, pt.Core != best.Core || pt.Mem != best.Mem
		}
	}
	return dvfsmodel.Point{}, false
}

// takeProbe has the run explore.
func (ch *chooser) takeProbe(pt *dvfsmodel.Point) {
	d := ch.decision
	ch.take(pt)
	d.Arm = live.ArmTreated
	ch.act(fmt.Sprintf("%s%s, to learn how the workload responds: about %.0f%% of the time at default clocks, by %s",
		probeReason, d.Words(), 100*pt.Time/ch.sure.Standard.Time, ch.model.model))
}

// guess is how long a run at a point is thought to take. At memory clocks beyond
// the measured ones that is the longest it can: a model may know one only.
func (m *model) guess(pt *dvfsmodel.Point) float64 {
	if m.Covers(pt) {
		return pt.Time
	}
	return m.Upper(pt, 0) / (1 + m.Margin)
}
