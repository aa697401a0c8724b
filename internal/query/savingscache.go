package query

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/savings"
)

// cachedSavings is what was saved, as of a moment ago.
type cachedSavings struct {
	turn  sync.Mutex // held while savings are computed
	saved atomic.Pointer[savedAt]
}

// savedAt is what was saved at a time, by month also in that and the one before, and the hours before it.
type savedAt struct {
	at     time.Time
	of     epdapi.Savings
	months map[time.Time]*epdapi.GroupSaving
	hours  []epdapi.HourPower
}

// With very many workloads savings take some tenths of a second, so that overviews
// show them again.
const (
	savingsFor   = 15 * time.Second
	savingsStale = time.Minute // from then on they aren't shown again
	savingsTime  = 4 * time.Second
)

// get returns what was ever saved, with all that operators are told, as it was at most
// a moment ago. What is older is shown for some minutes while it is computed anew.
func (c *cachedSavings) get(ctx context.Context, s *Service) (*savedAt, error) {
	last, now := c.saved.Load(), s.options.Clock()
	if last == nil || now.Sub(last.at) > savingsStale {
		c.turn.Lock()
		defer c.turn.Unlock()
		return c.compute(ctx, s, now)
	}
	if now.Sub(last.at) > savingsFor && c.turn.TryLock() {
		go func() {
			defer c.turn.Unlock()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), savingsTime)
			defer cancel()
			_, _ = c.compute(ctx, s, now) // the next one who asks tries again
		}()
	}
	return last, nil
}

// compute computes savings, unless somebody did meanwhile. The caller has the turn.
func (c *cachedSavings) compute(ctx context.Context, s *Service, now time.Time) (*savedAt, error) {
	if last := c.saved.Load(); last != nil && !now.After(last.at) {
		return last, nil
	}
	fresh, err := s.Savings(ctx, Caller{Operator: true}, time.Time{}, time.Time{}) // others are shown it, too
	if err != nil {
		return nil, err
	}
	hours, err := powerByHour(ctx, s.options, now)
	if err != nil {
		return nil, err
	}
	months := make(map[time.Time]*epdapi.GroupSaving)
	for _, month := range []time.Time{monthOf(now), monthOf(now).AddDate(0, -1, 0)} {
		strata, err := s.options.Records.Sums.Strata(ctx, s.options.Cluster, month, month.AddDate(0, 1, 0))
		if err != nil {
			return nil, err
		}
		months[month] = groupSaving(strata, s.options.Settings())
	}
	c.saved.Store(&savedAt{now, fresh, months, hours})
	return c.saved.Load(), nil
}

// powerByHour returns the power of jobs over the last hours, the one that has begun included.
func powerByHour(ctx context.Context, o *Options, now time.Time) ([]epdapi.HourPower, error) {
	from := now.Truncate(time.Hour).Add((1 - epdapi.OverviewHours) * time.Hour)
	runs, err := o.Records.Ended.RunEnergies(ctx, o.Cluster, from)
	if err != nil {
		return nil, err
	}
	hours := make([]epdapi.HourPower, epdapi.OverviewHours)
	for i, slot := range savings.Slots(runs, from, time.Hour, len(hours)) {
		h := &hours[i]
		h.From = from.Add(time.Duration(i) * time.Hour)
		seconds := min(time.Hour, max(time.Minute, now.Sub(h.From))).Seconds()
		h.UsedW, h.DefaultW, h.HeldOutW = slot.Used/seconds, slot.Default/seconds, slot.HeldOut/seconds
	}
	return hours, nil
}
