package storetest_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

func TestACrowdIsJobsWithDecisionsAndOutcomes(t *testing.T) {
	path, until := filepath.Join(t.TempDir(), "records.db"), time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	storetest.Crowd(t, path, 400, until)
	s, err := store.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	page, err := s.JobRows(t.Context(), &store.JobFilter{Cluster: "alpha"}, 0, 1000)
	if err != nil || len(page.Jobs) != 400 {
		t.Fatalf("%d jobs, error %v", len(page.Jobs), err)
	}
	failed := 0
	for i := range page.Jobs {
		if j := &page.Jobs[i]; j.Runs != 1 || j.Mode != "enforce" {
			t.Errorf("job %d has %d runs, mode %q", j.ID, j.Runs, j.Mode)
		} else if j.Shown == "FAILED" {
			failed++
		}
	}
	if last := page.Jobs[0]; last.ID != 400 || !last.Submitted.Equal(until) || failed != 8 {
		t.Errorf("the last job is %d of %s; %d failed", last.ID, last.Submitted, failed)
	}
	if sums, err := s.RunDays(t.Context(), "alpha", until.AddDate(0, 0, -10)); err != nil || len(sums) == 0 {
		t.Errorf("%d sums, error %v", len(sums), err)
	}
}
