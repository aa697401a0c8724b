package main

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/replay"
)

// inflation is a comparison of placement policies on streams of one trace.
type inflation struct {
	trace          *clusterTrace
	label          string // of the trace
	demands        []fleet.Demand
	workload       fleet.Workload
	stream         []int32 // the stream; nil: drawn by seed
	keepsNodeOrder bool    // the order of the nodes is given
	policies       []*policy.Placement
	base           int // savings are against this policy; -1: none
	seeds          []uint64
	loads          []float64 // at which savings are stated, ascending
	until          float64   // load at which streams end
	batch          int       // arrivals that are placed together
	log            bool      // keep decisions
}

// The loads at which the allocation ratio is stated, as the paper reads it.
const (
	nearFullLoad = 0.95
	fullLoad     = 1.0
)

// allLoads are those at which runs are read.
func (in *inflation) allLoads() []float64 {
	loads := append(slices.Clone(in.loads), nearFullLoad, fullLoad)
	slices.Sort(loads)
	return slices.Compact(loads)
}

// weighted reports whether watts count differently by node.
func (in *inflation) weighted() bool {
	return slices.ContainsFunc(in.trace.kinds, func(k *fleet.Kind) bool {
		return k.Power.Weight != 0 && k.Power.Weight != 1
	})
}

func (in *inflation) runCount() int { return len(in.policies) * len(in.seeds) }

// inflationRun is a run.
type inflationRun struct {
	curve    []replay.LoadPoint
	readings []replay.Reading // at all loads
	tally    replay.Tally
	log      *replay.DecisionLog // nil unless it was asked for
}

// runAll runs every policy on every stream, some at a time; runs are by policy,
// then by seed.
func (in *inflation) runAll(
	ctx context.Context, jobs int, progress *report.Progress,
) ([][]inflationRun, error) {
	runs := make([][]inflationRun, len(in.policies))
	for i := range runs {
		runs[i] = make([]inflationRun, len(in.seeds))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers(jobs))
	for s, seed := range in.seeds {
		for p := range in.policies {
			group.Go(func() (err error) {
				defer progress.Add(1)
				if runs[p][s], err = in.run(ctx, in.policies[p], seed); err != nil {
					return fmt.Errorf("policy %s, seed %d: %w", in.policies[p].Name, seed, err)
				}
				return nil
			})
		}
	}
	return runs, group.Wait()
}

// run is one policy on the stream of one seed.
func (in *inflation) run(ctx context.Context, p *policy.Placement, seed uint64) (inflationRun, error) {
	if err := ctx.Err(); err != nil {
		return inflationRun{}, err
	}
	d, err := in.draw(seed)
	if err != nil {
		return inflationRun{}, err
	}
	state := fleet.NewState(d.kinds(in.trace.kinds))
	sampler, gauge := replay.NewSampler(in.workload, state), replay.NewLoadGauge(state, in.allLoads())
	observers := []replay.Observer{sampler, gauge}
	out := inflationRun{}
	if in.log {
		out.log = &replay.DecisionLog{Decisions: make([]replay.Decision, 0, len(d.rows))}
		observers = append(observers, out.log)
	}
	chooser := p.Chooser(in.workload, state, seed)
	if out.tally, err = replay.Inflate(ctx, chooser, replay.NewStream(in.demands, d.rows),
		observers...); err != nil {
		return inflationRun{}, err
	}
	out.curve, out.readings = sampler.Points(), gauge.Readings()
	return out, nil
}

// unplaceableArrivals tells of arrivals that no policy could place.
func (in *inflation) unplaceableArrivals(runs [][]inflationRun) []error {
	var warnings []error
	for _, reason := range []replay.DropReason{replay.NoModel, replay.TooLarge} {
		dropped, arrived := 0, 0
		for i := range runs[0] {
			dropped += runs[0][i].tally.By[reason]
			arrived += runs[0][i].tally.Arrived
		}
		if dropped > 0 {
			warnings = append(warnings, fmt.Errorf("%s: %s of %s arrivals are dropped by every policy: %s",
				in.label, report.FormatCount(dropped), report.FormatCount(arrived), reason))
		}
	}
	return warnings
}
