-- The part of the jobs that the lot had run at constant clocks when a run was decided:
-- none before. Only runs that were decided under the same parts are compared.
ALTER TABLE decisions ADD COLUMN constant_arm REAL;

ALTER TABLE outcome_months RENAME TO outcome_months_11;
CREATE TABLE outcome_months (
	cluster        TEXT    NOT NULL,
	workload       TEXT    NOT NULL,
	gpu_model      TEXT    NOT NULL,
	arm            TEXT    NOT NULL,
	month          TEXT    NOT NULL, -- YYYY-MM, UTC, of the end of the run
	hold_out       REAL    NOT NULL, -- -1: not known
	constant_arm   REAL    NOT NULL,
	core_mhz       REAL    NOT NULL, -- as decided; -1: any
	mem_mhz        REAL    NOT NULL,
	runs           INTEGER NOT NULL, -- on one node each
	time_s         REAL    NOT NULL, -- sum over all runs, as are the next two
	gpu_energy_j   REAL    NOT NULL,
	node_energy_j  REAL    NOT NULL,
	done_gpu_runs  INTEGER NOT NULL, -- of completed jobs, on all their nodes, with a known energy
	done_gpu_j     REAL    NOT NULL,
	done_gpu_j2    REAL    NOT NULL, -- sum of squares
	done_node_runs INTEGER NOT NULL,
	done_node_j    REAL    NOT NULL,
	done_node_j2   REAL    NOT NULL,
	predicted_runs INTEGER NOT NULL, -- those of done_gpu_runs with a prediction at default clocks
	predicted_j    REAL    NOT NULL, -- what they were thought to take there
	predicted_gpu_j REAL   NOT NULL, -- and what they took
	PRIMARY KEY (cluster, workload, gpu_model, arm, month, hold_out, constant_arm, core_mhz, mem_mhz)
) STRICT, WITHOUT ROWID;
INSERT INTO outcome_months
SELECT cluster, workload, gpu_model, arm, month, hold_out, 0, core_mhz, mem_mhz, runs, time_s, gpu_energy_j, node_energy_j,
	done_gpu_runs, done_gpu_j, done_gpu_j2, done_node_runs, done_node_j, done_node_j2, predicted_runs, predicted_j, predicted_gpu_j
FROM outcome_months_11;
DROP TABLE outcome_months_11;

ALTER TABLE energy_sums RENAME TO energy_sums_11;
CREATE TABLE energy_sums (
	cluster         TEXT    NOT NULL,
	day             INTEGER NOT NULL, -- of the job's end; 0: all days, -1: jobs whose details were pruned
	workload        TEXT    NOT NULL,
	gpu_model       TEXT    NOT NULL,
	hold_out        REAL    NOT NULL, -- -1: not known
	constant_arm    REAL    NOT NULL,
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
	PRIMARY KEY (cluster, day, workload, gpu_model, hold_out, constant_arm, arm, core_mhz, mem_mhz)
) STRICT, WITHOUT ROWID;
INSERT INTO energy_sums
SELECT cluster, day, workload, gpu_model, hold_out, 0, arm, core_mhz, mem_mhz, ended, done, done_gpu_runs, done_gpu_j, done_gpu_j2,
	done_node_runs, done_node_j, done_node_j2, predicted_runs, predicted_j, predicted_gpu_j
FROM energy_sums_11;
DROP TABLE energy_sums_11;
