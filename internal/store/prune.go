package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// pruneStep is how many rows one transaction prunes, so that other writers
// wait for milliseconds only.
const pruneStep = 1000

// PruneResult counts what retention removed.
type PruneResult struct {
	Outcomes, Decisions, Jobs, Conflicts, History, Features int64
}

// Prune removes what is from before a time:
//
//   - details of outcomes that were received before it, after they were added to
//     the sums of their workload and month;
//   - decisions, but those of outcomes that stay; jobs; conflicts;
//   - jobs of logs that were imported before it;
//   - features of scripts that weren't submitted since.
//
// Models stay, as many as [KeptVersions] says, and so do the run ids of pruned outcomes, so that a
// late repeat isn't counted again. When it ends early, what it has done is complete and the
// rest remains.
func (s *Store) Prune(ctx context.Context, before time.Time) (PruneResult, error) {
	var p PruneResult
	limit := before.UnixMicro()
	for _, part := range []struct {
		removed *int64
		step    func(context.Context, *sql.Conn) (int64, error)
	}{
		{&p.Outcomes, func(ctx context.Context, conn *sql.Conn) (int64, error) {
			return pruneOutcomes(ctx, conn, limit)
		}},
		{&p.Decisions, deletion(
			`DELETE FROM decisions WHERE decision_id IN (SELECT decision_id FROM decisions AS d INDEXED BY decisions_by_time WHERE created_us < ?
	AND NOT EXISTS (SELECT 1 FROM outcomes AS o INDEXED BY outcomes_by_job
		WHERE o.cluster = d.cluster AND o.job_id = d.job_id AND o.decision_id = d.decision_id) LIMIT ?)`,
			limit)},
		{&p.Jobs, deletion(
			"DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE submitted_us < ? LIMIT ?)", limit)},
		{new(int64), deleteEmptySums(limit)},
		{&p.Conflicts, deletion(
			"DELETE FROM outcome_conflicts WHERE conflict_id IN (SELECT conflict_id FROM outcome_conflicts "+
				"WHERE received_us < ? LIMIT ?)", limit)},
		{&p.History, deletion(
			"DELETE FROM history WHERE seq IN (SELECT seq FROM history WHERE received_us < ? LIMIT ?)",
			limit)},
		{&p.Features, deletion(
			"DELETE FROM features WHERE (cluster, source) IN (SELECT cluster, source FROM features WHERE "+
				"seen_us < ? LIMIT ?)", limit)},
	} {
		for {
			n, err := write(ctx, s.db, part.step)
			if err != nil {
				return p, fmt.Errorf("prune records: %w", err)
			}
			if *part.removed += n; n < pruneStep {
				break
			}
		}
	}
	return p, nil
}

// Oldest returns the earliest time by which an outcome, a job, a conflict or a job of a
// log is removed; zero where there is none. Decisions don't count: those of outcomes
// that stay, stay with them.
func (s *Store) Oldest(ctx context.Context) (time.Time, error) {
	const oldest = `
SELECT MIN(us) FROM (
	SELECT MIN(received_us) AS us FROM outcomes
	UNION ALL SELECT MIN(submitted_us) FROM jobs
	UNION ALL SELECT MIN(received_us) FROM outcome_conflicts
	UNION ALL SELECT MIN(received_us) FROM history)`
	var us sql.NullInt64
	if err := s.db.read.QueryRowContext(ctx, oldest).Scan(&us); err != nil {
		return time.Time{}, fmt.Errorf("find the oldest record: %w", err)
	}
	return timeOf(us), nil
}

// deletion returns one step of deleting rows.
func deletion(statement string, limit int64) func(context.Context, *sql.Conn) (int64, error) {
	return func(ctx context.Context, conn *sql.Conn) (int64, error) {
		result, err := conn.ExecContext(ctx, statement, limit, pruneStep)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
}

// selectOldest selects the outcomes of one step, and what the same jobs did on
// other nodes.
const selectOldest = `
WITH some AS (SELECT outcome_id, cluster, job_id, submitted_us FROM outcomes
	WHERE received_us < ?1 ORDER BY received_us, outcome_id LIMIT ?2)
SELECT outcome_id FROM some
UNION SELECT o.outcome_id FROM some AS s CROSS JOIN outcomes AS o INDEXED BY outcomes_by_job
	ON o.cluster = s.cluster AND o.job_id = s.job_id AND o.submitted_us = s.submitted_us
	WHERE s.job_id > 0 AND o.received_us < ?1`

// selectOfSameJobs selects the outcomes of the jobs that a list of outcomes is of.
const selectOfSameJobs = `
SELECT value FROM json_each(?1)
UNION SELECT o.outcome_id FROM json_each(?1) AS l CROSS JOIN outcomes AS s ON s.outcome_id = l.value
	CROSS JOIN outcomes AS o INDEXED BY outcomes_by_job
	ON o.cluster = s.cluster AND o.job_id = s.job_id AND o.submitted_us = s.submitted_us WHERE s.job_id > 0`

// sumPruned adds jobs to the sums: the parts of jobs that are in a list of
// outcomes, all of them by month, and those that savings are computed from.
const (
	sumPruned = `
INSERT INTO outcome_months (cluster, workload, gpu_model, arm, month, hold_out, constant_arm, core_mhz,
	mem_mhz,
	runs, time_s, gpu_energy_j, node_energy_j, done_gpu_runs, done_gpu_j, done_gpu_j2,
	done_node_runs, done_node_j, done_node_j2, predicted_runs, predicted_j, predicted_gpu_j,
	done_time_runs, done_time_s, done_time_s2)
SELECT cluster, workload, gpu_model, arm, strftime('%Y-%m', ended_us / 1000000, 'unixepoch') AS month,
	hold_out, constant_arm, core_mhz, mem_mhz, SUM(runs), TOTAL(time_s), TOTAL(gpu_energy_j), TOTAL(node_energy_j), ` + jobSums + prunedJobs + `
GROUP BY cluster, workload, gpu_model, arm, month, hold_out, constant_arm, core_mhz, mem_mhz
ON CONFLICT DO UPDATE SET
	runs = runs + excluded.runs, time_s = time_s + excluded.time_s,
	gpu_energy_j = gpu_energy_j + excluded.gpu_energy_j, node_energy_j = node_energy_j + excluded.node_energy_j,
	done_gpu_runs = done_gpu_runs + excluded.done_gpu_runs,
	done_gpu_j = done_gpu_j + excluded.done_gpu_j, done_gpu_j2 = done_gpu_j2 + excluded.done_gpu_j2,
	done_node_runs = done_node_runs + excluded.done_node_runs,
	done_node_j = done_node_j + excluded.done_node_j, done_node_j2 = done_node_j2 + excluded.done_node_j2,
	predicted_runs = predicted_runs + excluded.predicted_runs,
	predicted_j = predicted_j + excluded.predicted_j, predicted_gpu_j = predicted_gpu_j + excluded.predicted_gpu_j, ` + addTimes

	sumPrunedEver = `
INSERT INTO energy_sums (cluster, day, ` + sumColumns + `)
SELECT cluster, -1, ` + stratumKey + `, 0, 0, ` + jobSums + prunedJobs + `
WHERE workload != '' AND arm != 'excluded' GROUP BY cluster, ` + stratumKey + addSums

	prunedJobs = `
FROM (` + jobsOf + ` WHERE o.unmatched = 0 AND o.outcome_id IN (SELECT value FROM json_each(?1))` +
		byJob + `)`
)

// pruneOutcomes sums, remembers and deletes the outcomes of one step. What stays
// of a job some of whose nodes' outcomes came later counts as a job of its own.
func pruneOutcomes(ctx context.Context, conn *sql.Conn, limit int64) (int64, error) {
	old, err := selectIDs(ctx, conn, selectOldest, limit, pruneStep)
	if err != nil {
		return 0, err
	}
	whole, err := selectIDs(ctx, conn, selectOfSameJobs, old)
	if err != nil {
		return 0, err
	}
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{addSomeJobs, []any{-1, whole}},
		{sumPruned, []any{old}},
		{sumPrunedEver, []any{old}},
		{
			"INSERT INTO pruned_runs SELECT cluster, run_id, node, digest FROM outcomes WHERE outcome_id " +
				"IN (SELECT value FROM json_each(?1))", []any{old},
		},
	} {
		if _, err := conn.ExecContext(ctx, step.statement, step.args...); err != nil {
			return 0, err
		}
	}
	result, err := conn.ExecContext(ctx,
		"DELETE FROM outcomes WHERE outcome_id IN (SELECT value FROM json_each(?1))", old)
	if err != nil {
		return 0, err
	}
	if _, err := conn.ExecContext(ctx, addSomeJobs, 1, whole); err != nil { // those that are left
		return 0, err
	}
	return result.RowsAffected()
}

// selectIDs returns a list of outcomes as a parameter of further statements.
func selectIDs(ctx context.Context, conn *sql.Conn, query string, args ...any) (string, error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	ids, err := collect(rows, err, func(row scanner) (id int64, err error) {
		err = row.Scan(&id)
		return id, err
	})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(append([]int64{}, ids...))
	return string(text), err
}

// deleteEmptySums deletes the sums of days in which no job is left.
func deleteEmptySums(limit int64) func(context.Context, *sql.Conn) (int64, error) {
	return deletion(`DELETE FROM energy_sums WHERE (cluster, day, `+stratumKey+`) IN (
	SELECT cluster, day, `+stratumKey+` FROM energy_sums
	WHERE cluster IN (SELECT cluster FROM run_days) AND day > 0 AND day <= ? AND ended = 0 LIMIT ?)`,
		limit/microsPerDay)
}
