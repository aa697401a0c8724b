package store

import (
	"context"
	"database/sql"

	"github.com/epplan/epplan/internal/store/record"
)

// Sums over jobs that ended are kept in energy_sums, by the day of their end and
// over all days, so that nobody has to read all outcomes for them. They change
// with the outcomes, in the same transaction.
// Day 0 is all of them, day −1 jobs whose details were pruned, and day 1 has what
// ended before it, too, by clocks that are wrong.
const microsPerDay = 86_400_000_000

const (
	// compared are the outcomes that savings are computed from. Of those that run
	// again the last run counts; how some ended nobody knows.
	compared = " o.unmatched = 0 AND o.workload != '' AND o.arm != 'excluded' AND o.exit_state NOT IN ('', 'REQUEUED') "

	sumColumns = `workload, gpu_model, hold_out, arm, core_mhz, mem_mhz, ended, done, done_gpu_runs, done_gpu_j, done_gpu_j2,
	done_node_runs, done_node_j, done_node_j2, predicted_runs, predicted_j, predicted_gpu_j`

	addSums = `
ON CONFLICT DO UPDATE SET ended = ended + excluded.ended, done = done + excluded.done,
	done_gpu_runs = done_gpu_runs + excluded.done_gpu_runs, done_gpu_j = done_gpu_j + excluded.done_gpu_j,
	done_gpu_j2 = done_gpu_j2 + excluded.done_gpu_j2, done_node_runs = done_node_runs + excluded.done_node_runs,
	done_node_j = done_node_j + excluded.done_node_j, done_node_j2 = done_node_j2 + excluded.done_node_j2,
	predicted_runs = predicted_runs + excluded.predicted_runs, predicted_j = predicted_j + excluded.predicted_j,
	predicted_gpu_j = predicted_gpu_j + excluded.predicted_gpu_j`
)

// bookJobs is a statement that adds what jobs came to, those of the compared
// outcomes that a condition selects, to the sums of their days and of all days.
// Its first parameter is 1, or -1 to take them out again.
func bookJobs(condition string) string {
	return `
INSERT INTO energy_sums (cluster, day, ` + sumColumns + `)
SELECT cluster, CASE every WHEN 1 THEN 0 ELSE day END, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz,
	?1 * ended, ?1 * done, ?1 * gn, ?1 * g, ?1 * g2, ?1 * nn, ?1 * n, ?1 * n2, ?1 * pn, ?1 * p, ?1 * pg
FROM (SELECT 0 AS every UNION ALL SELECT 1), (
	SELECT cluster, MAX(1, ended_us / 86400000000) AS day, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz,
		COUNT(*) AS ended, SUM(done) AS done, ` + jobSums + `
	FROM (` + jobsOf + ` WHERE` + compared + `AND ` + condition + byJob + `)
	GROUP BY cluster, day, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz)
WHERE true` + addSums
}

// The outcome itself, and the others of its job: on other nodes, of the same
// workload on the same GPU model in the same arm. A plus keeps a condition from
// choosing the index.
var (
	bookOne  = bookJobs("o.outcome_id = ?2")
	bookBack = bookJobs(sameJob + " AND +o.outcome_id != ?2")
	bookAll  = bookJobs(sameJob + " AND ?2 > 0")
	bookSome = bookJobs("o.outcome_id IN (SELECT value FROM json_each(?2))")
)

const sameJob = "o.cluster = ?3 AND o.job_id = ?4 AND o.submitted_us = ?5 AND +o.workload = ?6 AND +o.gpu_model = ?7 AND +o.arm = ?8"

// bookOutcome brings the sums up to date with an outcome that was just stored.
func bookOutcome(ctx context.Context, conn *sql.Conn, id int64, o *record.Outcome, received int64) error {
	if o.Unmatched {
		return nil
	}
	if err := bookDay(ctx, conn, o, received); err != nil {
		return err
	}
	if err := showEnd(ctx, conn, o); err != nil {
		return err
	}
	if o.Workload == "" || o.Arm == record.Excluded || o.ExitState == "" || o.ExitState == stateRequeued {
		return nil
	}
	if o.JobID <= 0 || o.Submitted.IsZero() {
		_, err := conn.ExecContext(ctx, bookOne, 1, id)
		return err
	}
	job := []any{o.Cluster, o.JobID, micros(o.Submitted), o.Workload, o.GPUModel, string(o.Arm)}
	if _, err := conn.ExecContext(ctx, bookBack, append([]any{-1, id}, job...)...); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, bookAll, append([]any{1, id}, job...)...)
	return err
}

// stateRequeued is that of a run whose job runs again.
const stateRequeued = "REQUEUED"

// bookDay adds a run to the sums of its day.
func bookDay(ctx context.Context, conn *sql.Conn, o *record.Outcome, received int64) error {
	end := received
	if !o.Ended.IsZero() {
		end = o.Ended.UnixMicro()
	}
	gpu, gpuKnown := o.GPUEnergyJ.Get()
	node, nodeKnown := o.NodeEnergyJ.Get()
	_, err := conn.ExecContext(ctx, `
INSERT INTO run_days (cluster, day, exit_state, arm, runs, time_s, gpu_runs, gpu_energy_j, node_runs, node_energy_j)
VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET runs = runs + 1, time_s = time_s + excluded.time_s,
	gpu_runs = gpu_runs + excluded.gpu_runs, gpu_energy_j = gpu_energy_j + excluded.gpu_energy_j,
	node_runs = node_runs + excluded.node_runs, node_energy_j = node_energy_j + excluded.node_energy_j`,
		o.Cluster, end/microsPerDay, o.ExitState, string(o.Arm), o.TimeS.Or(0), flag(gpuKnown), gpu, flag(nodeKnown), node)
	return err
}

// showEnd has an outcome's job shown as ended, once every run that was decided
// for it has an outcome.
func showEnd(ctx context.Context, conn *sql.Conn, o *record.Outcome) error {
	if o.JobID <= 0 || o.Submitted.IsZero() {
		return nil
	}
	_, err := conn.ExecContext(ctx, endOfJob, o.Cluster, o.JobID, micros(o.Submitted), int64(forever))
	return err
}

const endOfJob = `
UPDATE jobs SET shown = COALESCE((
	SELECT CASE o.exit_state WHEN '' THEN 'ENDED' ELSE o.exit_state END FROM outcomes AS o INDEXED BY outcomes_by_job
	WHERE o.cluster = ?1 AND o.job_id = ?2 AND o.submitted_us = ?3 AND o.unmatched = 0
	ORDER BY o.ended_us DESC, o.outcome_id LIMIT 1), shown)
WHERE cluster = ?1 AND job_id = ?2 AND submitted_us = ?3 AND NOT EXISTS (
	SELECT 1 FROM decisions AS d INDEXED BY decisions_by_job
	WHERE d.cluster = ?1 AND d.job_id = ?2 AND d.job_id != 0 AND d.created_us >= ?3
		AND d.created_us < COALESCE((SELECT MIN(n.submitted_us) FROM jobs AS n
			WHERE n.cluster = ?1 AND n.job_id = ?2 AND n.submitted_us > ?3), ?4)
		AND NOT EXISTS (SELECT 1 FROM outcomes AS r WHERE r.cluster = ?1 AND r.run_id = d.run_id))`

// forever is later than any time.
const forever = 1 << 62
