package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/lab/reproduction"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

func reproduceCATSCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name: "cats",
		Usage: "the CATS paper: its testbed, solve times of table 1, correlations of table 2, its " +
			"two simulations",
		Description: "The paper publishes no utilisation series, no durations and no server power. The " +
			"testbed's tasks (Table 4)\n" +
			"are played with series drawn around their means and the run time at which HotCloud draws what the paper\n" +
			"measured. Streams of the simulations are drawn: those figures can't be compared, only their order. Tables 1\n" +
			"and 2 are times of this machine. lab/docs/papers.md says what the paper's figures are.\n" +
			"Example: epplab reproduce cats --only testbed",
		Flags: append(exhibitFlags(&paperCATS),
			&cli.Float64Flag{Name: "scale", Usage: "`PART` of the simulations' tasks to draw", Value: 1},
			setup.SearchTimeFlag("the `TIME` that each proof of table 1 may take", 10*time.Second),
			setup.SeedFlag()),
		Action: t.Runs(terminal.WithoutArgs(runReproduceCATS)),
	}
}

var paperCATS = paper{ //nolint:gochecknoglobals // constant
	reproduction.Paper{
		Name: "cats", Title: "CATS: correlation-aware task scheduling on shared GPUs",
		Page: "lab/docs/papers/cats.md", Sections: catsSections,
	},
	computeCATS,
}

var catsSections = []string{"testbed", "table1", "table2", "pai", "philly"}

func runReproduceCATS(t *terminal.Terminal, c *cli.Context) error {
	scale, limit := c.Float64("scale"), c.Duration("time-limit")
	if !(scale > 0 && scale <= 1) {
		return terminal.Usagef("--scale %v, want a part above 0 and up to 1", scale)
	}
	return reproduceOne(t, c, &paperCATS, &reproducer{
		reproduceScale: reproduceScale{scale: scale, proof: limit},
	})
}

type catsPaper struct {
	*reproducer
	findings []reproduction.Finding
	notes    []string
	progress *report.Progress
}

func computeCATS(ctx context.Context, r *reproducer) (*reproduction.Result, error) {
	steps := map[string]int{
		"testbed": 1, "table1": len(paperTable1), "table2": len(paperTable2), "pai": len(simulatedPolicies),
		"philly": len(simulatedPolicies),
	}
	sum := 0
	for _, section := range r.sections {
		sum += steps[section]
	}
	p := &catsPaper{reproducer: r, progress: r.count("", sum)}
	defer p.progress.Finish()
	for _, section := range r.sections {
		if err := p.section(ctx, section); err != nil {
			return nil, fmt.Errorf("%s: %w", section, err)
		}
	}
	found := r.result(p.findings)
	found.Notes = p.notes
	return found, nil
}

func (p *catsPaper) section(ctx context.Context, name string) error {
	switch name {
	case "testbed":
		return p.testbed(ctx)
	case "table1":
		return p.table1(ctx)
	case "table2":
		return p.table2(ctx)
	case "pai":
		return p.simulate(ctx, name, taskset.SharedLikePAI(), paperPAI)
	}
	return p.simulate(ctx, name, taskset.SharedLikePhilly(), paperPhilly)
}

func (p *catsPaper) add(section, what, unit string, ours, paper float64) {
	p.findings = append(p.findings, reproduction.Finding{
		Section: section, What: what, Unit: unit, Ours: ours, Paper: paper,
	})
}

func (p *catsPaper) rng(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(p.seed, stream))
}

// paperTable1 is the seconds that the paper's MILP takes by tasks.
var paperTable1 = []struct { //nolint:gochecknoglobals // constant
	tasks   int
	seconds float64
}{{2, 0.02}, {4, 0.12}, {8, 0.24}, {16, 0.66}, {32, 4.7}, {64, 16.5}, {128, 80.9}}

// table1 is how long proofs of the printed problem take, and of the corrected
// one.
func (p *catsPaper) table1(ctx context.Context) error {
	for _, row := range paperTable1 {
		in := taskset.Consolidation(p.rng(uint64(row.tasks)), row.tasks)
		for _, problem := range []share.Problem{share.AsPrinted, share.Safe} {
			limited, cancel := context.WithTimeout(ctx, p.proof)
			began := time.Now()
			r := consolidate.Exact(limited, in, problem, consolidate.ExactOptions{Seed: p.seed})
			took := time.Since(began).Seconds()
			cancel()
			if err := ctx.Err(); err != nil {
				return err
			}
			paper, what := 0.0, fmt.Sprintf("%d tasks, %s", row.tasks, problem)
			if problem == share.AsPrinted {
				paper = row.seconds
			}
			if !r.Proven {
				what += fmt.Sprintf(", not proven: at most %.3f %% above the optimum",
					100*(r.PowerW/r.BoundW-1))
			}
			p.add("table1", what, "s", took, paper)
		}
		p.progress.Add(1)
	}
	p.notes = append(p.notes, "table1: instances are drawn, and times are of this machine; the paper's are "+
		"of PuLP on a machine that it doesn't name")
	return nil
}

// paperTable2 is the milliseconds that a correlation takes by samples.
var paperTable2 = []struct { //nolint:gochecknoglobals // constant
	samples int
	millis  float64
}{{1_000, 0.295}, {10_000, 0.325}, {100_000, 1.325}, {500_000, 6.469}, {1_000_000, 12.999}}

func (p *catsPaper) table2(ctx context.Context) error {
	const rounds = 20
	rng := p.rng(0)
	for _, row := range paperTable2 {
		x, y := make([]float64, row.samples), make([]float64, row.samples)
		for i := range x {
			x[i], y[i] = 100*rng.Float64(), 100*rng.Float64()
		}
		best := time.Duration(1<<63 - 1)
		for range rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			began := time.Now()
			sharing.Pearson(x, y)
			best = min(best, time.Since(began))
		}
		p.add("table2", report.FormatCount(row.samples)+" samples", "ms", best.Seconds()*1e3, row.millis)
		p.progress.Add(1)
	}
	p.notes = append(p.notes, fmt.Sprintf("table2: the best of %d on one thread of this machine", rounds))
	return nil
}
