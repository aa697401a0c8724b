package tune

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// WithSharedClocks tunes as another does and sets the clocks of GPUs that tasks share by
// a rule: [consolidate.AdaptedClock] for the frequency adaptation of the CATS paper
// (algorithm 4), which is where its steps of a few milliseconds come to rest.
func WithSharedClocks(
	tuner func(*planner.Problem) planner.Tuner, rule share.Clocks,
) func(*planner.Problem) planner.Tuner {
	return func(p *planner.Problem) planner.Tuner { return &sharedClocks{Tuner: tuner(p), rule: rule} }
}

// WithLowestClocks is [WithSharedClocks] by the lowest frequency at which everybody on a GPU keeps
// what it tolerates, contention counted.
func WithLowestClocks(tuner func(*planner.Problem) planner.Tuner) func(*planner.Problem) planner.Tuner {
	return WithSharedClocks(tuner, share.LowestClock)
}

// WithCheapestClocks is [WithSharedClocks] by the frequency at which work costs least of those at
// which everybody on a GPU keeps what it tolerates, host power counted. Slower
// clocks take less power, but by the CATS paper's own fits (equations 3 and 5)
// more energy: the highest frequency is the cheapest then.
func WithCheapestClocks(tuner func(*planner.Problem) planner.Tuner) func(*planner.Problem) planner.Tuner {
	return func(p *planner.Problem) planner.Tuner {
		classes := p.SharedNodes()
		return &sharedClocks{Tuner: tuner(p), rule: func(s *sharing.State, gpu int) dvfsmodel.MHz {
			physics := &s.Instance().Physics
			lowest := share.LowestClock(s, gpu)
			price, best, least := p.ClassObjective(classes[s.GPU(gpu).Server]), physics.Max(), math.Inf(1)
			for _, mhz := range physics.LevelsMHz {
				pt := dvfsmodel.Point{Time: physics.Stretch(mhz), Power: dvfsmodel.Watt(physics.PowerAt(mhz))}
				pt.Energy = pt.Power.Over(pt.Time)
				if cost := price.Cost(pt); mhz >= lowest && cost < least {
					best, least = mhz, cost
				}
			}
			return best
		}}
	}
}

type sharedClocks struct {
	planner.Tuner // for GPUs that aren't shared
	rule          share.Clocks
}

// Clock returns the rule's frequency.
func (c *sharedClocks) Clock(running *sharing.State, gpu int) dvfsmodel.MHz {
	return c.rule(running, gpu)
}
