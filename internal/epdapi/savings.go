package epdapi

import (
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
)

// Savings is what treated runs used less than held-out ones of the same
// workload on the same GPU model. Workloads without both aren't in it.
type Savings struct {
	Since     time.Time `json:"since,omitzero"` // the zero time: all that is known
	GPU       Saving    `json:"gpu"`
	Node      Saving    `json:"node"`
	Workloads int       `json:"workloads"` // on a GPU model each, that were compared at the GPU
	Alone     int       `json:"alone"`     // that weren't: one of the arms has fewer than two runs
	// Treated and HeldOut are all completed runs, compared or not.
	Treated int64   `json:"treated_runs"`
	HeldOut int64   `json:"held_out_runs"`
	HoldOut float64 `json:"hold_out"` // part of the jobs that is held out now
	// Factors turn energy into what it costs.
	Factors Factors `json:"factors"`
}

// Saving is an energy with the bounds of its 95 % interval.
type Saving struct {
	Runs      int64   `json:"runs"`          // treated ones
	HeldOut   int64   `json:"held_out_runs"` // that they were compared with
	SavedJ    float64 `json:"saved_j"`
	LowJ      float64 `json:"low_j"`
	HighJ     float64 `json:"high_j"`
	BaselineJ float64 `json:"baseline_j"` // what the treated runs would have used
	// Needed is how many more held-out runs it takes, as the numbers are now,
	// until the interval doesn't hold 0; 0: none, or nobody can tell.
	Needed int64 `json:"needed_held_out_runs"`
}

// Certain tells whether the interval says that something was saved, or lost.
func (s *Saving) Certain() bool { return s.Runs > 0 && (s.LowJ > 0 || s.HighJ < 0) }

// Factors turn energy into what it costs. 0 wasn't stated.
type Factors struct {
	PUE          float64 `json:"pue"`
	CarbonPerKWh float64 `json:"carbon_g_per_kwh"`
	WaterPerKWh  float64 `json:"water_l_per_kwh"`
	CostPerKWh   float64 `json:"cost_per_kwh"`
	Currency     string  `json:"currency"`
}

// NewFactors are those of a configuration.
func NewFactors(f *config.Factors) Factors {
	return Factors{PUE: f.PUE, CarbonPerKWh: f.CarbonPerKWh, WaterPerKWh: f.WaterPerKWh, CostPerKWh: f.CostPerKWh, Currency: f.Currency}
}

// Of is what an energy costs.
func (f *Factors) Of(joules float64) config.Footprint {
	factors := config.Factors{PUE: f.PUE, CarbonPerKWh: f.CarbonPerKWh, WaterPerKWh: f.WaterPerKWh, CostPerKWh: f.CostPerKWh, Currency: f.Currency}
	return factors.Of(dvfsmodel.Joule(joules))
}
