package decide

import (
	"slices"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/learn"
)

// Under a power limit a GPU runs at the highest clock at which it keeps it: a run there takes as long
// and as much power as at that clock. So a limit is one more way to be at a clock. Where the clock can
// be locked a lock is the better one: nothing is left to how much a run draws. A limit is chosen where
// it can't be, and is set beside the clocks where the administrator wants one for all jobs, or where
// runs under several limits say that both together cost less than clocks alone.

// capMode returns how power limits are set for the job.
func (ch *chooser) capMode() config.CapMode {
	if ch.request.PowerLimit.InForce == 0 {
		return config.CapOff
	}
	return ch.settings.Live.Cap.ModeOf(ch.job.Partition.Value())
}

// holdsByCap reports whether a power limit holds the GPUs at the clocks that are chosen.
func (ch *chooser) holdsByCap() bool {
	return ch.request.CoreFixed && ch.capMode() == config.CapChosen
}

// locksCoreToo reports whether the core clock of a point is locked beside its power limit: not where the
// limit alone may hold a GPU there, and not at default clocks, which need no holding.
func (ch *chooser) locksCoreToo(pt *dvfsmodel.Point) bool {
	at, standard := dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem}, &ch.safe.Standard
	return !ch.request.CoreFixed && slices.Contains(ch.table.Allowed, at) &&
		(pt.Core != standard.Core || pt.Mem != standard.Mem)
}

// constantCap returns the power limit that is set beside the clocks; 0: none.
func (ch *chooser) constantCap() dvfsmodel.Watt {
	if ch.capMode() != config.CapConstant {
		return 0
	}
	limit := ch.settings.Live.Cap.LimitOf(ch.job.Partition.Value(), ch.request.PowerLimit.InForce)
	if !ch.request.PowerLimit.Takes(limit) {
		return 0
	}
	return limit
}

// optimum returns the cheapest point that is sure to end in time: under the constant power limit, or where
// none is, without it.
func (ch *chooser) optimum(budget float64) (dvfsmodel.Point, error) {
	if limit := ch.constantCap(); limit > 0 {
		capped := *ch.uncapped
		if capped.Cap = limit; ch.request.CoreFixed {
			capped.Settings = nil
		}
		if best, err := capped.Optimum(ch.objective(), budget); err == nil {
			ch.safe = &capped
			return best, nil
		}
	}
	best, err := ch.uncapped.Optimum(ch.objective(), budget)
	if err != nil {
		return best, err
	}
	if m := ch.cappedModel(); m != nil {
		caps := ch.request.PowerLimit.Among(m.Caps)
		if pt, ok := ch.uncapped.BetterUnderCap(m, caps, &best, ch.objective(), budget); ok &&
			ch.others.allAllow(&pt, budget) {
			return pt, nil
		}
	}
	return best, nil
}

// cappedModel returns the model of clocks and power limits by which both are chosen; nil: clocks alone are.
func (ch *chooser) cappedModel() *choose.Capped {
	if m := ch.model.Model; m != nil && !ch.request.CoreFixed && ch.capMode() == config.CapChosen {
		return m.Capped
	}
	return nil
}

// upperUnderLimit returns how long a run at clocks and under a power limit takes at most by a model, on a
// GPU of such clocks.
func upperUnderLimit(
	limit dvfsmodel.Watt, at *dvfsmodel.Point, m *learn.Model, base dvfsmodel.Setting, table *ClockTable,
	margin float64,
) float64 {
	s := choose.SafeResponse{Fitted: &m.Model, Standard: m.At(base.Core, base.Mem), TimeMargin: margin}
	if table != nil {
		s.Ladder = table.Pairs
	}
	pt := s.Under(at.Core, at.Mem, limit)
	pt.Cap = limit
	return s.UpperTime(&pt)
}
