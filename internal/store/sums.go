package store

import (
	"context"
	"database/sql"
	"regexp"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Sums over jobs that ended are kept in energy_sums, by the day of their end and
// over all days, so that nobody has to read all outcomes for them. They change
// with the outcomes, in the same transaction.
// Day 0 is all of them, day −1 jobs whose details were pruned, and day 1 has what
// ended before it, too, by clocks that are wrong.
const microsPerDay = 86_400_000_000

const (
	// comparedOutcomes are the outcomes that savings are computed from. Of those that run
	// again the last run counts; how some ended nobody knows.
	comparedOutcomes = " o.unmatched = 0 AND o.workload != '' AND o.arm != 'excluded' AND o.exit_state NOT " +
		"IN ('', 'REQUEUED') "

	// stratumKey is what tells apart jobs that aren't added up.
	stratumKey = `workload, gpu_model, hold_out, constant_arm, arm, core_mhz, mem_mhz`

	sumColumns = stratumKey + `, ended, done, done_gpu_runs, done_gpu_j, done_gpu_j2,
	done_node_runs, done_node_j, done_node_j2, predicted_runs, predicted_j, predicted_gpu_j,
	done_time_runs, done_time_s, done_time_s2`

	addSums = `
ON CONFLICT DO UPDATE SET ended = ended + excluded.ended, done = done + excluded.done,
	done_gpu_runs = done_gpu_runs + excluded.done_gpu_runs, done_gpu_j = done_gpu_j + excluded.done_gpu_j,
	done_gpu_j2 = done_gpu_j2 + excluded.done_gpu_j2, done_node_runs = done_node_runs + excluded.done_node_runs,
	done_node_j = done_node_j + excluded.done_node_j, done_node_j2 = done_node_j2 + excluded.done_node_j2,
	predicted_runs = predicted_runs + excluded.predicted_runs, predicted_j = predicted_j + excluded.predicted_j,
	predicted_gpu_j = predicted_gpu_j + excluded.predicted_gpu_j, ` + addTimes

	addTimes = `done_time_runs = done_time_runs + excluded.done_time_runs,
	done_time_s = done_time_s + excluded.done_time_s, done_time_s2 = done_time_s2 + excluded.done_time_s2`
)

// addJobSums returns a statement that adds what jobs came to, those of the compared
// outcomes that a condition selects, to the sums of their days and of all days.
// Its first parameter is 1, or -1 to take them out again.
func addJobSums(condition string) string {
	return hideParameters(`
INSERT INTO energy_sums (cluster, day, ` + sumColumns + `)
SELECT cluster, CASE every WHEN 1 THEN 0 ELSE day END, ` + stratumKey + `,
	?1 * ended, ?1 * done, ?1 * gn, ?1 * g, ?1 * g2, ?1 * nn, ?1 * n, ?1 * n2, ?1 * pn, ?1 * p, ?1 * pg,
	?1 * tn, ?1 * t, ?1 * t2
FROM (SELECT 0 AS every UNION ALL SELECT 1), (
	SELECT cluster, MAX(1, ended_us / 86400000000) AS day, ` + stratumKey + `,
		COUNT(*) AS ended, SUM(done) AS done, ` + jobSums + `
	FROM (` + jobsOf + ` WHERE` + comparedOutcomes + `AND ` + condition + byJob + `)
	GROUP BY cluster, day, ` + stratumKey + `)
WHERE true` + addSums)
}

// addOneJob adds the job of outcome ?1 where that is all there is of it. It comes to
// what addJobSums does, without the trees that grouping makes each time.
var addOneJob = hideParameters(`
INSERT INTO energy_sums (cluster, day, ` + sumColumns + `)
SELECT cluster, CASE every WHEN 1 THEN 0 ELSE day END, ` + stratumKey + `, 1, done,
	gpu_j IS NOT NULL, COALESCE(gpu_j, 0.0), COALESCE(gpu_j * gpu_j, 0.0),
	node_j IS NOT NULL, COALESCE(node_j, 0.0), COALESCE(node_j * node_j, 0.0),
	predicted_j IS NOT NULL, COALESCE(predicted_j, 0.0), CASE WHEN predicted_j IS NULL THEN 0.0 ELSE gpu_j END,
	longest_s IS NOT NULL, COALESCE(longest_s, 0.0), COALESCE(longest_s * longest_s, 0.0)
FROM (SELECT 0 AS every UNION ALL SELECT 1), (
	SELECT o.cluster, MAX(1, COALESCE(o.ended_us, o.received_us) / 86400000000) AS day, o.workload, o.gpu_model,
		o.arm,
		COALESCE(d.hold_out, -1) AS hold_out, COALESCE(d.constant_arm, 0) AS constant_arm,
		COALESCE(d.core_mhz, o.core_mhz) AS core_mhz, COALESCE(d.mem_mhz, o.mem_mhz) AS mem_mhz,
		o.exit_state = 'COMPLETED' AS done,
		CASE WHEN o.exit_state = 'COMPLETED' THEN o.gpu_energy_j END AS gpu_j,
		CASE WHEN o.exit_state = 'COMPLETED' THEN o.node_energy_j END AS node_j,
		CASE WHEN o.exit_state = 'COMPLETED' THEN o.time_s END AS longest_s,
		CASE WHEN o.exit_state = 'COMPLETED' AND o.gpu_energy_j IS NOT NULL THEN d.default_energy_j END AS predicted_j
	FROM outcomes AS o LEFT JOIN decisions AS d ON d.decision_id = o.decision_id
	WHERE` + comparedOutcomes + `AND o.outcome_id = ?1)
WHERE true` + addSums)

// The others of an outcome's job: on other nodes, of the same workload on the same
// GPU model in the same arm. A plus keeps a condition from choosing the index.
var (
	hasOthers = hideParameters("SELECT EXISTS (SELECT 1 FROM outcomes AS o INDEXED BY " +
		"outcomes_by_job WHERE " + sameJobSQL + " AND +o.outcome_id != ?2)")
	subtractJobs = addJobSums(sameJobSQL + " AND +o.outcome_id != ?2")
	addAllJobs   = addJobSums(sameJobSQL + " AND ?2 > 0")
	addSomeJobs  = addJobSums("o.outcome_id IN (SELECT value FROM json_each(?2))")
)

const sameJobSQL = "o.cluster = ?3 AND o.job_id = ?4 AND o.submitted_us = ?5 AND +o.workload = ?6 AND " +
	"+o.gpu_model = ?7 AND +o.arm = ?8"

// bookOutcome brings the sums up to date with an outcome that was just stored.
func bookOutcome(ctx context.Context, conn *sql.Conn, id int64, o *record.Outcome, received int64) error {
	if o.Unmatched {
		return nil
	}
	if err := bookDay(ctx, conn, o, received); err != nil {
		return err
	}
	if err := markEnded(ctx, conn, o); err != nil {
		return err
	}
	if o.Workload == "" || o.Arm == live.ArmExcluded || o.ExitState == "" || o.ExitState == stateRequeued {
		return nil
	}
	var job []any
	others := false
	if o.JobID > 0 && !o.Submitted.IsZero() {
		job = []any{o.Cluster, o.JobID, o.Submitted.UnixMicro(), o.Workload, o.GPUModel, string(o.Arm)}
		if err := conn.QueryRowContext(ctx, hasOthers, append([]any{1, id}, job...)...).Scan(&others); err !=
			nil {
			return err
		}
	}
	if !others {
		_, err := conn.ExecContext(ctx, addOneJob, id)
		return err
	}
	if _, err := conn.ExecContext(ctx, subtractJobs, append([]any{-1, id}, job...)...); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, addAllJobs, append([]any{1, id}, job...)...)
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
INSERT INTO run_days (cluster, day, exit_state, arm, runs, time_s, gpu_runs, gpu_energy_j, node_runs,
	node_energy_j)
VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET runs = runs + 1, time_s = time_s + excluded.time_s,
	gpu_runs = gpu_runs + excluded.gpu_runs, gpu_energy_j = gpu_energy_j + excluded.gpu_energy_j,
	node_runs = node_runs + excluded.node_runs, node_energy_j = node_energy_j + excluded.node_energy_j`,
		o.Cluster, end/microsPerDay, o.ExitState, string(o.Arm), o.TimeS.Or(0), gpuKnown, gpu, nodeKnown,
		node)
	return err
}

// markEnded has an outcome's job shown as ended, once every run that was decided
// for it has an outcome.
func markEnded(ctx context.Context, conn *sql.Conn, o *record.Outcome) error {
	if o.JobID <= 0 || o.Submitted.IsZero() {
		return nil
	}
	_, err := conn.ExecContext(ctx, endOfJob, o.Cluster, o.JobID, o.Submitted.UnixMicro(),
		int64(endOfTime))
	return err
}

var endOfJob = hideParameters(`
UPDATE jobs SET shown = COALESCE((
	SELECT CASE o.exit_state WHEN '' THEN 'ENDED' ELSE o.exit_state END FROM outcomes AS o INDEXED BY outcomes_by_job
	WHERE o.cluster = ?1 AND o.job_id = ?2 AND o.submitted_us = ?3 AND o.unmatched = 0
	ORDER BY o.ended_us DESC, o.outcome_id LIMIT 1), shown)
WHERE cluster = ?1 AND job_id = ?2 AND submitted_us = ?3 AND NOT EXISTS (
	SELECT 1 FROM decisions AS d INDEXED BY decisions_by_job
	WHERE d.cluster = ?1 AND d.job_id = ?2 AND d.job_id != 0 AND d.created_us >= ?3
		AND d.created_us < COALESCE((SELECT MIN(n.submitted_us) FROM jobs AS n
			WHERE n.cluster = ?1 AND n.job_id = ?2 AND n.submitted_us > ?3), ?4)
		AND NOT EXISTS (SELECT 1 FROM outcomes AS r WHERE r.cluster = ?1 AND r.run_id = d.run_id AND r.node = d.node))`)

var parameter = regexp.MustCompile(`\?\d+`)

// hideParameters hides the parameters of a statement from SQLite's planner, which would
// plan it anew each time that they change, should they be 0 or 1 (since 3.54): that
// takes ten times as long as these statements do.
func hideParameters(statement string) string {
	return parameter.ReplaceAllString(statement, "COALESCE($0, NULL)")
}

// endOfTime is later than any time.
const endOfTime = 1 << 62
