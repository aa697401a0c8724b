package control

import (
	"context"
	"math"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// Savings is what treated runs used less than held-out ones of the same
// workload on the same GPU model. Workloads without both aren't in it.
type Savings struct {
	GPU       Saving `json:"gpu"`
	Node      Saving `json:"node"`
	Workloads int    `json:"workloads"` // on a GPU model each, that were compared at the GPU
	Alone     int    `json:"alone"`     // that weren't: one of the arms has fewer than two runs
}

// Saving is an energy with the bounds of its 95 % interval.
type Saving struct {
	Runs      int64   `json:"runs"` // treated ones
	SavedJ    float64 `json:"saved_j"`
	LowJ      float64 `json:"low_j"`
	HighJ     float64 `json:"high_j"`
	BaselineJ float64 `json:"baseline_j"` // what these runs would have used
	variance  float64
}

// Savings compares runs that ended since a time.
func (c *Controller) Savings(ctx context.Context, since time.Time) (Savings, error) {
	strata, err := c.options.Store.Strata(ctx, c.options.Cluster, since)
	if err != nil {
		return Savings{}, err
	}
	type arms struct{ treated, held record.Stratum }
	pairs := make(map[record.WorkloadKey]*arms)
	for _, s := range strata {
		if pairs[s.WorkloadKey] == nil {
			pairs[s.WorkloadKey] = &arms{}
		}
		switch s.Arm {
		case record.Treated:
			pairs[s.WorkloadKey].treated = s
		case record.HeldOut:
			pairs[s.WorkloadKey].held = s
		case record.Excluded:
		}
	}
	var sum Savings
	for _, p := range pairs {
		if p.treated.GPU.Runs == 0 && p.held.GPU.Runs == 0 {
			continue
		}
		if sum.GPU.add(&p.treated.GPU, &p.held.GPU) {
			sum.Workloads++
		} else {
			sum.Alone++
		}
		sum.Node.add(&p.treated.Node, &p.held.Node)
	}
	sum.GPU.bound()
	sum.Node.bound()
	return sum, nil
}

// add counts a workload that has at least two runs in each arm.
func (s *Saving) add(treated, held *record.EnergyMean) bool {
	const least = 2
	if treated.Runs < least || held.Runs < least {
		return false
	}
	n := float64(treated.Runs)
	s.Runs += treated.Runs
	s.SavedJ += n * (held.MeanJ - treated.MeanJ)
	s.BaselineJ += n * held.MeanJ
	s.variance += n * n * (held.VarianceJ2/float64(held.Runs) + treated.VarianceJ2/n)
	return true
}

func (s *Saving) bound() {
	const z = 1.96
	half := z * math.Sqrt(s.variance)
	s.LowJ, s.HighJ = s.SavedJ-half, s.SavedJ+half
}
