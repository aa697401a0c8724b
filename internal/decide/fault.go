package decide

import (
	"errors"

	"github.com/epplan/epplan/internal/jobs"
)

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
