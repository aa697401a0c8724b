-- Workloads whose model was taken out of use, and why: by an administrator, or
-- because its predictions missed.
CREATE TABLE models_out (
	cluster   TEXT    NOT NULL,
	workload  TEXT    NOT NULL,
	gpu_model TEXT    NOT NULL,
	note      TEXT    NOT NULL,
	since_us  INTEGER NOT NULL,
	PRIMARY KEY (cluster, workload, gpu_model)
) STRICT, WITHOUT ROWID;
