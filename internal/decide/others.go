package decide

import (
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
)

// others holds, for each other node that weighs much in a workload's model, the response without that node's
// runs. What a single node reports is for that node.
type others struct {
	list      []other
	objective dvfsmodel.Objective
}

type other struct {
	safe   *choose.SafeResponse
	capped *choose.Capped
}

// restrictToOthers makes the responses, and keeps of the clocks that may be set those that all of them allow.
func restrictToOthers(ch *chooser, budget float64) {
	ch.others.objective = ch.objective()
	for _, m := range ch.model.Without {
		ch.others.list = append(ch.others.list, other{ch.safeResponse(m), m.Capped})
	}
	if len(ch.others.list) == 0 {
		return
	}
	ch.safe.Settings = slices.DeleteFunc(slices.Clone(ch.safe.Settings), func(at dvfsmodel.Setting) bool {
		pt := ch.safe.At(at.Core, at.Mem)
		return !ch.others.allAllow(&pt, budget)
	})
}

// allAllow reports whether a point keeps all bounds, and costs no more than default clocks, by each of them.
func (o *others) allAllow(pt *dvfsmodel.Point, budget float64) bool {
	return !slices.ContainsFunc(o.list, func(one other) bool {
		at, sure := one.pointAt(pt, budget)
		return !sure || !one.safe.Fitted.Covers(&at) || o.objective.Cost(at) > o.objective.Cost(one.safe.Standard)
	})
}

// allSure reports whether a point keeps all bounds by each of them, whatever it costs.
func (o *others) allSure(pt *dvfsmodel.Point, budget float64) bool {
	return !slices.ContainsFunc(o.list, func(one other) bool {
		_, sure := one.pointAt(pt, budget)
		return !sure
	})
}

// pointAt returns a point by one response; false: a run there isn't sure to keep the bounds.
func (o *other) pointAt(pt *dvfsmodel.Point, budget float64) (dvfsmodel.Point, bool) {
	if pt.Cap > 0 && o.safe.ByCap == (dvfsmodel.CapRange{}) {
		return o.safe.UnderCap(o.capped, dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem, Cap: pt.Cap}, budget)
	}
	at := o.safe.At(pt.Core, pt.Mem)
	return at, choose.IsPossible(&at) && o.safe.Fits(&at, budget)
}
