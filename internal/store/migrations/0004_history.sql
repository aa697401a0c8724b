-- Jobs of imported logs: what predictions learn from besides the outcomes.
CREATE TABLE history (
	seq          INTEGER PRIMARY KEY,
	cluster      TEXT    NOT NULL,
	job_id       TEXT    NOT NULL, -- as the log has it: 12, 12_4, 13+1
	submitted_us INTEGER NOT NULL,
	started_us   INTEGER,
	ended_us     INTEGER,
	user         TEXT    NOT NULL,
	account      TEXT    NOT NULL,
	partition    TEXT    NOT NULL,
	qos          TEXT    NOT NULL,
	name         BLOB    NOT NULL,
	gpus         REAL,
	cpus         REAL,
	nodes        REAL,
	gpu_model    TEXT    NOT NULL,
	limit_s      REAL,
	state        TEXT    NOT NULL,
	exit_code    REAL,
	energy_j     REAL,
	utilisation  REAL,
	received_us  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX history_by_submission ON history (cluster, submitted_us, job_id);
CREATE INDEX history_by_time ON history (received_us);
