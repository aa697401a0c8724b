package control

import (
	"errors"
	"time"

	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/live"
)

// Observed is a decision as measurements see it.
type Observed struct {
	Took  time.Duration
	Mode  live.Mode
	Arm   live.Arm
	Apply bool
	Again bool // the run had a decision already
	Fault Fault
}

// Fault is what was wrong about a decision, of which the answer was made the
// best.
type Fault string

// Faults of decisions; the first one counts.
const (
	NoFault      Fault = ""
	FaultRequest Fault = "bad_request"
	FaultUnknown Fault = "unknown_job" // Slurm can't be asked about the job, or doesn't know it
	FaultSlurm   Fault = "slurm"       // what is known of the job is old: Slurm doesn't answer
	FaultRecords Fault = "records"     // they can't be read or written
)

// faultOfDoubt is the fault behind a doubt about a job.
func faultOfDoubt(doubt error) Fault {
	switch {
	case doubt == nil:
		return NoFault
	case errors.Is(doubt, jobs.ErrUnknown):
		return FaultUnknown
	case errors.Is(doubt, jobs.ErrRecords):
		return FaultRecords
	}
	return FaultSlurm
}

// observed tells whoever measures.
func (c *Controller) observed(o Observed) {
	if c.options.OnDecide != nil {
		c.options.OnDecide(o)
	}
}
