package epdapi

import (
	"context"
	"net/url"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// PathFit is where the points of a model's fit are read, by operators.
const PathFit = "/v1/models/fit"

// Where the clocks of a fit's curve come from.
const (
	ClocksFromAgent   = "agent"   // a GPU of this model told its table since epd's start
	ClocksFromProfile = "profile" // the GPU model's profile
	ClocksFromModel   = "model"   // the default clocks alone: no table is known
)

// ModelFit is a workload's model on a GPU model with the runs behind it. All
// quantities are of one GPU.
type ModelFit struct {
	ModelStatus
	Model    *Model        `json:"model"`         // nil: none is in use
	BaseCore dvfsmodel.MHz `json:"base_core_mhz"` // default clocks; 0: not known
	BaseMem  dvfsmodel.MHz `json:"base_mem_mhz"`
	MinMem   dvfsmodel.MHz `json:"min_mem_mhz"` // of the runs seen
	MaxMem   dvfsmodel.MHz `json:"max_mem_mhz"`
	// Points are the workload's last runs, the newest first: those that fits look
	// at (at most 64), and such of the last ones that say nothing, with why.
	Points []FitPoint `json:"points"`
	// Curve is the model on the GPU's table of clocks, by falling memory and core
	// clock, at most 1,024 points; empty without a model. LowerS and UpperS are the
	// interval of the run time; there is none of power and energy.
	Curve  []Point `json:"curve"`
	Clocks string  `json:"clocks_from"` // where the curve's clocks come from
}

// FitPoint is a run as a fit sees it.
type FitPoint struct {
	RunID string    `json:"run_id"`
	JobID int64     `json:"job_id"`
	Node  string    `json:"node"`
	Arm   live.Arm  `json:"arm"`
	Ended time.Time `json:"ended"`
	dvfsmodel.Setting
	TimeS   live.Number `json:"time_s"`
	PowerW  live.Number `json:"power_w"`
	EnergyJ live.Number `json:"energy_j"`
	Used    bool        `json:"used"`          // a fit now would take it
	Why     string      `json:"why,omitempty"` // why it wouldn't
	// Before tells that it ended before the model in use was made: that was fitted
	// to it, if Used.
	Before bool `json:"before"`
	// Within tells that its time lies in the interval of the model in use; Off is its
	// time over the predicted one, less 1. Unknown without a model.
	Within bool        `json:"within"`
	Off    live.Number `json:"off"`
	// Weight is what its clocks count in a fit of these points: below 1 where they
	// disagree with the others, as Outlier says.
	Weight  float64 `json:"weight"`
	Outlier string  `json:"outlier,omitempty"`
}

// Fit asks for the runs behind a workload's model.
func (c *Client) Fit(ctx context.Context, workload, gpuModel string) (*ModelFit, error) {
	return get[ModelFit](ctx, c, PathFit, url.Values{"workload": {workload}, "gpu_model": {gpuModel}})
}
