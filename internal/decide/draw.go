package decide

import (
	"fmt"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/live"
)

// One lot puts each eligible job into an arm: held out at default clocks, at the
// constant clocks of its GPU model, or treated. Who is eligible doesn't depend on what
// the lot says, and once drawn a job counts in its arm whatever comes of it: one of the
// constant arm that may not run at those clocks, by its limit or because its node
// hasn't got them, runs at default clocks and stays in the arm, as under an
// administrator who sets constant clocks wherever they can be.
//
// Eligible is, in mode enforce, a job of a workload with a model and with a known limit
// for which other clocks than the default ones were chosen. Where there is a constant
// arm, one that could run at its clocks is, too: where default clocks are the best,
// constant ones may cost energy, and that not to set them is then what choosing adds.

// armShares are the parts of the jobs that the lot has in arms other than the treated one.
type armShares struct {
	holdOut  live.Number
	constant live.Number // unknown: there is no such arm
}

// armShares returns the parts on GPUs of a model: without constant clocks of their own these
// have no constant arm.
func (s *Settings) armShares(gpuModel string) armShares {
	p := armShares{holdOut: live.Known(s.Live.HoldOut)}
	if _, stated := s.Live.ConstantClocks[s.ModelName(gpuModel)]; stated && s.Live.ConstantArm > 0 {
		p.constant = live.Known(s.Live.ConstantArm)
	}
	return p
}

// arm returns the one into which the lot, from 0 to 1, puts a job that is eligible: held out are the
// lowest, at constant clocks the highest. All but treated ones run as without a plan.
func (p *armShares) arm(lot float64) live.Arm {
	switch {
	case lot < p.holdOut.Or(0):
		return live.ArmHeldOut
	case lot >= 1-p.constant.Or(0):
		return live.ArmConstant
	}
	return live.ArmTreated
}

// drawArm puts a job into the arm that the lot says.
func (ch *chooser) drawArm(p *armShares, lot float64) {
	d := ch.decision
	if d.Mode != live.Enforce || ch.safe == nil {
		return
	}
	var constant *dvfsmodel.Point
	var unable string
	if _, drawn := p.constant.Get(); drawn {
		budget, _ := ch.timeBudget()
		constant, unable = ch.constantPoint(budget)
	}
	instead := d.Words()
	if d.Arm != live.ArmTreated {
		if constant == nil {
			return
		}
		d.Arm, instead = live.ArmTreated, "constant clocks, "+ch.constantWords()
	}
	switch arm := p.arm(lot); {
	case arm == live.ArmHeldOut:
		ch.revertToDefault("held out at random, to compare with " + instead)
		d.HoldOut, d.Arm = true, live.ArmHeldOut
	case arm != live.ArmConstant:
	case constant == nil:
		ch.revertToDefault("drawn at random to run at constant clocks, " + ch.constantWords() + ", but " + unable +
			": default clocks")
		d.Arm = live.ArmConstant
	default:
		ch.setPoint(constant)
		d.Arm, d.Adapt = live.ArmConstant, nil
		ch.applyByMode(fmt.Sprintf("drawn at random to run at constant clocks, %s: %s and %.0f%% of the time at "+
			"default clocks, by %s",
			ch.constantWords(), ch.energyWords(constant), 100*constant.Time/ch.safe.Standard.Time,
			ch.model.Model))
	}
}

// constantPoint returns the point at the constant clocks of the job's GPU model, if the run may
// be there by all that holds for chosen ones and within the budget, or else nil and why not.
func (ch *chooser) constantPoint(budget float64) (pt *dvfsmodel.Point, unable string) {
	t := ch.table
	pair := ch.settings.Live.ConstantClocks[ch.decision.GPUModel]
	if pair.Mem == 0 {
		pair.Mem = t.Base.Mem
	}
	switch {
	case pair == t.Base:
		return nil, "these are the default ones"
	case !t.supports(pair):
		return nil, "the GPU doesn't support them"
	case !slices.Contains(t.Allowed, pair):
		return nil, "they are outside what the administrator allows"
	}
	at := ch.uncapped.At(pair.Core, pair.Mem)
	if !choose.IsPossible(&at) || !ch.uncapped.Fits(&at, budget) {
		return nil, "a run there isn't sure to end in time"
	}
	return &at, ""
}

// constantWords returns the constant clocks of the job's GPU model.
func (ch *chooser) constantWords() string {
	pair := ch.settings.Live.ConstantClocks[ch.decision.GPUModel]
	return pair.Words()
}
