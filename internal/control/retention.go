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

	// maxPruneAhead is how much further than the oldest record one go may reach: a clock
	// that is years ahead for an hour costs a week of the oldest ones, not all.
	maxPruneAhead = 7 * 24 * time.Hour
)

// pruneDaily removes old records every day until the context ends.
func (c *Controller) pruneDaily(ctx context.Context) {
	timer := time.NewTimer(pruneFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			c.decider.ForgetStale()
			timer.Reset(c.prune(ctx))
		}
	}
}

// prune removes the records of longer ago than the settings say, has those of a shorter time ago
// take less room, and gives what that freed back. It returns when to do it again.
func (c *Controller) prune(ctx context.Context) time.Duration {
	next := min(c.removeOld(ctx), c.compact(ctx))
	bound, cancel := context.WithTimeout(ctx, pruneBound)
	defer cancel()
	freed, err := c.options.Records.Runs.Shrink(bound)
	if err != nil && ctx.Err() == nil {
		c.options.Log.Warn("room of old records couldn't be given back; tried again later", "error", err)
		return min(next, pruneRetry)
	}
	if freed > 0 {
		c.options.Log.Info("room of old records given back", "bytes", freed)
	}
	return next
}

// reachOf is up to which time one go may reach where the oldest record is of some time, if what is older
// than some days is due, and when the next go is.
func (c *Controller) reachOf(oldest time.Time, days int) (before time.Time, next time.Duration) {
	before, next = c.options.Clock().AddDate(0, 0, -days), pruneEvery
	if reach := oldest.Add(maxPruneAhead); !oldest.IsZero() && reach.Before(before) {
		before, next = reach, pruneRetry
	}
	return before, next
}

// removeOld removes the records of longer ago than the settings say.
func (c *Controller) removeOld(ctx context.Context) time.Duration {
	days := c.settings.Load().KeepDays
	if days <= 0 {
		return pruneEvery
	}
	bound, cancel := context.WithTimeout(ctx, pruneBound)
	defer cancel()
	var n store.PruneResult
	oldest, err := c.options.Records.Runs.Oldest(bound)
	before, next := c.reachOf(oldest, days)
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

// compact has runs of longer ago than the settings say take less room.
func (c *Controller) compact(ctx context.Context) time.Duration {
	days := c.settings.Load().DetailDays
	if days <= 0 {
		return pruneEvery
	}
	bound, cancel := context.WithTimeout(ctx, pruneBound)
	defer cancel()
	var runs int64
	oldest, err := c.options.Records.Runs.OldestInDetail(bound)
	before, next := c.reachOf(oldest, days)
	if err == nil {
		runs, err = c.options.Records.Runs.Compact(bound, before)
	}
	switch {
	case ctx.Err() != nil: // closing
		return pruneRetry
	case err != nil:
		c.options.Log.Warn("old records couldn't all be compacted; tried again later", "error", err, "runs", runs)
		return pruneRetry
	case runs > 0:
		c.options.Log.Info("old records compacted", "older_than_days", days, "before", before, "runs", runs)
	}
	return next
}
