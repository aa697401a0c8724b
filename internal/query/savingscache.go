package query

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// cachedSavings is what was saved, as of a moment ago.
type cachedSavings struct {
	turn  sync.Mutex // held while savings are computed
	saved atomic.Pointer[savedAt]
}

// savedAt is what was saved at a time.
type savedAt struct {
	at time.Time
	of epdapi.Savings
}

// With very many workloads savings take some tenths of a second, so that overviews
// show them again.
const (
	savingsFor   = 15 * time.Second
	savingsStale = 5 * time.Minute // from then on they aren't shown again
	savingsTime  = 4 * time.Second
)

// get returns what was ever saved, with all that operators are told, as it was at most
// a moment ago. What is older is shown for some minutes while it is computed anew.
func (c *cachedSavings) get(ctx context.Context, s *Service) (epdapi.Savings, error) {
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
	return last.of, nil
}

// compute computes savings, unless somebody did meanwhile. The caller has the turn.
func (c *cachedSavings) compute(ctx context.Context, s *Service, now time.Time) (epdapi.Savings, error) {
	if last := c.saved.Load(); last != nil && !now.After(last.at) {
		return last.of, nil
	}
	fresh, err := s.Savings(ctx, Caller{Operator: true}, time.Time{}, time.Time{}) // others are shown it, too
	if err != nil {
		return epdapi.Savings{}, err
	}
	c.saved.Store(&savedAt{now, fresh})
	return fresh, nil
}
