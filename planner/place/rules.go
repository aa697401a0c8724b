package place

import "github.com/epplan/epplan/planner"

// loadSlack is the rounding that a sum of utilisations may carry.
const loadSlack = 1e-12

// Rule chooses among the places of a task.
type Rule struct {
	// Better reports whether place a is to be preferred to place b; places come in opening
	// order.
	Better func(a, b *Candidate) bool
	// Fits reports whether the task may go to the place as it wants to run. Nil: the best
	// of all places is taken if Tune can make the task fit there, and no other is tried.
	Fits func(c *Candidate) bool
	// Reason is recorded with the assignment.
	Reason planner.PlaceReason
}

// LightestRule takes the place that is free first, which has the most room, or none (EDL).
var LightestRule = Rule{
	Better: func(a, b *Candidate) bool { return a.Free < b.Free }, Reason: planner.PlaceLightest,
}

// FirstRule takes the first place in opening order where the task fits.
var FirstRule = Rule{
	Better: func(_, _ *Candidate) bool { return false }, Fits: hasTime, Reason: planner.PlaceFirst,
}

// BestRule takes the fullest place by utilisation that has enough left (EDF-BF).
var BestRule = Rule{
	Better: func(a, b *Candidate) bool { return a.Load > b.Load }, Fits: hasTimeAndLoad,
	Reason: planner.PlaceFullest,
}

// WorstRule takes the emptiest place by utilisation (EDF-WF).
var WorstRule = Rule{
	Better: func(a, b *Candidate) bool { return a.Load < b.Load }, Fits: hasTimeAndLoad,
	Reason: planner.PlaceEmptiest,
}

// LatestRule takes the place that is free last and where the task still fits.
var LatestRule = Rule{
	Better: func(a, b *Candidate) bool { return a.Start > b.Start }, Fits: hasTime,
	Reason: planner.PlaceLatest,
}

// hasTime reports whether there is room for the run time that the task wants.
func hasTime(c *Candidate) bool { return c.Want.Point.Time <= c.Room }

// hasTimeAndLoad is the utilisation test: they add up to 1 at most. In EDF order it implies
// that the due time is met; the second test guards other orders.
func hasTimeAndLoad(c *Candidate) bool { return c.Load+c.Need <= 1+loadSlack && hasTime(c) }

// ByRule makes a Place stage of a rule.
func ByRule(rule Rule) func(*planner.View) planner.Placer {
	return func(v *planner.View) planner.Placer { return Scan(v, rule) }
}

// BinPacking returns the Place stage of the paper's bin-packing heuristic (algorithm 6):
// worst fit by utilisation for the batch at time 0, first fit after it.
func BinPacking(v *planner.View) planner.Placer {
	if v.PerGPUMode {
		return Scan(v, WorstRule)
	}
	return Scan(v, FirstRule)
}
