package control

import (
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mathext"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// Savings is what treated runs used less than held-out ones.
type Savings = epdapi.Savings

// leastRuns is how many runs an arm must have, so that its scatter is known.
const leastRuns = 2

// Savings compares runs that ended since a time.
func (c *Controller) Savings(ctx context.Context, since time.Time) (Savings, error) {
	strata, err := c.options.Store.Strata(ctx, c.options.Cluster, since)
	if err != nil {
		return Savings{}, err
	}
	type arms struct{ treated, held record.Stratum }
	pairs := make(map[record.WorkloadKey]*arms)
	var order []record.WorkloadKey // sums of floats depend on it
	for _, s := range strata {
		if s.Arm == record.Excluded {
			continue
		}
		if pairs[s.WorkloadKey] == nil {
			pairs[s.WorkloadKey] = &arms{}
			order = append(order, s.WorkloadKey)
		}
		if s.Arm == record.Treated {
			pairs[s.WorkloadKey].treated = s
		} else {
			pairs[s.WorkloadKey].held = s
		}
	}
	settings := c.settings.Load()
	sum := Savings{Since: since, HoldOut: settings.Live.HoldOut, Factors: epdapi.NewFactors(&settings.Factors)}
	var gpu, node tally
	for _, key := range order {
		p := pairs[key]
		sum.Treated += p.treated.GPU.Runs
		sum.HeldOut += p.held.GPU.Runs
		if p.treated.GPU.Runs == 0 && p.held.GPU.Runs == 0 {
			continue
		}
		if gpu.add(&p.treated.GPU, &p.held.GPU) {
			sum.Workloads++
		} else {
			sum.Alone++
		}
		node.add(&p.treated.Node, &p.held.Node)
	}
	sum.GPU, sum.Node = gpu.saving(), node.saving()
	return sum, nil
}

// tally adds up the differences between the arms of workloads.
type tally struct {
	runs, held      int64
	saved, baseline float64
	variance        float64 // of saved
	// weight and spread are Σ w and Σ w²/(n−1) over the terms w of the variance,
	// with the workload's variance in place of each arm's: that of an arm with two
	// runs says too little about how far it can be trusted.
	weight, spread float64
	missing        int64 // held-out runs of the workload that lacks the fewest; 0: none lacks any
}

// add counts a workload that has enough runs in each arm.
func (t *tally) add(treated, held *record.EnergyMean) bool {
	if treated.Runs < leastRuns || held.Runs < leastRuns {
		if lack := leastRuns - held.Runs; treated.Runs > 0 && lack > 0 && (t.missing == 0 || lack < t.missing) {
			t.missing = lack
		}
		return false
	}
	n := float64(treated.Runs)
	t.runs += treated.Runs
	t.held += held.Runs
	t.saved += n * (held.MeanJ - treated.MeanJ)
	t.baseline += n * held.MeanJ
	both := (float64(held.Runs-1)*held.VarianceJ2 + (n-1)*treated.VarianceJ2) / float64(held.Runs+treated.Runs-2)
	for _, arm := range []*record.EnergyMean{held, treated} {
		runs := float64(arm.Runs)
		t.variance += n * n * arm.VarianceJ2 / runs
		w := n * n * both / runs
		t.weight += w
		t.spread += w * w / (runs - 1)
	}
	return true
}

// saving is the sum with its interval: Student's, with degrees of freedom after
// Welch and Satterthwaite.
func (t *tally) saving() epdapi.Saving {
	s := epdapi.Saving{Runs: t.runs, HeldOut: t.held, SavedJ: t.saved, BaselineJ: t.baseline}
	half := 0.0
	if t.variance > 0 {
		freedom := t.weight * t.weight / t.spread
		half = studentsT(freedom) * math.Sqrt(t.variance)
	}
	s.LowJ, s.HighJ = t.saved-half, t.saved+half
	s.Needed = t.needed(half)
	return s
}

// studentsT is the quantile of Student's distribution between whose negative
// and itself are 95 %.
func studentsT(freedom float64) float64 {
	const outside = 0.05
	x := mathext.InvRegIncBeta(freedom/2, 0.5, outside)
	return math.Sqrt(freedom * (1 - x) / x)
}

// needed is how many more held-out runs it takes until half the interval is
// smaller than what was saved, when both arms grow alike: the saving grows with
// the runs, its error with their root.
func (t *tally) needed(half float64) int64 {
	const most = 1e9
	switch {
	case t.runs == 0:
		return t.missing
	case half < math.Abs(t.saved) || t.saved == 0:
		return 0
	}
	ratio := half / t.saved
	return int64(math.Ceil(min(most, (ratio*ratio-1)*float64(t.held))))
}
