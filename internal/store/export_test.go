package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
)

// exported returns a table as lines of JSON.
func exported(tb testing.TB, s *store.Store, table string) []string {
	tb.Helper()
	var text strings.Builder
	if err := s.Export(tb.Context(), &text, table); err != nil {
		tb.Fatal(err)
	}
	lines := strings.SplitAfter(text.String(), "\n")
	return lines[:len(lines)-1]
}

func TestEveryTableIsExportedAsJSONLines(t *testing.T) {
	s, path := openNew(t)
	fill(t, s)
	if n, err := s.Compact(t.Context(), start.Add(time.Hour)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	detailed := outcome(3)
	detailed.Profile = profile()
	put(t, s, detailed, store.Stored)
	want := tableNames(t, path)
	got := map[string]bool{}
	for _, table := range store.Tables() {
		got[table] = true
		lines := exported(t, s, table)
		if len(lines) == 0 {
			t.Errorf("table %s is empty", table)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("table %s: not JSON: %s", table, line)
			}
		}
	}
	for _, table := range want {
		if !got[table] {
			t.Errorf("table %s can't be exported", table)
		}
	}
	if err := s.Export(t.Context(), nil, "sqlite_schema"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown table: %v", err)
	}
}

func TestAnExportedCourseCanBeRead(t *testing.T) {
	s, _ := openNew(t)
	put(t, s, outcome(0), store.Stored)
	if n, err := s.Compact(t.Context(), start.Add(time.Hour)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	const want = `"course":{"clocks":[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}],"throttled_s":{"power_cap":12.5}}`
	if line := exported(t, s, "old_runs")[0]; !strings.Contains(line, want) {
		t.Errorf("no %s in %s", want, line)
	}
}

func TestAnExportedSeriesCanBeRead(t *testing.T) {
	s, _ := openNew(t)
	put(t, s, outcome(0), store.Stored)
	line := exported(t, s, "outcome_details")[0]
	for _, want := range []string{
		`"gpus":["GPU-a","GPU-b"]`, `"throttled_s":{"power_cap":12.5}`,
		`"series":{"interval_s":60,"utilisation":[0,0.1,0.2,`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
}
