package storetest_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

func TestACrowdIsJobsWithDecisionsAndOutcomes(t *testing.T) {
	storetest.NeedSQLite(t)
	path, until := filepath.Join(t.TempDir(), "records.db"), time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	s, err := store.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	storetest.Crowd(t, path, 400, until)
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
	before := strata(t, s)
	if _, err := s.Prune(t.Context(), until.AddDate(0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	after := strata(t, s)
	before = slices.DeleteFunc(before, func(st record.Stratum) bool { return st.GPU.Runs == 0 })
	for i := range before { // of pruned jobs only what completed ones came to is kept
		before[i].Endings = record.EndingCounts{}
	}
	if len(before) == 0 || !reflect.DeepEqual(before, after) {
		t.Errorf("the sums are %+v, a store makes %+v", before, after)
	}
}

// strata returns the mean energies and times of a crowd, from its sums.
func strata(t *testing.T, s *store.Store) []record.Stratum {
	t.Helper()
	all, err := s.Strata(t.Context(), "alpha", time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
