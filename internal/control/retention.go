package control

import (
	"context"
	"time"

	"github.com/epplan/epplan/internal/store"
)

// When old records are removed.
const (
	pruneFirst = 10 * time.Minute // after the start, which has enough to do
	pruneEvery = 24 * time.Hour
	pruneRetry = time.Hour
	pruneBound = 5 * time.Minute // of one go; the next one goes on

	// pruneMost is how much further than the oldest record one go may reach: a clock
	// that is years ahead for an hour costs a week of the oldest ones, not all.
	pruneMost = 7 * 24 * time.Hour
)

// retain removes old records every day until the context ends.
func (c *Controller) retain(ctx context.Context) {
	timer := time.NewTimer(pruneFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			c.decider.Tidy()
			timer.Reset(c.prune(ctx))
		}
	}
}

// prune removes the records of longer ago than the settings say, and returns
// when to do it again.
func (c *Controller) prune(ctx context.Context) time.Duration {
	days := c.settings.Load().KeepDays
	if days <= 0 {
		return pruneEvery
	}
	bound, cancel := context.WithTimeout(ctx, pruneBound)
	defer cancel()
	before, next := c.options.Clock().AddDate(0, 0, -days), pruneEvery
	var n store.PruneResult
	oldest, err := c.options.Records.Runs.Oldest(bound)
	if reach := oldest.Add(pruneMost); !oldest.IsZero() && reach.Before(before) {
		before, next = reach, pruneRetry
	}
	if err == nil {
		n, err = c.options.Records.Runs.Prune(bound, before)
	}
	switch {
	case ctx.Err() != nil: // closing
		return pruneRetry
	case err != nil:
		c.options.Log.Warn("old records couldn't all be removed; tried again later", "error", err,
			"outcomes", n.Outcomes)
		return pruneRetry
	case n.Outcomes+n.Decisions+n.Jobs+n.Conflicts+n.History > 0:
		c.options.Log.Info("old records removed", "older_than_days", days, "before", before,
			"outcomes", n.Outcomes,
			"decisions", n.Decisions, "jobs", n.Jobs, "conflicts", n.Conflicts, "history", n.History)
	}
	return next
}
