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
	NoFault        Fault = ""
	FaultRequest   Fault = "bad_request"
	FaultUnknown   Fault = "unknown_job" // Slurm can't be asked about the job, or doesn't know it
	FaultElsewhere Fault = "elsewhere"   // Slurm doesn't have the job on the node that asks
	FaultSlurm     Fault = "slurm"       // what is known of the job is old: Slurm doesn't answer
	FaultRecords   Fault = "records"     // they can't be read or written
)

// faultOf returns the fault behind the error that says why what is known of a job isn't fresh.
func faultOf(staleErr error) Fault {
	switch {
	case staleErr == nil:
		return NoFault
	case errors.Is(staleErr, jobs.ErrUnknown):
		return FaultUnknown
	case errors.Is(staleErr, jobs.ErrRecords):
		return FaultRecords
	}
	return FaultSlurm
}
