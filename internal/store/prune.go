package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// pruneStep is how many rows one transaction prunes, so that other writers
// wait for milliseconds only.
const pruneStep = 1000

// Pruned counts what retention removed.
type Pruned struct {
	Outcomes, Decisions, Jobs, Conflicts, History, Features int64
}

// Prune removes the details of outcomes that were received before a time,
// after adding them to the sums of their workload and month, and decisions,
// jobs and conflicts from before it, jobs of logs that were imported before it,
// and features of scripts that weren't submitted since. Models stay, and so do the run ids of
// pruned outcomes, so that a late repeat isn't counted again. When it ends
// early, what it has done is complete and the rest remains.
func (s *Store) Prune(ctx context.Context, before time.Time) (Pruned, error) {
	var p Pruned
	limit := before.UnixMicro()
	for _, part := range []struct {
		removed *int64
		step    func(context.Context, *sql.Conn) (int64, error)
	}{
		{&p.Outcomes, func(ctx context.Context, conn *sql.Conn) (int64, error) {
			return pruneOutcomes(ctx, conn, limit)
		}},
		{&p.Decisions, deletion(
			"DELETE FROM decisions WHERE decision_id IN (SELECT decision_id FROM decisions WHERE created_us < ? LIMIT ?)", limit)},
		{&p.Jobs, deletion(
			"DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE submitted_us < ? LIMIT ?)", limit)},
		{&p.Conflicts, deletion(
			"DELETE FROM outcome_conflicts WHERE conflict_id IN (SELECT conflict_id FROM outcome_conflicts WHERE received_us < ? LIMIT ?)", limit)},
		{&p.History, deletion(
			"DELETE FROM history WHERE seq IN (SELECT seq FROM history WHERE received_us < ? LIMIT ?)", limit)},
		{&p.Features, deletion(
			"DELETE FROM features WHERE (cluster, source) IN (SELECT cluster, source FROM features WHERE seen_us < ? LIMIT ?)", limit)},
	} {
		for {
			n, err := write(ctx, s, part.step)
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

// deletion is one step of deleting rows.
func deletion(statement string, limit int64) func(context.Context, *sql.Conn) (int64, error) {
	return func(ctx context.Context, conn *sql.Conn) (int64, error) {
		result, err := conn.ExecContext(ctx, statement, limit, pruneStep)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
}

// theOldest selects the outcomes of one step, and what the same jobs did on
// other nodes; it is the same set for all statements of a transaction until they
// are deleted.
const theOldest = `(WITH some AS (SELECT outcome_id, cluster, job_id, submitted_us FROM outcomes
	WHERE received_us < ?1 ORDER BY received_us, outcome_id LIMIT ?2)
SELECT outcome_id FROM some
UNION SELECT o.outcome_id FROM some AS s CROSS JOIN outcomes AS o INDEXED BY outcomes_by_job
	ON o.cluster = s.cluster AND o.job_id = s.job_id AND o.submitted_us = s.submitted_us
	WHERE s.job_id > 0 AND o.received_us < ?1)`

// sumOutcomes adds outcomes to the sums of their month: all of them, and by jobs
// those that savings are computed from.
const sumOutcomes = `
INSERT INTO outcome_months (cluster, workload, gpu_model, arm, month, hold_out, core_mhz, mem_mhz,
	runs, time_s, gpu_energy_j, node_energy_j, done_gpu_runs, done_gpu_j, done_gpu_j2,
	done_node_runs, done_node_j, done_node_j2, predicted_runs, predicted_j, predicted_gpu_j)
SELECT cluster, workload, gpu_model, arm, strftime('%Y-%m', ended_us / 1000000, 'unixepoch') AS month,
	hold_out, core_mhz, mem_mhz, SUM(runs), TOTAL(time_s), TOTAL(gpu_energy_j), TOTAL(node_energy_j), ` + jobSums + `
FROM (` + jobsOf + ` WHERE o.unmatched = 0 AND o.outcome_id IN ` + theOldest + byJob + `)
GROUP BY cluster, workload, gpu_model, arm, month, hold_out, core_mhz, mem_mhz
ON CONFLICT DO UPDATE SET
	runs = runs + excluded.runs, time_s = time_s + excluded.time_s,
	gpu_energy_j = gpu_energy_j + excluded.gpu_energy_j, node_energy_j = node_energy_j + excluded.node_energy_j,
	done_gpu_runs = done_gpu_runs + excluded.done_gpu_runs,
	done_gpu_j = done_gpu_j + excluded.done_gpu_j, done_gpu_j2 = done_gpu_j2 + excluded.done_gpu_j2,
	done_node_runs = done_node_runs + excluded.done_node_runs,
	done_node_j = done_node_j + excluded.done_node_j, done_node_j2 = done_node_j2 + excluded.done_node_j2,
	predicted_runs = predicted_runs + excluded.predicted_runs,
	predicted_j = predicted_j + excluded.predicted_j, predicted_gpu_j = predicted_gpu_j + excluded.predicted_gpu_j`

// pruneOutcomes sums, remembers and deletes the outcomes of one step.
func pruneOutcomes(ctx context.Context, conn *sql.Conn, limit int64) (int64, error) {
	for _, statement := range []string{
		sumOutcomes,
		"INSERT INTO pruned_runs SELECT cluster, run_id, digest FROM outcomes WHERE outcome_id IN " + theOldest,
	} {
		if _, err := conn.ExecContext(ctx, statement, limit, pruneStep); err != nil {
			return 0, err
		}
	}
	return deletion("DELETE FROM outcomes WHERE outcome_id IN "+theOldest, limit)(ctx, conn)
}
