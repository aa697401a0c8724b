package record

import (
	"time"

	"github.com/epplan/epplan/live"
)

// EndedJob is a job that ended, on all its nodes, with what was predicted when it was
// submitted.
type EndedJob struct {
	Job
	Ended     time.Time
	TimeS     live.Number // of its longest run
	EnergyJ   live.Number // of all its GPUs; unknown where that of a node isn't known
	Completed bool        // on all nodes
	Runs      int         // one on each node

	// Rung is what the predictions rest on; "": there are none.
	Rung                                    string
	PredictedS, PredictedPowerW, PredictedJ Interval
}
