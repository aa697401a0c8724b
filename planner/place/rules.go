package place

import "github.com/epplan/epplan/planner"

// loadSlack is the rounding that a sum of utilisations may carry.
const loadSlack = 1e-12

// LightestRule takes the place that is free first, or none (EDL).
type LightestRule struct{}

// Better prefers the place that is free earlier.
func (LightestRule) Better(a, b *Candidate) bool { return a.Free < b.Free }

// Fits leaves the answer to Tune.
func (LightestRule) Fits(*Candidate) bool { return true }

// TryBestOnly is true: the lightest place has the most room.
func (LightestRule) TryBestOnly() bool { return true }

// Reason is that it is free first.
func (LightestRule) Reason() planner.PlaceReason { return planner.PlaceLightest }

// FirstRule takes the first place in opening order where the task fits.
type FirstRule struct{}

// Better keeps the order of the places.
func (FirstRule) Better(_, _ *Candidate) bool { return false }

// Fits asks for the run time that the task wants.
func (FirstRule) Fits(c *Candidate) bool { return c.Want.Point.Time <= c.Room }

// TryBestOnly is false: every place is tried.
func (FirstRule) TryBestOnly() bool { return false }

// Reason is that it is the first that fits.
func (FirstRule) Reason() planner.PlaceReason { return planner.PlaceFirst }

// BestRule takes the fullest place by utilisation that has enough left (EDF-BF).
type BestRule struct{}

// Better prefers the fuller place.
func (BestRule) Better(a, b *Candidate) bool { return a.Load > b.Load }

// Fits wants utilisations to add up to 1 at most, and the due time met.
func (BestRule) Fits(c *Candidate) bool { return meetsUtilisation(c) }

// TryBestOnly is false: a fuller place may have too little left.
func (BestRule) TryBestOnly() bool { return false }

// Reason is that it is the fullest that fits.
func (BestRule) Reason() planner.PlaceReason { return planner.PlaceFullest }

// WorstRule takes the emptiest place by utilisation (EDF-WF).
type WorstRule struct{}

// Better prefers the emptier place.
func (WorstRule) Better(a, b *Candidate) bool { return a.Load < b.Load }

// Fits wants utilisations to add up to 1 at most, and the due time met.
func (WorstRule) Fits(c *Candidate) bool { return meetsUtilisation(c) }

// TryBestOnly is false.
func (WorstRule) TryBestOnly() bool { return false }

// Reason is that it is the emptiest.
func (WorstRule) Reason() planner.PlaceReason { return planner.PlaceEmptiest }

// meetsUtilisation is the utilisation test. In EDF order it implies that the due time
// is met; the second test guards other orders.
func meetsUtilisation(c *Candidate) bool {
	return c.Load+c.Need <= 1+loadSlack && c.Want.Point.Time <= c.Room
}

// LatestRule takes the place that is free last and where the task still fits.
type LatestRule struct{}

// Better prefers the later start.
func (LatestRule) Better(a, b *Candidate) bool { return a.Start > b.Start }

// Fits asks for the run time that the task wants.
func (LatestRule) Fits(c *Candidate) bool { return c.Want.Point.Time <= c.Room }

// TryBestOnly is false: a later start has less room.
func (LatestRule) TryBestOnly() bool { return false }

// Reason is that it is free last.
func (LatestRule) Reason() planner.PlaceReason { return planner.PlaceLatest }

// ByRule makes a Place stage of a rule.
func ByRule(rule Rule) func(*planner.View) planner.Placer {
	return func(v *planner.View) planner.Placer { return Scan(v, rule) }
}

// BinPacking is the Place stage of the paper's bin-packing heuristic (algorithm 6):
// worst fit by utilisation for the batch at time 0, first fit after it.
func BinPacking(v *planner.View) planner.Placer {
	if v.PerGPUMode {
		return Scan(v, WorstRule{})
	}
	return Scan(v, FirstRule{})
}
