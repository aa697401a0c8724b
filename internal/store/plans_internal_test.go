package store

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/storetest"
)

// plan returns how SQLite goes about a query: one line for each loop.
func plan(t *testing.T, s *Store, query string, args ...any) []string {
	t.Helper()
	rows, err := s.db.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	lines, err := collect(rows, nil, func(row scanner) (line string, err error) {
		var id, parent, unused int
		err = row.Scan(&id, &parent, &unused, &line)
		return line, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// There may be a million of them.
func TestNoQueryOfAPageReadsAWholeTable(t *testing.T) {
	storetest.NeedSQLite(t)
	s, err := Open(context.Background(), filepath.Join(t.TempDir(), "epd.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	check := func(name, query string, args ...any) {
		t.Helper()
		for _, line := range plan(t, s, query, args...) {
			for _, table := range []string{
				"jobs", "j", "l", "n", "outcomes", "o", "decisions", "d", "l",
				"outcome_details", "outcome_profiles", "b", "r", "e", "q", "old_runs", "texts",
			} {
				if strings.HasPrefix(line+" ", "SCAN "+table+" ") && !derived[name][table] {
					t.Errorf("%s: %s", name, line)
				}
			}
			if strings.Contains(line, "AUTOMATIC") {
				t.Errorf("%s makes an index at each call: %s", name, line)
			}
		}
	}
	at := time.Unix(1_700_000_000, 0)
	for name, filter := range map[string]JobFilter{
		"all": {}, "user": {User: "ada"}, "workload": {Workload: "w"}, "partition": {Partition: "p"},
		"state": {State: "FAILED"}, "since": {From: at},
		"account": {Account: "a"}, "user, state, since": {User: "ada", State: "FAILED", From: at},
		"between": {From: at, Until: at}, "id": {ID: 7},
		"everything": {
			User: "ada", Account: "a", Partition: "p", Workload: "w", State: "FAILED", From: at, Until: at,
		},
	} {
		filter.Cluster = "alpha"
		q, ok, err := s.pageOf(t.Context(), &filter, 0, 100)
		if err != nil || !ok {
			t.Fatal(err)
		}
		check("jobs by "+name, selectJobs+q.where, q.args...)
		check("rows", strings.Replace(selectRows, "%s", q.where, 1), q.args...)
	}
	check("decisions", lastDecisions, 100, 1, "alpha", "", 10)
	if all := strings.Join(plan(t, s, lastDecisions, 100, 1, "alpha", "", 10), "\n"); !strings.Contains(all,
		"SEARCH decisions USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)") {
		t.Errorf("decisions aren't read from the last one on: %s", all)
	}
	check("decisions of a user", lastDecisionsOf, "alpha", "ada", "", 10)
	check("decisions of a job", decisionsOfJob, "alpha", 7)
	check("last jobs", lastJobs, "alpha", `["w","v"]`)
	check("days", runDays, "alpha", 0)
	check("readings", runReadings, "alpha", 7)
	check("strata ever", strataEver, "alpha")
	for by := range groupKeys {
		check("strata by "+by, strataOfGroups(by), "alpha", 1, 2, "")
	}
	check("strata since", strataSince, "alpha", 1, 2, 3, "2026-01", 4, 5, 6, "2026-02")
	check("sums of an outcome", addOneJob, 1)
	check("others of a job", hasOthers, 1, 1, "alpha", 7, 1, "w", "V100", "treated")
	check("sums of a job without it", subtractJobs, 1, 1, "alpha", 7, 1, "w", "V100", "treated")
	check("sums of a job", addAllJobs, 1, 1, "alpha", 7, 1, "w", "V100", "treated")
	check("sums of many", addSomeJobs, 1, "[1]")
	check("the end of a job", endOfJob, "alpha", 7, 1, int64(endOfTime))
}

// derived are tables of a query by names of its own: a page of jobs or decisions.
var derived = map[string]map[string]bool{
	"rows": {"j": true}, "decisions": {"d": true}, "decisions of a user": {"j": true},
}
