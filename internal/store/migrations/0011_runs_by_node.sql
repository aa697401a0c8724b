-- A run is named by its node, too: what another node sends under the same id is
-- another run. Of runs whose details were pruned the node isn't known: ''.
CREATE TABLE outcomes_11 (
	outcome_id          INTEGER PRIMARY KEY AUTOINCREMENT,
	cluster             TEXT    NOT NULL,
	run_id              TEXT    NOT NULL,
	job_id              INTEGER NOT NULL,
	node                TEXT    NOT NULL,
	restart_count       INTEGER NOT NULL,
	decision_id         INTEGER NOT NULL,
	workload            TEXT    NOT NULL,
	gpu_model           TEXT    NOT NULL,
	arm                 TEXT    NOT NULL,
	submitted_us        INTEGER,
	started_us          INTEGER,
	ended_us            INTEGER,
	exit_state          TEXT    NOT NULL,
	core_mhz            REAL    NOT NULL,
	mem_mhz             REAL    NOT NULL,
	time_s              REAL,
	slowdown            REAL,
	gpu_energy_j        REAL,
	gpu_energy_source   TEXT    NOT NULL,
	node_energy_j       REAL,
	node_energy_source  TEXT    NOT NULL,
	mean_power_w        REAL,
	peak_power_w        REAL,
	utilisation         REAL,
	peak_memory_bytes   REAL,
	unmatched           INTEGER NOT NULL,
	received_us         INTEGER NOT NULL,
	digest              BLOB    NOT NULL,
	UNIQUE (cluster, run_id, node)
) STRICT;
INSERT INTO outcomes_11 SELECT * FROM outcomes;
DELETE FROM sqlite_sequence WHERE name = 'outcomes_11';
INSERT INTO sqlite_sequence SELECT 'outcomes_11', seq FROM sqlite_sequence WHERE name = 'outcomes'; -- no id comes again
DROP TABLE outcomes; -- details refer to it by its name: foreign keys are off meanwhile
ALTER TABLE outcomes_11 RENAME TO outcomes;
CREATE INDEX outcomes_by_workload ON outcomes (cluster, workload, gpu_model, outcome_id);
CREATE INDEX outcomes_by_job ON outcomes (cluster, job_id);
CREATE INDEX outcomes_by_time ON outcomes (received_us);
CREATE INDEX outcomes_by_end ON outcomes (cluster, COALESCE(ended_us, received_us));

ALTER TABLE pruned_runs RENAME TO pruned_runs_10;
CREATE TABLE pruned_runs (
	cluster TEXT NOT NULL,
	run_id  TEXT NOT NULL,
	node    TEXT NOT NULL,
	digest  BLOB NOT NULL,
	PRIMARY KEY (cluster, run_id, node)
) STRICT, WITHOUT ROWID;
INSERT INTO pruned_runs SELECT cluster, run_id, '', digest FROM pruned_runs_10;
DROP TABLE pruned_runs_10;

ALTER TABLE outcome_conflicts RENAME TO outcome_conflicts_10;
CREATE TABLE outcome_conflicts (
	conflict_id INTEGER PRIMARY KEY,
	cluster     TEXT    NOT NULL,
	node        TEXT    NOT NULL,
	run_id      TEXT    NOT NULL,
	digest      BLOB    NOT NULL,
	body        TEXT    NOT NULL, -- the outcome that differs, as JSON
	received_us INTEGER NOT NULL,
	UNIQUE (cluster, run_id, node, digest)
) STRICT;
INSERT INTO outcome_conflicts
SELECT conflict_id, cluster, COALESCE(body ->> '$.node', ''), run_id, digest, body, received_us FROM outcome_conflicts_10;
DROP TABLE outcome_conflicts_10;
CREATE INDEX conflicts_by_time ON outcome_conflicts (received_us);

-- What came with an outcome and can't be. Of what is there already only what no run
-- whatsoever comes to: a time of 31 years, an energy of 10^15 J. Sums in which it is
-- are made anew from the outcomes that are there.
ALTER TABLE outcome_details ADD COLUMN implausible TEXT; -- JSON: {why, and what is implausible}

CREATE TEMP TABLE spoilt AS
SELECT outcome_id, cluster, workload, gpu_model, COALESCE(ended_us, received_us) / 86400000000 AS day, exit_state, arm,
	time_s NOT BETWEEN 0 AND 1e9 AS bad_time,
	gpu_energy_j NOT BETWEEN 0 AND 1e15 OR time_s NOT BETWEEN 0 AND 1e9 AS bad_gpu,
	node_energy_j NOT BETWEEN 0 AND 1e15 OR gpu_energy_j NOT BETWEEN 0 AND 1e15 OR time_s NOT BETWEEN 0 AND 1e9 AS bad_node,
	mean_power_w NOT BETWEEN 0 AND 1e6 AS bad_mean, peak_power_w NOT BETWEEN 0 AND 1e6 AS bad_peak
FROM outcomes WHERE time_s NOT BETWEEN 0 AND 1e9 OR gpu_energy_j NOT BETWEEN 0 AND 1e15 OR node_energy_j NOT BETWEEN 0 AND 1e15
	OR mean_power_w NOT BETWEEN 0 AND 1e6 OR peak_power_w NOT BETWEEN 0 AND 1e6;

INSERT INTO outcome_details (outcome_id) SELECT outcome_id FROM temp.spoilt WHERE true ON CONFLICT DO NOTHING;
UPDATE outcome_details SET implausible = (
	SELECT json_patch('{}', json_object('why', 'recorded before epd looked at what can be',
		'time_s', CASE WHEN s.bad_time AND ABS(o.time_s) < 1e999 THEN o.time_s END,
		'gpu_energy_j', CASE WHEN s.bad_gpu AND ABS(o.gpu_energy_j) < 1e999 THEN o.gpu_energy_j END,
		'gpu_energy_source', CASE WHEN s.bad_gpu THEN o.gpu_energy_source END,
		'node_energy_j', CASE WHEN s.bad_node AND ABS(o.node_energy_j) < 1e999 THEN o.node_energy_j END,
		'node_energy_source', CASE WHEN s.bad_node THEN o.node_energy_source END,
		'mean_power_w', CASE WHEN s.bad_mean AND ABS(o.mean_power_w) < 1e999 THEN o.mean_power_w END,
		'peak_power_w', CASE WHEN s.bad_peak AND ABS(o.peak_power_w) < 1e999 THEN o.peak_power_w END))
	FROM temp.spoilt AS s JOIN outcomes AS o USING (outcome_id) WHERE s.outcome_id = outcome_details.outcome_id)
WHERE outcome_id IN (SELECT outcome_id FROM temp.spoilt);
UPDATE outcomes SET
	time_s = CASE WHEN s.bad_time THEN NULL ELSE time_s END,
	gpu_energy_j = CASE WHEN s.bad_gpu THEN NULL ELSE gpu_energy_j END, gpu_energy_source = CASE WHEN s.bad_gpu THEN '' ELSE gpu_energy_source END,
	node_energy_j = CASE WHEN s.bad_node THEN NULL ELSE node_energy_j END, node_energy_source = CASE WHEN s.bad_node THEN '' ELSE node_energy_source END,
	mean_power_w = CASE WHEN s.bad_mean THEN NULL ELSE mean_power_w END, peak_power_w = CASE WHEN s.bad_peak THEN NULL ELSE peak_power_w END
FROM temp.spoilt AS s WHERE s.outcome_id = outcomes.outcome_id;

-- More than this no sum comes to.
UPDATE run_days SET (time_s, gpu_runs, gpu_energy_j, node_runs, node_energy_j) = (
	SELECT TOTAL(o.time_s), COUNT(o.gpu_energy_j), TOTAL(o.gpu_energy_j), COUNT(o.node_energy_j), TOTAL(o.node_energy_j) FROM outcomes AS o
	WHERE o.unmatched = 0 AND o.cluster = run_days.cluster AND COALESCE(o.ended_us, o.received_us) / 86400000000 = run_days.day
		AND o.exit_state = run_days.exit_state AND o.arm = run_days.arm)
WHERE NOT (ABS(time_s) < 1e30 AND ABS(gpu_energy_j) < 1e30 AND ABS(node_energy_j) < 1e30)
	OR (cluster, day, exit_state, arm) IN (SELECT cluster, day, exit_state, arm FROM temp.spoilt);
UPDATE outcome_months SET done_gpu_runs = 0, done_gpu_j = 0, done_gpu_j2 = 0, done_node_runs = 0, done_node_j = 0, done_node_j2 = 0,
	predicted_runs = 0, predicted_j = 0, predicted_gpu_j = 0, time_s = 0, gpu_energy_j = 0, node_energy_j = 0
WHERE NOT (ABS(done_gpu_j) < 1e30 AND ABS(done_gpu_j2) < 1e60 AND ABS(done_node_j) < 1e30 AND ABS(done_node_j2) < 1e60
	AND ABS(time_s) < 1e30 AND ABS(gpu_energy_j) < 1e30 AND ABS(node_energy_j) < 1e30);

CREATE TEMP TABLE spoilt_sums AS SELECT cluster, workload, gpu_model FROM temp.spoilt
UNION SELECT cluster, workload, gpu_model FROM energy_sums WHERE NOT (ABS(done_gpu_j) < 1e30 AND ABS(done_gpu_j2) < 1e60
	AND ABS(done_node_j) < 1e30 AND ABS(done_node_j2) < 1e60);
DELETE FROM energy_sums WHERE (cluster, workload, gpu_model) IN (SELECT cluster, workload, gpu_model FROM temp.spoilt_sums);
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
		AND (o.cluster, o.workload, o.gpu_model) IN (SELECT cluster, workload, gpu_model FROM temp.spoilt_sums)
	GROUP BY o.job_id, CASE WHEN o.job_id > 0 THEN o.submitted_us END,
		CASE WHEN o.job_id <= 0 OR o.submitted_us IS NULL THEN o.outcome_id END,
		o.cluster, o.workload, o.gpu_model, o.arm)
GROUP BY cluster, day, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz;
INSERT INTO energy_sums
SELECT cluster, 0, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz, SUM(ended), SUM(done), SUM(done_gpu_runs), TOTAL(done_gpu_j),
	TOTAL(done_gpu_j2), SUM(done_node_runs), TOTAL(done_node_j), TOTAL(done_node_j2), SUM(predicted_runs), TOTAL(predicted_j), TOTAL(predicted_gpu_j)
FROM energy_sums WHERE day > 0 AND (cluster, workload, gpu_model) IN (SELECT cluster, workload, gpu_model FROM temp.spoilt_sums)
GROUP BY cluster, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz;
INSERT INTO energy_sums
SELECT cluster, -1, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz, 0, 0, SUM(done_gpu_runs), TOTAL(done_gpu_j), TOTAL(done_gpu_j2),
	SUM(done_node_runs), TOTAL(done_node_j), TOTAL(done_node_j2), SUM(predicted_runs), TOTAL(predicted_j), TOTAL(predicted_gpu_j)
FROM outcome_months WHERE workload != '' AND arm != 'excluded'
	AND (cluster, workload, gpu_model) IN (SELECT cluster, workload, gpu_model FROM temp.spoilt_sums)
GROUP BY cluster, workload, gpu_model, hold_out, arm, core_mhz, mem_mhz;
DROP TABLE temp.spoilt_sums;
DROP TABLE temp.spoilt;
