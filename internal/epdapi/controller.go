package epdapi

import (
	"time"

	"github.com/epplan/epplan/config"
)

// ControllerStatus is how a controller fares. Counts are since its start.
type ControllerStatus struct {
	Cluster        string                 `json:"cluster"`
	Started        time.Time              `json:"started"`
	ConfigVersion  string                 `json:"config_version"`
	Mode           config.Mode            `json:"mode"`
	Modes          map[string]config.Mode `json:"modes,omitempty"` // by partition
	HoldOut        float64                `json:"hold_out"`
	Jobs           int                    `json:"jobs"`    // that are known
	Tokens         int                    `json:"tokens"`  // of submissions
	Decided        int                    `json:"decided"` // of runs that didn't end yet
	Models         int                    `json:"models"`  // in use
	Submissions    int64                  `json:"submissions"`
	Decisions      int64                  `json:"decisions"`
	Applied        int64                  `json:"applied"`
	HeldOut        int64                  `json:"held_out"`
	BadRequests    int64                  `json:"bad_requests"`
	Outcomes       int64                  `json:"outcomes"`
	OutcomeErrors  int64                  `json:"outcome_errors"`
	Refits         int64                  `json:"refits"`
	Retired        int64                  `json:"models_retired"` // their predictions missed
	Unwritten      int64                  `json:"unwritten"`      // records that wait for the store
	Lost           int64                  `json:"lost"`           // records that the store refused or that had no room
	Trouble        string                 `json:"trouble,omitempty"`
	SlowestDecideS float64                `json:"slowest_decide_s"`
	Forecasts      *ForecastStatus        `json:"forecasts,omitempty"`
	Queue          SyncStatus             `json:"queue"` // Slurm's jobs
	Nodes          SyncStatus             `json:"nodes"`
}

// SyncStatus is how a controller keeps up with Slurm.
type SyncStatus struct {
	At       time.Time `json:"at,omitzero"` // of the last answer; absent: there was none
	Failures int       `json:"failures"`    // since then
	Trouble  string    `json:"trouble,omitempty"`
}
