package packagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// previousDatabase makes a database as an epd left it. It returns the runs whose outcomes it has.
func previousDatabase(t *testing.T, path string) (runs []string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		run := fmt.Sprintf("run-%d", i)
		o := record.Outcome{
			Cluster: "alpha", RunID: run, JobID: int64(i + 1), Node: "n1", ExitState: record.Completed,
			Started: time.Unix(1_700_000_000, 0), Ended: time.Unix(1_700_001_000, 0),
		}
		if _, err := s.PutOutcome(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return runs
}
