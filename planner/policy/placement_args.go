package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// readPriced reads up to three prices, separated by commas, in the order of
// [score.Prices].
func readPriced(args string) (Placement, *argError) {
	prices := score.DefaultPrices()
	to := []*float64{&prices.Fragment, &prices.Strand, &prices.CPUsPerGPU}
	offset, count := 0, 0
	for value := range strings.SplitSeq(args, ",") {
		if args == "" {
			break
		}
		if count == len(to) {
			return Placement{}, &argError{offset, "want at most three numbers"}
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 0 && x <= maxPrice) {
			return Placement{}, &argError{
				offset, fmt.Sprintf("%q, want a number from 0 to %d", value, maxPrice),
			}
		}
		*to[count] = x
		if prices.CPUsPerGPU == 0 {
			return Placement{}, &argError{offset, "0 vCPU a GPU, want more"}
		}
		offset += len(value) + 1
		count++
	}
	return Placement{rule: func(m fleet.Workload) score.Rule {
		return score.Rule{Parts: []score.WeightedScorer{{Scorer: score.NewAddedCost(m, prices), Weight: 1}}}
	}}, nil
}

// maxPrice is the highest price or weight that can be written.
const maxPrice = 1_000_000

type mixPart struct {
	rule   func(fleet.Workload) score.Rule
	weight float64
}

// readMix reads NAME=WEIGHT, separated by commas.
func readMix(args string) (Placement, *argError) {
	var mix []mixPart
	offset := 0
	for item := range strings.SplitSeq(args, ",") {
		in, fault := readIngredient(item)
		if fault != nil {
			return Placement{}, &argError{offset + fault.offset, fault.msg}
		}
		if in.weight > 0 {
			mix = append(mix, in)
		}
		offset += len(item) + 1
	}
	if len(mix) == 0 {
		return Placement{}, &argError{0, "every weight is 0"}
	}
	return Placement{rule: func(m fleet.Workload) score.Rule {
		var r score.Rule
		for _, in := range mix {
			r.Parts = append(r.Parts, score.WeightedScorer{
				Scorer: in.rule(m).Parts[0].Scorer, Weight: paperWeight * in.weight,
			})
		}
		return r
	}}, nil
}

func readIngredient(item string) (mixPart, *argError) {
	name, value, ok := strings.Cut(item, "=")
	if !ok {
		return mixPart{}, &argError{0, fmt.Sprintf("%q, want name=weight", item)}
	}
	weight, err := strconv.ParseFloat(value, 64)
	if err != nil || !(weight >= 0 && weight <= maxPrice) {
		return mixPart{}, &argError{
			len(name) + 1, fmt.Sprintf("weight %q, want a number from 0 to %d", value, maxPrice),
		}
	}
	if mixable := singleScorers(); !slices.Contains(mixable, name) {
		return mixPart{}, &argError{
			0, fmt.Sprintf("unknown part %q, want one of %s", name, strings.Join(mixable, ", ")),
		}
	}
	p, err := ParsePlacement(name)
	if err != nil {
		return mixPart{}, &argError{0, err.Error()}
	}
	return mixPart{p.rule, weight}, nil
}

// singleScorers returns the placements that are one scorer each.
func singleScorers() []string {
	var names []string
	for _, known := range placements() {
		p, fault := known.read("")
		if fault == nil && p.rule != nil && len(p.rule(fleet.Workload{}).Parts) == 1 {
			names = append(names, known.name)
		}
	}
	return names
}

// readPotential reads room=R.
func readPotential(args string) (Placement, *argError) {
	room := score.DefaultRoom
	if args != "" {
		name, text, ok := strings.Cut(args, "=")
		x, err := strconv.ParseFloat(text, 64)
		switch {
		case !ok:
			return Placement{}, &argError{0, fmt.Sprintf("%q, want room=R", args)}
		case name != "room":
			return Placement{}, &argError{0, fmt.Sprintf("unknown parameter %q, want room", name)}
		case err != nil || !(x >= 0 && x <= 1):
			return Placement{}, &argError{len(name) + 1, fmt.Sprintf("%q, want a number from 0 to 1", text)}
		}
		room = x
	}
	return Placement{rule: func(m fleet.Workload) score.Rule {
		return score.Rule{Parts: []score.WeightedScorer{{Scorer: score.NewPotential(m, room), Weight: 1}}}
	}}, nil
}
