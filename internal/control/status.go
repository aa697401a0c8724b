package control

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/config"
)

// counters count since the start.
type counters struct {
	submissions, badRequests atomic.Int64
	decisions, applied       atomic.Int64
	heldOut                  atomic.Int64
	outcomes, outcomeErrors  atomic.Int64
	refits, retired          atomic.Int64
	slowestDecide            atomic.Int64 // nanoseconds
}

func (c *counters) decided(d *Decision) {
	c.decisions.Add(1)
	if d.Apply {
		c.applied.Add(1)
	}
	if d.HoldOut {
		c.heldOut.Add(1)
	}
}

func (c *counters) decideTook(t time.Duration) {
	for {
		slowest := c.slowestDecide.Load()
		if int64(t) <= slowest || c.slowestDecide.CompareAndSwap(slowest, int64(t)) {
			return
		}
	}
}

// Status is how a controller fares. Counts are since its start.
type Status struct {
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
}

// Status is how the controller fares now. It asks nobody, and so always answers.
func (c *Controller) Status(context.Context) Status {
	s := c.settings.Load()
	n := &c.counters
	status := Status{
		Cluster: c.options.Cluster, Started: c.started, ConfigVersion: s.Version,
		Mode: s.Live.Mode, Modes: s.Live.Modes, HoldOut: s.Live.HoldOut, Models: c.models.inUse(),
		Submissions: n.submissions.Load(), Decisions: n.decisions.Load(), Applied: n.applied.Load(),
		HeldOut: n.heldOut.Load(), BadRequests: n.badRequests.Load(), Outcomes: n.outcomes.Load(),
		OutcomeErrors: n.outcomeErrors.Load(), Refits: n.refits.Load(), Retired: n.retired.Load(),
		Unwritten: c.writer.waiting.Load(), Lost: c.writer.lost.Load(),
		SlowestDecideS: math.Round(float64(n.slowestDecide.Load())/1e3) / 1e6,
	}
	status.Jobs, status.Tokens = c.jobs.len()
	c.mu.Lock()
	status.Decided = len(c.decided)
	c.mu.Unlock()
	if err := c.writer.trouble(c.options.StoreWait); err != nil {
		status.Trouble = err.Error()
	}
	return status
}
