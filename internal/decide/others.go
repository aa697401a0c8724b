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

// askOthers makes the responses, and keeps of the clocks that may be set those that all of them allow.
func askOthers(ch *chooser, budget float64) {
	ch.others.objective = ch.objective()
	for _, m := range ch.model.Without {
		ch.others.list = append(ch.others.list, other{ch.safeResponse(m), m.Capped})
	}
	if len(ch.others.list) == 0 {
		return
	}
	ch.safe.Settings = slices.DeleteFunc(slices.Clone(ch.safe.Settings), func(at dvfsmodel.Setting) bool {
		pt := ch.safe.At(at.Core, at.Mem)
		return !ch.others.allow(&pt, budget)
	})
}

// allow reports whether a point keeps all bounds, and costs no more than default clocks, by each of them.
func (o *others) allow(pt *dvfsmodel.Point, budget float64) bool {
	return !slices.ContainsFunc(o.list, func(one other) bool {
		at, sure := one.at(pt, budget)
		return !sure || !one.safe.Fitted.Covers(&at) || o.objective.Cost(at) > o.objective.Cost(one.safe.Standard)
	})
}

// sure reports whether a point keeps all bounds by each of them, whatever it costs.
func (o *others) sure(pt *dvfsmodel.Point, budget float64) bool {
	return !slices.ContainsFunc(o.list, func(one other) bool {
		_, sure := one.at(pt, budget)
		return !sure
	})
}

// at returns a point by one response; false: a run there isn't sure to keep the bounds.
func (o *other) at(pt *dvfsmodel.Point, budget float64) (dvfsmodel.Point, bool) {
	if pt.Cap > 0 && o.safe.ByCap == (dvfsmodel.CapRange{}) {
		return o.safe.UnderCap(o.capped, dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem, Cap: pt.Cap}, budget)
	}
	at := o.safe.At(pt.Core, pt.Mem)
	return at, choose.IsPossible(&at) && o.safe.Fits(&at, budget)
}
