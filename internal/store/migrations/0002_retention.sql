-- What remains of outcomes whose details were pruned: sums per month, and the
-- run ids, so that a late repeat is still known as one.
CREATE TABLE outcome_months (
	cluster        TEXT    NOT NULL,
	workload       TEXT    NOT NULL,
	gpu_model      TEXT    NOT NULL,
	arm            TEXT    NOT NULL,
	month          TEXT    NOT NULL, -- YYYY-MM, UTC, of the end of the run
	runs           INTEGER NOT NULL,
	time_s         REAL    NOT NULL, -- sum over all runs, as are the next two
	gpu_energy_j   REAL    NOT NULL,
	node_energy_j  REAL    NOT NULL,
	done_gpu_runs  INTEGER NOT NULL, -- completed runs with a known energy
	done_gpu_j     REAL    NOT NULL,
	done_gpu_j2    REAL    NOT NULL, -- sum of squares
	done_node_runs INTEGER NOT NULL,
	done_node_j    REAL    NOT NULL,
	done_node_j2   REAL    NOT NULL,
	PRIMARY KEY (cluster, workload, gpu_model, arm, month)
) STRICT, WITHOUT ROWID;

CREATE TABLE pruned_runs (
	cluster TEXT NOT NULL,
	run_id  TEXT NOT NULL,
	digest  BLOB NOT NULL,
	PRIMARY KEY (cluster, run_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdouts (
	cluster  TEXT    NOT NULL,
	from_us  INTEGER NOT NULL,
	fraction REAL    NOT NULL CHECK (fraction BETWEEN 0 AND 1),
	note     TEXT    NOT NULL,
	PRIMARY KEY (cluster, from_us)
) STRICT, WITHOUT ROWID;
CREATE INDEX conflicts_by_time ON outcome_conflicts (received_us);
CREATE INDEX jobs_by_time ON jobs (submitted_us);
