package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
)

// start is when everything in the tests begins.
var start = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)

// openNew opens a new database and closes it after the test.
func openNew(tb testing.TB) (*store.Store, string) {
	tb.Helper()
	path := filepath.Join(tempDir(tb), "epd ?#%.db") // a path that a DSN must quote
	return open(tb, path, nil), path
}

// tempDir returns a folder for a database, in memory where there is such a place: most
// tests need no disk, and syncing one takes most of their time.
func tempDir(tb testing.TB) string {
	tb.Helper()
	storetest.NeedSQLite(tb)
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "epplan-store") //nolint:usetesting // TempDir is on disk
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// open opens a database and closes it after the test.
func open(tb testing.TB, path string, options *store.Options) *store.Store {
	tb.Helper()
	storetest.NeedSQLite(tb)
	if options == nil {
		options = &store.Options{Now: func() time.Time { return start }}
	}
	s, err := store.Open(tb.Context(), path, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// outcome returns the outcome of run i, with all that an outcome can have.
func outcome(i int) *record.Outcome {
	series := record.NewSeriesSampler(time.Minute)
	for minute := range 20 {
		series.Add(time.Duration(minute)*time.Minute, time.Duration(minute+1)*time.Minute,
			float64((i+minute)%10)/10)
	}
	begin := start.Add(time.Duration(i) * time.Minute)
	return &record.Outcome{
		Cluster: "alpha", RunID: fmt.Sprintf("run-%06d", i), JobID: int64(1000 + i), Node: "n1",
		Restart:  i % 2,
		Workload: fmt.Sprintf("w%d", i%3), GPUModel: "V100", Arm: live.ArmTreated,
		Submitted: begin.Truncate(time.Second), Started: begin, Ended: begin.Add(20 * time.Minute),
		GPUs: []string{"GPU-a", "GPU-b"}, ExitState: record.Completed,
		Setting: dvfsmodel.Setting{Core: 1200, Mem: 877}, TimeS: live.Known(1200),
		GPUEnergyJ: live.Known(1e5 + float64(i)), GPUSource: record.Counter,
		NodeEnergyJ: live.Known(2e5 + float64(i)), NodeSource: record.Modelled,
		MeanPowerW: live.Known(83.5), PeakPowerW: live.Known(120), Utilisation: live.Known(0.7),
		Clocks: []live.Residency{{Setting: dvfsmodel.Setting{Core: 1200, Mem: 877}, Seconds: 1190}},
		Details: record.Details{
			Slowdown: live.Known(1.05), CapW: live.Known(180), OtherCapsS: live.Known(3),
		},
		ThrottledS: map[string]float64{"power_cap": 12.5}, Course: record.Course{Series: series.Series()},
	}
}

// stays returns those of a run whose clock was adapted.
func stays() []dvfsmodel.ClockResidency {
	return []dvfsmodel.ClockResidency{
		{Core: 1380, Seconds: 200, Work: 180.5, Energy: 30_000, Begun: 3},
		{Core: 600, Seconds: 1000, Work: 10, Energy: 40_000, Rest: 900, RestEnergy: 36_000, Begun: 2},
	}
}

// restarted returns what is known of a run that epd was restarted under.
func restarted() record.Restarted {
	return record.Restarted{TimeS: live.Known(100), GPUEnergyJ: live.Known(20_000)}
}

// put stores an outcome and wants a receipt.
func put(tb testing.TB, s *store.Store, o *record.Outcome, want store.Receipt) {
	tb.Helper()
	got, err := s.PutOutcome(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	if got != want {
		tb.Fatalf("outcome of run %s was %s, not %s", o.RunID, got, want)
	}
}

// workload returns the key of outcome i's workload.
func workload(i int) record.WorkloadKey {
	return record.WorkloadKey{Cluster: "alpha", Workload: fmt.Sprintf("w%d", i%3), GPUModel: "V100"}
}

// lastJob returns the job that was submitted last under an id.
func lastJob(tb testing.TB, s *store.Store, id int64) record.Job {
	tb.Helper()
	page, err := s.Jobs(tb.Context(), &store.JobFilter{Cluster: "alpha", ID: id}, 0, 1)
	if err != nil || len(page.Jobs) != 1 {
		tb.Fatalf("%d jobs, %v", len(page.Jobs), err)
	}
	return page.Jobs[0]
}
