-- How long completed jobs took, beside what they used: what a saving costs in time is
-- computed from it. Of jobs whose details were pruned before, nobody knows it any more.
ALTER TABLE energy_sums ADD COLUMN done_time_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE energy_sums ADD COLUMN done_time_s REAL NOT NULL DEFAULT 0;
ALTER TABLE energy_sums ADD COLUMN done_time_s2 REAL NOT NULL DEFAULT 0;
ALTER TABLE outcome_months ADD COLUMN done_time_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outcome_months ADD COLUMN done_time_s REAL NOT NULL DEFAULT 0;
ALTER TABLE outcome_months ADD COLUMN done_time_s2 REAL NOT NULL DEFAULT 0;

CREATE TEMPORARY TABLE times AS
SELECT cluster, CASE every WHEN 1 THEN 0 ELSE day END AS day, workload, gpu_model, hold_out, constant_arm, arm, core_mhz, mem_mhz,
	COUNT(longest_s) AS n, TOTAL(longest_s) AS s, TOTAL(longest_s * longest_s) AS s2
FROM (SELECT 0 AS every UNION ALL SELECT 1), (
	SELECT o.cluster, MAX(1, MAX(COALESCE(o.ended_us, o.received_us)) / 86400000000) AS day, o.workload, o.gpu_model, o.arm,
		MIN(COALESCE(d.hold_out, -1)) AS hold_out, MIN(COALESCE(d.constant_arm, 0)) AS constant_arm,
		MIN(COALESCE(d.core_mhz, o.core_mhz)) AS core_mhz, MIN(COALESCE(d.mem_mhz, o.mem_mhz)) AS mem_mhz,
		CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.time_s) = COUNT(*) THEN MAX(o.time_s) END AS longest_s
	FROM outcomes AS o LEFT JOIN decisions AS d ON d.decision_id = o.decision_id
	WHERE o.unmatched = 0 AND o.workload != '' AND o.arm != 'excluded' AND o.exit_state NOT IN ('', 'REQUEUED')
	GROUP BY o.job_id, CASE WHEN o.job_id > 0 THEN o.submitted_us END,
		CASE WHEN o.job_id <= 0 OR o.submitted_us IS NULL THEN o.outcome_id END,
		o.cluster, o.workload, o.gpu_model, o.arm)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
UPDATE energy_sums SET done_time_runs = t.n, done_time_s = t.s, done_time_s2 = t.s2
FROM times AS t
WHERE energy_sums.cluster = t.cluster AND energy_sums.day = t.day AND energy_sums.workload = t.workload
	AND energy_sums.gpu_model = t.gpu_model AND energy_sums.hold_out = t.hold_out
	AND energy_sums.constant_arm = t.constant_arm AND energy_sums.arm = t.arm
	AND energy_sums.core_mhz = t.core_mhz AND energy_sums.mem_mhz = t.mem_mhz;
DROP TABLE times;
