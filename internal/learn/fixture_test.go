package learn

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

// start is when everything in the tests happens.
var start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// base are a V100's default clocks.
var base = dvfsmodel.Setting{Core: 1380, Mem: 877}

// clocks are the core clocks of a V100, the highest first.
var clocks = []dvfsmodel.MHz{1380, 1237, 1087, 945, 802}

// memoryBound returns a workload that low core clocks hardly slow down.
func memoryBound() dvfsmodel.Params {
	return dvfsmodel.Params{P0: 60, Gamma: 20, C: 150, D: 500, Delta: 0.15, T0: 100}
}

// keyOf returns a workload on a V100.
func keyOf(workload string) record.WorkloadKey {
	return record.WorkloadKey{Cluster: "alpha", Workload: workload, GPUModel: "V100"}
}

// optionsOf returns those of a learner of V100s with such records.
func optionsOf(records Records) Options {
	return Options{
		Records: records, Cluster: "alpha", Settings: func() Settings { return Settings{TimeMargin: 0.1} },
		GPU:   func(string) GPU { return GPU{Default: base} },
		Clock: func() time.Time { return start }, Log: slog.New(slog.DiscardHandler),
	}
}

// onStore returns a learner on a real store, which nothing runs beside.
func onStore(t *testing.T) (*Learner, *store.Store) {
	t.Helper()
	storetest.NeedSQLite(t)
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "epd.db"),
		&store.Options{Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(optionsOf(s.Learning)), s
}
