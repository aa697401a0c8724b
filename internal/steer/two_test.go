package steer_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/slurm"
)

// Two controllers with state folders of their own steer one queue by mistake, in orders that contradict each
// other. A value is whose who sets it first: nothing is set back and forth, and once both have taken theirs
// back every job has its user's.
func TestTwoControllersOfOneQueueDontSetTheSameBackAndForth(t *testing.T) {
	w := newWorld()
	for id := range slurm.JobID(12) {
		comment := ""
		if id%3 == 0 {
			comment = deadline(time.Duration(id+2) * time.Hour)
		}
		w.job(id+1, 10+uint32(id%3), 1000-10*int64(id), comment)
	}
	w.setNice(1, 7)
	first := w.open(t)
	w.disk = spooltest.New()
	if err := w.disk.MakeDir("levers"); err != nil {
		t.Fatal(err)
	}
	w.settings.Live.Reorder = config.ReorderAll
	w.rankAs("value", 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
	w.settings.Ranking.Until = w.now.Add(24 * time.Hour)
	others := w.settings
	w.settings.Live.Reorder, w.settings.Ranking = config.ReorderOwn, nil
	second, err := steer.Open(&steer.Options{
		Source: w.snapshot, Levers: w, PowerSaving: w.PowerSaving, Dir: "levers", Disk: w.disk, MaxChanges: 1000,
		Booted:           func(context.Context) (time.Time, error) { return w.booted, nil },
		DefaultPartition: func(context.Context) (string, error) { return "gpu", nil },
		Settings:         func() *steer.Settings { return &others }, Clock: func() time.Time { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	was, settled, changed := w.nices(), 0, 0
	for round := range 40 {
		if round == 20 {
			w.job(77, 10, 500, deadline(5*time.Hour))
			w.job(78, 10, 1500, "")
		}
		before := w.calls
		step(t, first)
		step(t, second)
		if w.calls > before {
			settled, changed = round, changed+1
		}
	}
	if changed == 0 || changed > 6 || settled > 25 {
		t.Errorf("%d rounds changed something, the last one the %dth", changed, settled)
	}
	for _, s := range []*steer.Steerer{first, second} {
		if _, err := s.UndoAll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	was[77], was[78] = 0, 0
	if got := w.nices(); !maps.Equal(got, was) {
		t.Errorf("nices %v, of their users %v", got, was)
	}
}
