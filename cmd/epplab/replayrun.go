package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/policy"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/replay"
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

// Bounds that keep a typing error from filling the memory.
const (
	maxLoad      = 100
	maxSeeds     = 10_000
	maxCurveRows = 10_000_000 // of all curves together, one for each hundredth of load
)

// The loads at which the allocation ratio is stated, as the paper reads it.
const (
	nearFullLoad = 0.95
	fullLoad     = 1.0
)

// allLoads returns those at which runs are read.
func (in *inflation) allLoads() []float64 {
	loads := append(slices.Clone(in.loads), nearFullLoad, fullLoad)
	slices.Sort(loads)
	return slices.Compact(loads)
}

func (in *inflation) weighted() bool {
	return slices.ContainsFunc(in.trace.kinds, func(k *fleet.Kind) bool {
		return k.Power.Weight != 0 && k.Power.Weight != 1
	})
}

func (in *inflation) runCount() int { return len(in.policies) * len(in.seeds) }

// inflationRun is a run of one policy on one stream.
type inflationRun struct {
	Curve    []replay.LoadPoint
	Readings []replay.Reading // at all loads
	Tally    replay.Tally
	Log      *replay.DecisionLog // nil unless it was asked for
}

// parts returns the runs of every policy on every stream, by stream, then by policy.
func (in *inflation) parts(atOnce int) *terminal.PartedWork[inflationRun] {
	w := &terminal.PartedWork[inflationRun]{Label: "replay", AtOnce: atOnce}
	for _, seed := range in.seeds {
		for _, p := range in.policies {
			w.Names = append(w.Names, fmt.Sprintf("policy %s, seed %d", p.Name, seed))
		}
	}
	w.Do = func(ctx context.Context, i int) (inflationRun, error) {
		s, p := i/len(in.policies), i%len(in.policies)
		run, err := in.run(ctx, in.policies[p], in.seeds[s])
		if err != nil {
			return run, fmt.Errorf("%s: %w", w.Names[i], err)
		}
		return run, nil
	}
	return w
}

// byPolicy are runs in the order of parts, by policy, then by seed.
func (in *inflation) byPolicy(all []inflationRun) [][]inflationRun {
	runs := make([][]inflationRun, len(in.policies))
	for i := range all {
		p := i % len(in.policies)
		runs[p] = append(runs[p], all[i])
	}
	return runs
}

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
		out.Log = &replay.DecisionLog{Decisions: make([]replay.Decision, 0, len(d.rows))}
		observers = append(observers, out.Log)
	}
	chooser := p.Chooser(in.workload, state, seed)
	if out.Tally, err = replay.Inflate(ctx, chooser, replay.NewStream(in.demands, d.rows),
		observers...); err != nil {
		return inflationRun{}, err
	}
	out.Curve, out.Readings = sampler.Points(), gauge.Readings()
	return out, nil
}

// unplaceableArrivals tells of arrivals that no policy could place.
func (in *inflation) unplaceableArrivals(runs [][]inflationRun) []error {
	var warnings []error
	for _, reason := range []replay.DropReason{replay.NoModel, replay.TooLarge} {
		dropped, arrived := 0, 0
		for i := range runs[0] {
			dropped += runs[0][i].Tally.By[reason]
			arrived += runs[0][i].Tally.Arrived
		}
		if dropped > 0 {
			warnings = append(warnings, fmt.Errorf("%s: %s of %s arrivals are dropped by every policy: %s",
				in.label, report.FormatCount(dropped), report.FormatCount(arrived), reason))
		}
	}
	return warnings
}

func readRuns(c *cli.Context, names []string) (in inflation, err error) {
	if last := uint64(math.MaxInt64 - c.Int("seeds") + 1); c.Uint64("seed") > last {
		return in, terminal.Usagef("--seed %d, want up to %d", c.Uint64("seed"), last)
	}
	for i := range c.Int("seeds") {
		in.seeds = append(in.seeds, c.Uint64("seed")+uint64(i))
	}
	base := strings.ToLower(c.String("base"))
	if base == "" && len(names) > 1 {
		base = "fgd"
	}
	return in, in.usePolicies(names, base)
}

// usePolicies reads policies and finds, or puts in front, the base; none is none.
func (in *inflation) usePolicies(names []string, base string) error {
	in.base = -1
	if base != "" && base != "none" {
		if in.base = slices.IndexFunc(names,
			func(name string) bool { return strings.EqualFold(name, base) }); in.base < 0 {
			names, in.base = slices.Insert(slices.Clone(names), 0, base), 0
		}
	}
	for _, name := range names {
		p, err := policy.ParsePlacement(name)
		if err != nil {
			return &terminal.UsageError{Msg: err.Error(), Hint: "epplab replay --help lists the policies"}
		}
		if slices.ContainsFunc(in.policies,
			func(q *policy.Placement) bool { return strings.EqualFold(q.Name, p.Name) }) {
			return terminal.Usagef("policy %s is given twice", name)
		}
		in.policies = append(in.policies, p)
	}
	return nil
}

// splitPlacements separates policies at commas that don't belong to the
// arguments of one: what follows a colon and isn't a policy's name does.
func splitPlacements(texts []string) []string {
	var names []string
	for _, text := range texts {
		for i, piece := range strings.Split(text, ",") {
			name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(piece)), ":")
			last := len(names) - 1
			if i > 0 && strings.Contains(names[last], ":") &&
				!slices.Contains(policy.PlacementNames(), name) {
				names[last] += "," + piece
				continue
			}
			names = append(names, strings.TrimSpace(piece))
		}
	}
	return names
}

// readLoads reads the loads at which savings are stated, ascending.
func readLoads(text string) ([]float64, error) {
	loads, err := terminal.ParseNumbers("loads", text)
	if err != nil {
		return nil, err
	}
	if len(loads) == 0 {
		return nil, terminal.Usagef("--loads is empty, want numbers separated by commas")
	}
	for _, load := range loads {
		if !(load > 0 && load <= maxLoad) {
			return nil, terminal.Usagef("--loads %v, want each above 0 and up to %d", load, maxLoad)
		}
	}
	slices.Sort(loads)
	return slices.Compact(loads), nil
}

func paperPlacements() []string {
	return []string{
		"fgd", "pwr", "pwr+fgd:0.05", "pwr+fgd:0.1", "pwr+fgd:0.2",
		"bestfit", "dotprod", "gpupacking", "gpuclustering", "random",
	}
}

const paperFirstSeed = 42

func streamSeedFlag() *cli.Uint64Flag {
	return &cli.Uint64Flag{
		Name: "seed", Usage: "`NUMBER` of the first stream; the paper averages 42 to 51",
		Value: paperFirstSeed,
	}
}
