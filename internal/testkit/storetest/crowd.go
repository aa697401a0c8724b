package storetest

import (
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver that package store uses
)

// Days is over how long the jobs of a crowd are spread.
const Days = 400

// Crowd puts so many jobs of cluster alpha, each with a decision and an outcome, into an
// empty database that a store has made, evenly over the [Days] before a time, and the sums of
// them: of 200 users (user0 …), 5,000 workloads (w0 …), 4 partitions (part0 …). Jobs are
// numbered from 1, the oldest. One in 50 failed, one in 20 was held out.
//
//nolint:dupword // SQL
func Crowd(tb testing.TB, path string, jobs int, until time.Time) {
	tb.Helper()
	NeedSQLite(tb)
	begin := until.AddDate(0, 0, -Days)
	for _, statement := range []string{
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?1)
INSERT INTO jobs SELECT i, 'alpha', i, ?2 + i * ?3 / ?1, 't' || i, 'user' || (i * 7919 % 200), 'acc', 'part' || (i % 50 % 4), x'747261696e',
	'', 'w' || (i * 104729 % 5000), 3600, 1, 1, 'RUNNING', CASE WHEN i % 50 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 0, 0 FROM i`,
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?1)
INSERT INTO decisions SELECT i, 'alpha', i, 'n' || (i % 1000), '', 'r' || i, 'w' || (i * 104729 % 5000), 'V100', 1000 + 100 * (i % 3), 0,
	600, 500, 700, 200, 180, 220, 120000, NULL, NULL, 'core 1000 MHz: 90% of the energy and 105% of the time at default clocks',
	'enforce', 'abcdef012345', 1, CASE WHEN i % 20 = 0 THEN 'held-out' ELSE 'treated' END, ?2 + i * ?3 / ?1 + 60000000, 130000, 0.05, '',
	NULL, 0, '' FROM i`,
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?1)
INSERT INTO outcomes SELECT i, 'alpha', 'r' || i, i, 'n' || (i % 1000), 0, i, 'w' || (i * 104729 % 5000), 'V100',
	CASE WHEN i % 20 = 0 THEN 'held-out' ELSE 'treated' END, ?2 + i * ?3 / ?1, ?2 + i * ?3 / ?1 + 60000000, ?2 + i * ?3 / ?1 + 660000000,
	CASE WHEN i % 50 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 1000 + 100 * (i % 3), 0, 600, 1, 120000 + i % 1000, 'counter', 140000, 'modelled',
	200, 220, 0.9, 1e10, 0, ?2 + i * ?3 / ?1 + 661000000, zeroblob(32), 0, NULL, NULL, '' FROM i`,
		`INSERT INTO outcome_details (outcome_id, gpus, clocks) SELECT outcome_id, '["GPU-1"]', '[]' FROM outcomes`,
		`INSERT INTO run_days
SELECT cluster, ended_us / 86400000000 AS day, exit_state, arm, COUNT(*), TOTAL(time_s), COUNT(*), TOTAL(gpu_energy_j), COUNT(*), TOTAL(node_energy_j) FROM outcomes GROUP BY 1, 2, 3, 4`,
		`INSERT INTO energy_sums
SELECT cluster, CASE every WHEN 1 THEN 0 ELSE ended_us / 86400000000 END AS day, workload, gpu_model,
	0.05, 0, arm, core_mhz, mem_mhz, COUNT(*), SUM(c), SUM(c), TOTAL(c * g), TOTAL(c * g * g),
	SUM(c), TOTAL(c * n), TOTAL(c * n * n), SUM(c), TOTAL(c * 130000), TOTAL(c * g),
	SUM(c), TOTAL(c * time_s), TOTAL(c * time_s * time_s)
FROM (SELECT *, exit_state = 'COMPLETED' AS c, gpu_energy_j AS g, node_energy_j AS n FROM outcomes),
	(SELECT 0 AS every UNION ALL SELECT 1)
GROUP BY 1, 2, 3, 4, 7, 8, 9`,
	} {
		execute(tb, path, statement, jobs, begin.UnixMicro(), until.Sub(begin).Microseconds())
	}
}

// execute has SQLite do something with a database; a statement takes the first of the arguments that it has
// parameters for.
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
