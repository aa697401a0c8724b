-- What pages show of very many jobs at once: each figure by an index, or kept.

-- Power and core clock of a run's GPUs over its time.
ALTER TABLE outcome_details ADD COLUMN readings BLOB;

-- A job's state as it is shown: how it ended once all its runs are over, else as state has it.
ALTER TABLE jobs ADD COLUMN shown TEXT NOT NULL DEFAULT '';
UPDATE jobs SET shown = COALESCE((
	SELECT CASE o.exit_state WHEN '' THEN 'ENDED' ELSE o.exit_state END FROM outcomes AS o
	WHERE o.cluster = jobs.cluster AND o.job_id = jobs.job_id AND o.submitted_us = jobs.submitted_us AND o.unmatched = 0
	ORDER BY o.ended_us DESC, o.outcome_id LIMIT 1), state);

-- Lists of jobs are in the order of submission.
DROP INDEX jobs_by_user;
CREATE INDEX jobs_by_user ON jobs (cluster, user, submitted_us);
CREATE INDEX jobs_by_partition ON jobs (cluster, partition, submitted_us);
CREATE INDEX jobs_by_workload ON jobs (cluster, workload, submitted_us);
CREATE INDEX jobs_by_state ON jobs (cluster, shown, submitted_us);
CREATE INDEX outcomes_by_end ON outcomes (cluster, COALESCE(ended_us, received_us));

-- Runs that ended on a day: sums that outlive them.
CREATE TABLE run_days (
	cluster       TEXT    NOT NULL,
	day           INTEGER NOT NULL, -- of the end of the run, in UTC: days since 1970-01-01
	exit_state    TEXT    NOT NULL,
	arm           TEXT    NOT NULL,
	runs          INTEGER NOT NULL, -- on one node each
	time_s        REAL    NOT NULL, -- sum over all runs
	gpu_runs      INTEGER NOT NULL, -- with a known energy
	gpu_energy_j  REAL    NOT NULL,
	node_runs     INTEGER NOT NULL,
	node_energy_j REAL    NOT NULL,
	PRIMARY KEY (cluster, day, exit_state, arm)
) STRICT, WITHOUT ROWID;
INSERT INTO run_days
SELECT cluster, COALESCE(ended_us, received_us) / 86400000000 AS day, exit_state, arm, COUNT(*), TOTAL(time_s),
	COUNT(gpu_energy_j), TOTAL(gpu_energy_j), COUNT(node_energy_j), TOTAL(node_energy_j)
FROM outcomes WHERE unmatched = 0 GROUP BY cluster, day, exit_state, arm;

-- What savings are computed from, kept up to date with each outcome.
CREATE TABLE energy_sums (
	cluster         TEXT    NOT NULL,
	day             INTEGER NOT NULL, -- of the job's end; 0: all days, -1: jobs whose details were pruned
	workload        TEXT    NOT NULL,
	gpu_model       TEXT    NOT NULL,
	hold_out        REAL    NOT NULL, -- -1: not known
	arm             TEXT    NOT NULL,
	core_mhz        REAL    NOT NULL, -- as decided; -1: any
	mem_mhz         REAL    NOT NULL,
	ended           INTEGER NOT NULL, -- jobs, on all their nodes; none of pruned ones
	done            INTEGER NOT NULL, -- that completed
	done_gpu_runs   INTEGER NOT NULL, -- and whose energy is known
	done_gpu_j      REAL    NOT NULL,
	done_gpu_j2     REAL    NOT NULL, -- sum of squares
	done_node_runs  INTEGER NOT NULL,
	done_node_j     REAL    NOT NULL,
	done_node_j2    REAL    NOT NULL,
	predicted_runs  INTEGER NOT NULL, -- those of done_gpu_runs with a prediction at default clocks
	predicted_j     REAL    NOT NULL,
	predicted_gpu_j REAL    NOT NULL,
	PRIMARY KEY (cluster, day, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz)
) STRICT, WITHOUT ROWID;
INSERT INTO energy_sums
SELECT cluster, MAX(1, ended_us / 86400000000) AS day, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz,
	COUNT(*), SUM(done), COUNT(gpu_j), TOTAL(gpu_j), TOTAL(gpu_j * gpu_j), COUNT(node_j), TOTAL(node_j), TOTAL(node_j * node_j),
	COUNT(predicted_j), TOTAL(predicted_j), TOTAL(CASE WHEN predicted_j IS NOT NULL THEN gpu_j END)
FROM (
	SELECT o.cluster, o.workload, o.gpu_model, o.arm, MAX(COALESCE(o.ended_us, o.received_us)) AS ended_us,
		MIN(COALESCE(d.hold_out, -1)) AS hold_out,
		MIN(COALESCE(d.core_mhz, o.core_mhz)) AS core_mhz, MIN(COALESCE(d.mem_mhz, o.mem_mhz)) AS mem_mhz,
		MIN(o.exit_state = 'COMPLETED') AS done,
		CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.gpu_energy_j) = COUNT(*) THEN SUM(o.gpu_energy_j) END AS gpu_j,
		CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.node_energy_j) = COUNT(*) THEN SUM(o.node_energy_j) END AS node_j,
		CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.gpu_energy_j) = COUNT(*) AND COUNT(d.default_energy_j) = COUNT(*)
			THEN SUM(d.default_energy_j) END AS predicted_j
	FROM outcomes AS o LEFT JOIN decisions AS d ON d.decision_id = o.decision_id
	WHERE o.unmatched = 0 AND o.workload != '' AND o.arm != 'excluded' AND o.exit_state NOT IN ('', 'REQUEUED')
	GROUP BY o.job_id, CASE WHEN o.job_id > 0 THEN o.submitted_us END,
		CASE WHEN o.job_id <= 0 OR o.submitted_us IS NULL THEN o.run_id END,
		o.cluster, o.workload, o.gpu_model, o.arm)
GROUP BY cluster, day, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz;
INSERT INTO energy_sums
SELECT cluster, 0, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz, SUM(ended), SUM(done), SUM(done_gpu_runs), TOTAL(done_gpu_j),
	TOTAL(done_gpu_j2), SUM(done_node_runs), TOTAL(done_node_j), TOTAL(done_node_j2), SUM(predicted_runs), TOTAL(predicted_j), TOTAL(predicted_gpu_j)
FROM energy_sums WHERE day > 0 GROUP BY cluster, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz;
INSERT INTO energy_sums
SELECT cluster, -1, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz, 0, 0, SUM(done_gpu_runs), TOTAL(done_gpu_j), TOTAL(done_gpu_j2),
	SUM(done_node_runs), TOTAL(done_node_j), TOTAL(done_node_j2), SUM(predicted_runs), TOTAL(predicted_j), TOTAL(predicted_gpu_j)
FROM outcome_months WHERE workload != '' AND arm != 'excluded' GROUP BY cluster, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz;
