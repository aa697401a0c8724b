package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// DefaultPlacement is the placement that wins by power and by allocation
// (lab/docs/papers.md).
const DefaultPlacement = "potential"

// Placement is a way to choose nodes and GPUs, read by [ParsePlacement].
type Placement struct {
	Name   string // as it was written
	rule   func(fleet.Workload) score.Rule
	random bool
	seed   *uint64 // of random, if one was written
}

// Chooser applies the placement to a cluster with a target workload. Only
// random uses the seed, and only if its text has none.
func (p *Placement) Chooser(m fleet.Workload, s *fleet.State, seed uint64) score.Chooser {
	if p.random {
		return score.NewRandom(s, p.seedOr(seed))
	}
	return score.NewIndex(p.ScorerRule(m), s)
}

// ScorerRule returns the mix of scorers for one chooser; random has none.
func (p *Placement) ScorerRule(m fleet.Workload) score.Rule {
	r := p.rule(m)
	r.Name = p.Name
	return r
}

// seedOr returns the seed that was written, or else the given one.
func (p *Placement) seedOr(seed uint64) uint64 {
	if p.seed != nil {
		return *p.seed
	}
	return seed
}

type registeredPlacement struct {
	name string
	args string // how its arguments are written, for help
	doc  string
	read func(args string) (Placement, *argError)
}

// argError is a fault in arguments and where in them it is.
type argError struct {
	offset int
	msg    string
}

// placements lists every placement, in the order in which they are shown.
// It is a function as mix refers back to it.
func placements() []registeredPlacement {
	return []registeredPlacement{
		{
			"pwr", "", "least added power (PWR+FGD paper, algorithm 1)",
			singleScorer(func(fleet.Workload) score.Scorer { return score.PWR{} }),
		},
		{"fgd", "", "least added fragmentation (FGD)", singleScorer(newFGD)},
		{
			"pwr+fgd", ":ALPHA|:auto",
			"pwr and fgd, with weight ALPHA on power (equation 5; 0.1), or a weight that follows the load",
			readAlpha,
		},
		{
			"bestfit", "", "least CPU and GPU left over", singleScorer(func(fleet.Workload) score.Scorer {
				return score.BestFit{}
			}),
		},
		{
			"dotprod", "", "smallest dot product of free and requested resources",
			singleScorer(func(fleet.Workload) score.Scorer { return score.DotProd{} }),
		},
		{
			"gpupacking", "", "busy GPUs, then busy nodes, then idle ones",
			singleScorer(func(fleet.Workload) score.Scorer { return score.GpuPacking{} }),
		},
		{
			"gpuclustering", "", "tasks of one kind together",
			singleScorer(func(fleet.Workload) score.Scorer { return score.GpuClustering{} }),
		},
		{"random", "[:SEED]", "any node and GPU with room", readRandom},
		{
			"epwr",
			"",
			"least added power of this task, plus that expected of the next",
			singleScorer(newExpectedPWR),
		},
		{
			"priced", "[:F[,S[,C]]]",
			"watts + F a GPU fragmented + S a GPU stranded below C vCPU (200,100,13)", readPriced,
		},
		{
			"potential", "[:room=R]",
			"least added power of this task and the next, plus a price for lost room: epplan's default",
			readPotential,
		},
		{"mix", ":NAME=WEIGHT[,…]", "several placements, weighted", readMix},
	}
}

// newFGD and newExpectedPWR are the constructors as [singleScorer] takes them.
func newFGD(m fleet.Workload) score.Scorer { return score.NewFGD(m) }

func newExpectedPWR(m fleet.Workload) score.Scorer { return score.NewExpectedPWR(m) }

// PlacementNames lists the placements in the order in which help shows them.
func PlacementNames() []string {
	all := placements()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names
}

// DescribePlacement returns how a placement is written and what it does; empty for
// an unknown name.
func DescribePlacement(name string) (usage, doc string) {
	for _, p := range placements() {
		if p.name == name {
			return p.name + p.args, p.doc
		}
	}
	return "", ""
}

// ParsePlacement reads a placement:
//
//	NAME[:ARGUMENTS]
//
// NAME is one of [PlacementNames]. Upper and lower case are the same.
func ParsePlacement(text string) (*Placement, error) {
	name, args, has := strings.Cut(strings.ToLower(text), ":")
	all := placements()
	i := slices.IndexFunc(all, func(p registeredPlacement) bool { return p.name == name })
	if i < 0 {
		return nil, &SyntaxError{
			text, 0, fmt.Sprintf("unknown placement %q, want one of %s", name,
				strings.Join(PlacementNames(), ", ")),
		}
	}
	if has && args == "" {
		return nil, &SyntaxError{text, len(text), "nothing follows the colon"}
	}
	p, fault := all[i].read(args)
	if fault != nil {
		return nil, &SyntaxError{text, min(len(name)+1+fault.offset, len(text)), name + ": " + fault.msg}
	}
	p.Name = text
	return &p, nil
}

// singleScorer returns a placement by one scorer, which takes no arguments.
func singleScorer(scorer func(fleet.Workload) score.Scorer) func(string) (Placement, *argError) {
	return func(args string) (Placement, *argError) {
		if args != "" {
			return Placement{}, &argError{0, fmt.Sprintf("takes no arguments, got %q", args)}
		}
		return Placement{rule: func(m fleet.Workload) score.Rule {
			return score.Rule{Parts: []score.WeightedScorer{{Scorer: scorer(m), Weight: paperWeight}}}
		}}, nil
	}
}

const (
	paperWeight  = 1000  // of all parts of a rule together, as the PWR+FGD paper has it
	defaultAlpha = "0.1" // of paperWeight, on PWR
)

// readAlpha reads the arguments of pwr+fgd: ALPHA, auto, or none.
func readAlpha(args string) (Placement, *argError) {
	if args == "auto" {
		return Placement{rule: func(m fleet.Workload) score.Rule {
			r := weightedPWRFGD(m, paperWeight/2)
			r.Weigh = score.NewAutoAlpha(m)
			return r
		}}, nil
	}
	alpha, err := strconv.ParseFloat(cmp.Or(args, defaultAlpha), 64)
	if err != nil || !(alpha >= 0 && alpha <= 1) {
		return Placement{}, &argError{0, fmt.Sprintf("alpha %q, want a number from 0 to 1, or auto", args)}
	}
	return Placement{
		rule: func(m fleet.Workload) score.Rule { return weightedPWRFGD(m, paperWeight*alpha) },
	}, nil
}

// weightedPWRFGD is PWR and FGD, the one with its weight and the other with the rest.
func weightedPWRFGD(m fleet.Workload, pwr float64) score.Rule {
	all := []score.WeightedScorer{
		{Scorer: score.PWR{}, Weight: pwr}, {Scorer: score.NewFGD(m), Weight: paperWeight - pwr},
	}
	return score.Rule{Parts: slices.DeleteFunc(all, func(p score.WeightedScorer) bool {
		return p.Weight == 0
	})}
}

// readRandom reads the argument of random, its seed, or none.
func readRandom(args string) (Placement, *argError) {
	p := Placement{random: true}
	if args != "" {
		seed, err := strconv.ParseUint(args, 10, 64)
		if err != nil {
			return p, &argError{0, fmt.Sprintf("seed %q, want a whole number from 0", args)}
		}
		p.seed = &seed
	}
	return p, nil
}
