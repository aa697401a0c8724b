package record

import (
	"time"

	"github.com/epplan/epplan/live"
)

// JobDecision is a decision on a run with what is known of its job; empty where
// its job isn't in the records.
type JobDecision struct {
	Decision
	Name      []byte
	User      string
	Partition string
}

// RunEnergy is the time and the GPU energy of a run that ended.
type RunEnergy struct {
	Started, Ended time.Time
	Arm            live.Arm
	GPUJ           float64
	DefaultJ       live.Number // predicted at default clocks, of completed runs at chosen clocks
}

// RunDay are sums of the runs that ended on a day in a state, by arm.
type RunDay struct {
	Day         time.Time // its begin, UTC
	ExitState   string
	Arm         live.Arm
	Runs        int64   // on one node each
	TimeS       float64 // of all of them
	GPURuns     int64   // whose GPU energy is known
	GPUEnergyJ  float64 // of those
	NodeRuns    int64   // whose node energy is known
	NodeEnergyJ float64 // of those
}
