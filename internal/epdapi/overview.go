package epdapi

import (
	"context"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Paths of what a page shows of a cluster.
const (
	PathOverview  = "/v1/overview"
	PathDecisions = "/v1/decisions"
)

// OverviewDays is how many days an [Overview] tells of, today among them.
const OverviewDays = 30

// Overview is a cluster at a glance. Counts and energies are of everybody; jobs
// and decisions those that the caller may see.
type Overview struct {
	At     time.Time        `json:"at"`
	Status ControllerStatus `json:"status"`
	Power  ClusterPower     `json:"power"`
	Queue  QueueCounts      `json:"queue"`
	Days   []Day            `json:"days"`   // one for each of the last days in UTC, oldest first
	States []StateCount     `json:"states"` // how runs of these days ended, the most first
	// Months are the sums of this month so far and of the last one, in UTC.
	Months []Day `json:"months"`
	// Hours are the last 48 hours, oldest first; as old as Savings, and without the runs that haven't ended.
	Hours []HourPower `json:"hours"`
	// Savings are all that were ever made, as they were a moment before: mostly some
	// seconds, and at most a minute.
	Savings Savings `json:"savings"`
	// Decisions are the latest on runs; in advise mode what would have been done.
	Decisions []JobDecision `json:"decisions"`
	Jobs      []JobRow      `json:"jobs"` // the latest
}

// QueueCounts are the GPU jobs that Slurm had when it was last asked.
type QueueCounts struct {
	At      time.Time      `json:"at,omitzero"` // absent: Slurm didn't say yet
	Pending int            `json:"pending"`     // each task of an array is one
	Running int            `json:"running"`
	Other   int            `json:"other"`  // suspended, completing and the like
	States  map[string]int `json:"states"` // of Slurm's
}

// Day is what ended on a day, or in a month. A run is a job on one node.
type Day struct {
	Day        time.Time `json:"day"` // its begin, UTC
	Runs       int64     `json:"runs"`
	Completed  int64     `json:"completed"`
	Treated    int64     `json:"treated"`
	HeldOut    int64     `json:"held_out"`
	Constant   int64     `json:"constant,omitempty"`
	Measured   int64     `json:"measured"`     // runs whose GPU energy is known
	GPUEnergyJ float64   `json:"gpu_energy_j"` // of those
	NodeJ      float64   `json:"node_energy_j"`
	NodeRuns   int64     `json:"node_measured"` // runs whose node energy is known, modelled or not
	TimeS      float64   `json:"time_s"`        // of all runs together
	// Saved is what a month's jobs saved, as old as Savings; absent: a day, or none was in the experiment.
	Saved *GroupSaving `json:"saved,omitempty"`
}

// OverviewHours is how many hours an [Overview] tells of.
const OverviewHours = 48

// HourPower is the mean GPU power of jobs in an hour, from the energies of the runs that ended since, each
// spread evenly over its run time.
type HourPower struct {
	From     time.Time `json:"from"`
	UsedW    float64   `json:"used_w"`
	DefaultW float64   `json:"default_w"`  // at default clocks, by the models where a run has a prediction
	HeldOutW float64   `json:"held_out_w"` // of held-out runs, part of used_w
}

// StateCount is how many runs ended in a state; empty: nobody knows how.
type StateCount struct {
	State string `json:"state"`
	Runs  int64  `json:"runs"`
}

// JobDecision is a decision on a run with its job's name.
type JobDecision struct {
	record.Decision
	Name      string `json:"name"` // of the job; empty: it isn't in the records
	User      string `json:"user"`
	Partition string `json:"partition"`
	Apply     bool   `json:"apply"` // clocks were set; in advise mode and of held-out runs they weren't
	// Would is what was thought of these clocks: predicted energy less than at
	// default clocks, all GPUs; unknown without a model.
	Would live.Number `json:"saves_j"`
}

// DecisionList are decisions on runs, the latest first.
type DecisionList struct {
	Decisions []JobDecision `json:"decisions"`
	Next      int64         `json:"next"` // what to pass as before for the next page; 0: this is the last
}

// Overview asks for a cluster at a glance.
func (c *Client) Overview(ctx context.Context) (*Overview, error) {
	return get[Overview](ctx, c, PathOverview, nil)
}
