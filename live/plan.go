package live

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Plan is what is planned for the jobs that wait in Slurm's queue.
type Plan struct {
	Policy string    `json:"policy"`
	At     time.Time `json:"at"`    // from which its times count
	Until  time.Time `json:"until"` // it says nothing any more then
	// Jobs are tasks in the order of their starts.
	Jobs    []PlannedJob `json:"jobs"`
	Without int          `json:"without"`  // tasks of the queue that have no place in it
	EnergyJ float64      `json:"energy_j"` // of the GPUs of all its tasks
	TookS   float64      `json:"took_s"`   // to make it
	// OrderOnly says that nothing of it is meant but the order.
	OrderOnly bool `json:"order_only,omitempty"`
	// Stale says why it counts no more; empty: it does.
	Stale string `json:"stale,omitempty"`
	// Trouble is why there is no newer one; empty: it could be made.
	Trouble string `json:"trouble,omitempty"`
	// Record is how starts and runs have kept to plans since epd began, and Recent the last starts, the
	// newest last.
	Record PlanRecord  `json:"record"`
	Recent []PlanStart `json:"recent"`
	// Listed is when Slurm listed the queue that it was made of: jobs that came since aren't in it.
	Listed time.Time `json:"-"`
	// NextEnd is when the first of the jobs that run is expected to end; zero: none runs.
	NextEnd time.Time `json:"-"`
	// CountsDeadlines tells that jobs with a deadline are planned to meet it where they can, before others.
	CountsDeadlines bool `json:"-"`
	// Needs are the nodes that run nothing at the plan's time and get a task, the first first.
	Needs []NodeNeed `json:"-"`
}

// NodeNeed is a node that runs nothing, and when a plan has a task on it.
type NodeNeed struct {
	GPUModel   string
	GPUs       int
	Partitions []string // that it is in, in order; nil: they aren't known
	At         time.Time
}

// PlannedJob is what a plan has for a job that waits, or for a task of an array.
type PlannedJob struct {
	Job       uint32    `json:"job_id"` // of tasks of an array that of the record that waits
	Task      string    `json:"task"`   // the job as people name it, such as 12_3
	User      string    `json:"user"`
	Partition string    `json:"partition"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	NodeClass string    `json:"node_class"`
	GPUModel  string    `json:"gpu_model"`
	GPUs      int       `json:"gpus"`
	// The clocks; 0: the default ones.
	dvfsmodel.Setting
	TimeS   float64 `json:"time_s"`
	EnergyJ float64 `json:"energy_j"` // of its GPUs
	HeldOut bool    `json:"held_out"` // drawn at random to run as without a plan
	Reason  string  `json:"reason"`
}

// PlanKept is how the start of a job kept to the plan.
type PlanKept string

// What became of a planned start.
const (
	KeptAsPlanned PlanKept = "as_planned" // within two minutes or a tenth of its time, on the planned GPU model
	KeptEarlier   PlanKept = "earlier"    // Slurm found room before
	KeptLater     PlanKept = "later"      // Slurm let it wait though plans had it start
	KeptElsewhere PlanKept = "elsewhere"  // on another GPU model
	KeptHeldOut   PlanKept = "held_out"   // drawn at random to run as without a plan
	KeptUnknown   PlanKept = "unknown"    // the plan didn't know the job yet
	KeptNoPlace   PlanKept = "no_place"   // it couldn't be planned, or was beyond the window
	KeptStale     PlanKept = "stale"      // the plan counted no more
)

// PlanRecord counts how starts and runs kept to plans.
type PlanRecord struct {
	Made   int64              `json:"made"`   // plans
	Failed int64              `json:"failed"` // plans that couldn't be made
	Starts map[PlanKept]int64 `json:"starts"` // jobs that started, by how they kept to the plan
	// Runs at a plan's clocks that ended and were measured: what their GPUs were to take, and
	// took; and those that took over a tenth longer than planned.
	Ended     int64   `json:"ended"`
	PlannedJ  float64 `json:"planned_j"`
	MeasuredJ float64 `json:"measured_j"`
	Longer    int64   `json:"longer"`
	// NotLocked are runs that ended and didn't have the plan's clocks, or not to their end: they are in none of
	// these.
	NotLocked int64 `json:"not_locked,omitempty"`
}

// KeptShare returns the part of the starts that were as planned, of those that could be; unknown:
// there are none.
func (r *PlanRecord) KeptShare() Number {
	all := int64(0)
	for how, n := range r.Starts {
		if how != KeptHeldOut {
			all += n
		}
	}
	if all == 0 {
		return Number{}
	}
	return Known(float64(r.Starts[KeptAsPlanned]) / float64(all))
}

// PlanStart is a job that started, beside what was planned for it.
type PlanStart struct {
	Job      uint32      `json:"job_id"`
	User     string      `json:"user"`
	At       time.Time   `json:"at"`
	GPUModel string      `json:"gpu_model"`
	How      PlanKept    `json:"how"`
	Planned  *PlannedJob `json:"planned"` // null: nothing was
}
