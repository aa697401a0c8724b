package live

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Decision is what a job's GPUs on a node are to do, and why.
type Decision struct {
	ID    string `json:"decision_id"`
	Job   uint32 `json:"job_id"`
	Node  string `json:"node"`
	Mode  Mode   `json:"mode"`
	Apply bool   `json:"apply"` // lock the clocks; else leave the GPUs alone
	dvfsmodel.Setting
	// SiteClocks are the highest at which the site lets the GPUs run, where it holds them below what they could:
	// they are the default clocks then.
	SiteClocks dvfsmodel.Setting `json:"site_clocks,omitzero"`
	Predicted  Number            `json:"predicted_s"`
	Upper      Number            `json:"upper_s"`          // the run takes at most so long, by prediction
	PowerW     Number            `json:"power_w"`          // of one GPU
	EnergyJ    Number            `json:"energy_j"`         // of the job's GPUs on this node
	DefaultJ   Number            `json:"default_energy_j"` // the same at default clocks
	// Wall time: seconds, "unlimited", or null where none is known.
	Limit         Limit     `json:"limit_s"`
	Reason        string    `json:"reason"`
	Workload      string    `json:"workload"`
	GPUModel      string    `json:"gpu_model"`
	ModelVersion  int64     `json:"model_version"` // 0 without a model
	ConfigVersion string    `json:"config_version"`
	HoldOut       bool      `json:"hold_out"`
	Arm           Arm       `json:"arm"`
	Wish          Wish      `json:"wish"`
	Created       time.Time `json:"created"`
	// Adapt is how the core clock is stepped while the run lasts, beginning with
	// Core; nil: not at all. Upper is then a bound at all of its levels.
	Adapt *Adaptation `json:"adapt,omitempty"`
	// Shared tells that Slurm may give the job's GPUs to others at the same time.
	Shared bool `json:"shared,omitempty"`
}

// Mode is what epd does to the jobs of a partition.
type Mode string

// Modes, in the order in which an administrator goes through them.
const (
	Observe Mode = "observe" // touch nothing
	Advise  Mode = "advise"  // say what would be done
	Enforce Mode = "enforce" // set clocks
)

// Arm says in which group of the comparison a run is.
type Arm string

// A run is treated, held out at default clocks at random, at the constant clocks of its
// GPU model by the same lot, or in no group because its owner fixed the clocks or
// opted out, or nothing was enforced.
const (
	ArmTreated  Arm = "treated"
	ArmHeldOut  Arm = "held-out"
	ArmConstant Arm = "constant"
	ArmExcluded Arm = "excluded"
)
