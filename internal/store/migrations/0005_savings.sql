-- What savings are computed from: the energy that a run was thought to take at
-- default clocks, and the part of the runs that the lot held out when it was
-- decided. Sums of pruned outcomes are kept by what was decided, too.
ALTER TABLE decisions ADD COLUMN default_energy_j REAL;
ALTER TABLE decisions ADD COLUMN hold_out REAL;

ALTER TABLE outcome_months RENAME TO outcome_months_4;
CREATE TABLE outcome_months (
	cluster        TEXT    NOT NULL,
	workload       TEXT    NOT NULL,
	gpu_model      TEXT    NOT NULL,
	arm            TEXT    NOT NULL,
	month          TEXT    NOT NULL, -- YYYY-MM, UTC, of the end of the run
	hold_out       REAL    NOT NULL, -- -1: not known
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
	PRIMARY KEY (cluster, workload, gpu_model, arm, month, hold_out, core_mhz, mem_mhz)
) STRICT, WITHOUT ROWID;
INSERT INTO outcome_months
SELECT cluster, workload, gpu_model, arm, month, -1, -1, -1, runs, time_s, gpu_energy_j, node_energy_j,
	done_gpu_runs, done_gpu_j, done_gpu_j2, done_node_runs, done_node_j, done_node_j2, 0, 0, 0
FROM outcome_months_4;
DROP TABLE outcome_months_4;
