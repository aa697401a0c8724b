package live

import "time"

// Outlook is what is known by now of a run that lasts, or has just ended. What isn't
// known leaves what was known before.
type Outlook struct {
	Life Life `json:"life"`
	// How long it may last from its begin, by time limit and deadlines: null where none is known.
	Limit  Limit  `json:"limit_s"`
	UpperS Number `json:"upper_s"` // the run takes at most so long at its clocks, by the model in use now
	// Ended is when a run ended, by Slurm's clock, to the second: it is alive until its
	// job's Epilogs are done. Not where Slurm has forgotten its job.
	Ended time.Time `json:"ended,omitzero"`
}

// Life reports whether a run still lasts.
type Life string

// A run is gone when its job ended, with all Epilogs, or was queued anew.
// Unknown is also what Slurm can't be asked about, and what an [Outlook] says that
// doesn't say it. What isn't known is never acted upon.
const (
	LifeAlive   Life = "alive"
	LifeGone    Life = "gone"
	LifeUnknown Life = "unknown"
)
