package storetest

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver that package store uses
)

// Days is over how long the jobs of a crowd are spread.
const Days = 400

// Schema7 makes an empty database of schema 7, the last one without the sums that
// pages read, at a path where there is none.
func Schema7(tb testing.TB, path string) {
	tb.Helper()
	NeedSQLite(tb)
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("where this package lies isn't known")
	}
	folder := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(here))), "store")
	steps, err := filepath.Glob(filepath.Join(folder, "migrations", "000[2-7]_*.sql"))
	if err != nil || len(steps) != 6 {
		tb.Fatal(steps, err)
	}
	for _, name := range append([]string{filepath.Join(folder, "testdata", "records1.sql")}, steps...) {
		script, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			tb.Fatal(err)
		}
		execute(tb, path, string(script))
	}
	execute(tb, path, "PRAGMA journal_mode = WAL; PRAGMA user_version = 7")
}

// Crowd makes so many jobs of cluster alpha, each with a decision and an outcome,
// evenly over the [Days] before a time, in a new database of schema 7: of 200 users
// (user0 …), 5,000 workloads (w0 …), 4 partitions (part0 …). Jobs are numbered from
// 1, the oldest. One in 50 failed, one in 20 was held out.
//
//nolint:dupword // SQL
func Crowd(tb testing.TB, path string, jobs int, until time.Time) {
	tb.Helper()
	Schema7(tb, path)
	begin := until.AddDate(0, 0, -Days)
	for _, statement := range []string{
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?1)
INSERT INTO jobs SELECT i, 'alpha', i, ?2 + i * ?3 / ?1, 't' || i, 'user' || (i * 7919 % 200), 'acc', 'part' || (i % 50 % 4), x'747261696e',
	'', 'w' || (i * 104729 % 5000), 3600, 1, 1, 'RUNNING' FROM i`,
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?1)
INSERT INTO decisions SELECT i, 'alpha', i, 'n' || (i % 1000), '', 'r' || i, 'w' || (i * 104729 % 5000), 'V100', 1000 + 100 * (i % 3), 0,
	600, 500, 700, 200, 180, 220, 120000, NULL, NULL, 'core 1000 MHz: 90% of the energy and 105% of the time at default clocks',
	'enforce', 'abcdef012345', 1, CASE WHEN i % 20 = 0 THEN 'held-out' ELSE 'treated' END, ?2 + i * ?3 / ?1 + 60000000, 130000, 0.05, '' FROM i`,
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?1)
INSERT INTO outcomes SELECT i, 'alpha', 'r' || i, i, 'n' || (i % 1000), 0, i, 'w' || (i * 104729 % 5000), 'V100',
	CASE WHEN i % 20 = 0 THEN 'held-out' ELSE 'treated' END, ?2 + i * ?3 / ?1, ?2 + i * ?3 / ?1 + 60000000, ?2 + i * ?3 / ?1 + 660000000,
	CASE WHEN i % 50 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 1000 + 100 * (i % 3), 0, 600, 1, 120000 + i % 1000, 'counter', 140000, 'modelled',
	200, 220, 0.9, 1e10, 0, ?2 + i * ?3 / ?1 + 661000000, zeroblob(32) FROM i`,
		`INSERT INTO outcome_details SELECT outcome_id, '["GPU-1"]', '[]', NULL, NULL FROM outcomes WHERE ?1 > 0 AND ?2 > 0 AND ?3 > 0`,
	} {
		execute(tb, path, statement, jobs, begin.UnixMicro(), until.Sub(begin).Microseconds())
	}
}

// execute has SQLite do something with a database.
func execute(tb testing.TB, path, script string, args ...any) {
	tb.Helper()
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath())
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := db.ExecContext(context.Background(), script, args...); err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}
