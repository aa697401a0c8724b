package control

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/configfiles"
	"github.com/epplan/epplan/internal/pause"
)

// fileStamp tells whether a file is the one that was read.
type fileStamp struct {
	size    int64
	changed time.Time
}

// stampsOf returns the stamps of the files with factors and budgets over time, by their paths; one that isn't
// there has none.
func stampsOf(c *config.Config) map[string]fileStamp {
	stamps := make(map[string]fileStamp)
	for _, path := range []string{c.FactorSeriesFile(), c.BudgetSeriesFile()} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			stamps[path] = fileStamp{info.Size(), info.ModTime()}
		}
	}
	return stamps
}

// seriesEvery is how often the files with factors and budgets over time are looked at.
const seriesEvery = time.Minute

// reloadSeries has factors and budgets over time count as their files are now: whoever writes the prices of
// the next day there needs no reload. A file that can't be read changes nothing, and is said.
func reloadSeries(ctx context.Context, inForce *atomic.Pointer[Settings], log *slog.Logger) {
	var wrong map[string]fileStamp
	for pause.For(ctx, seriesEvery) == nil {
		before := inForce.Load()
		if before.source == nil {
			continue
		}
		stamps := stampsOf(before.source)
		if maps.Equal(stamps, before.stamps) || maps.Equal(stamps, wrong) {
			continue
		}
		files, err := configfiles.Read(before.source)
		if err != nil {
			wrong = stamps
			log.Warn("a file with values over time isn't read again: what was read before counts", "error", err)
			continue
		}
		wrong = nil
		after := *before
		after.useSeries(files, stamps)
		if inForce.CompareAndSwap(before, &after) { // else the configuration was read again meanwhile
			log.Info("values over time were read again, as a file of them has changed")
		}
	}
}

// seriesEnded returns what is to be said of factors over time that are over; nil: they aren't.
func (s *Settings) seriesEnded(now time.Time) error {
	if s.series == nil || s.series.End().After(now) {
		return nil
	}
	return fmt.Errorf("factors.series ended %s: constant factors count since then, and from a day later on no "+
		"job waits for an hour", s.series.End().UTC().Format(time.RFC3339))
}
