package main

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// simulatedPolicies are played on the streams, the one first against which times
// are stated.
var simulatedPolicies = []struct{ name, text string }{ //nolint:gochecknoglobals // constant
	{"cats", "cats"},
	{"cats-active", "cats,place=share-cats-active"},
	{"cats-thresholds", "cats,place=share-cats-thresholds"},
	{"hotcloud", "hotcloud"},
	{"first", "first"},
	{"fgd", "hotcloud,place=share-fgd"},
	{"bf", "hotcloud,place=share-bf"},
	{"dp", "hotcloud,place=share-dp"},
	{"cats-safe", "cats-safe"},
	{"cats-safe,clocks=lowest", "cats-safe,clocks=lowest"},
}

type simulationResult struct {
	gpus, powerW, jct float64 // means: GPUs that are on, watts, seconds from arrival to end
	energyKWh         float64 // of the stream, servers included
	slowed            float64 // part of the tasks that are slowed down more than they allow
}

// The paper's figures. Its power is in MW, which is a thousand times too much
// for its GPUs: these are its numbers as kW.
var (
	paperPAI = map[string]simulationResult{ //nolint:gochecknoglobals // constant
		"cats": {gpus: 37.32, powerW: 6080, jct: 1}, "hotcloud": {gpus: 61.94, jct: 0.87},
		"first": {gpus: 92.94, powerW: 16700, jct: 0.77},
	}
	paperPhilly = map[string]simulationResult{ //nolint:gochecknoglobals // constant
		"cats": {powerW: 6770, jct: 1}, "hotcloud": {powerW: 8300, jct: 0.857},
		"first": {powerW: 8990, jct: 0.974},
		"fgd":   {powerW: 15890}, "bf": {powerW: 13730}, "dp": {powerW: 14790},
	}
)

func (p *catsPaper) simulate(
	ctx context.Context, section string, spec taskset.SharedSpec, paper map[string]simulationResult,
) error {
	spec.Tasks = max(1, int(p.scale*float64(spec.Tasks)))
	stream := taskset.Shared(p.rng(uint64(spec.Tasks)), &spec)
	var base simulationResult
	for i, q := range simulatedPolicies {
		plan, err := solvePolicy(ctx, stream, q.text)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		s := sumUp(stream, plan)
		if i == 0 {
			base = s
		}
		theirs := paper[q.name]
		p.add(section, q.name+": GPUs on", "", s.gpus, theirs.gpus)
		p.add(section, q.name+": power", "W", s.powerW, theirs.powerW)
		p.add(section, q.name+": energy of all tasks", "kWh", s.energyKWh, 0)
		p.add(section, q.name+": completion time, × cats's", "", s.jct/base.jct, theirs.jct)
		p.add(section, q.name+": tasks beyond their SLA", "%", 100*s.slowed, 0)
		p.progress.Add(1)
	}
	p.notes = append(p.notes, fmt.Sprintf("%s: not comparable, the stream is drawn (--scale %g; the paper's series "+
		"aren't public); its MW are taken for kW, as its numbers of GPUs have it", section, p.scale))
	return nil
}

func solvePolicy(ctx context.Context, stream *planner.Problem, text string) (*planner.Plan, error) {
	chosen, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		return nil, err
	}
	return planner.Solve(ctx, stream, chosen, nil)
}

func sumUp(stream *planner.Problem, plan *planner.Plan) simulationResult {
	var s simulationResult
	first, last := plan.Ledger.End, 0.0
	for i := range stream.Tasks {
		a := &plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		s.jct += (a.End - stream.Tasks[i].Arrival) / float64(len(stream.Tasks))
		first, last = min(first, a.Start), max(last, a.End)
	}
	span := last - first
	for _, spell := range plan.Shared.ClockIntervals {
		s.gpus += (spell.To - spell.From) / span
	}
	s.powerW = float64(plan.Ledger.Total()) / span
	s.energyKWh = plan.Ledger.Total().KWh()
	s.slowed = float64(len(plan.Shared.Slowed)) / float64(len(stream.Tasks))
	return s
}
