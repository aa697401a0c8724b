-- Times end in _us: microseconds since 1970-01-01 UTC. NULL is unknown.
CREATE TABLE jobs (
	seq          INTEGER PRIMARY KEY,
	cluster      TEXT    NOT NULL,
	job_id       INTEGER NOT NULL,
	submitted_us INTEGER NOT NULL,
	token        TEXT    NOT NULL DEFAULT '',
	user         TEXT    NOT NULL,
	account      TEXT    NOT NULL,
	partition    TEXT    NOT NULL,
	name         BLOB    NOT NULL,
	script_hash  TEXT    NOT NULL,
	workload     TEXT    NOT NULL,
	limit_s      REAL,
	nodes        INTEGER NOT NULL,
	gpus         INTEGER NOT NULL,
	state        TEXT    NOT NULL,
	UNIQUE (cluster, job_id, submitted_us)
) STRICT;
CREATE INDEX jobs_by_user ON jobs (cluster, user, seq);

CREATE TABLE decisions (
	decision_id    INTEGER PRIMARY KEY AUTOINCREMENT,
	cluster        TEXT    NOT NULL,
	job_id         INTEGER NOT NULL,
	node           TEXT    NOT NULL,
	token          TEXT    NOT NULL,
	run_id         TEXT    NOT NULL,
	workload       TEXT    NOT NULL,
	gpu_model      TEXT    NOT NULL,
	core_mhz       REAL    NOT NULL,
	mem_mhz        REAL    NOT NULL,
	time_s         REAL, time_low_s    REAL, time_high_s   REAL,
	power_w        REAL, power_low_w   REAL, power_high_w  REAL,
	energy_j       REAL, energy_low_j  REAL, energy_high_j REAL,
	reason         TEXT    NOT NULL,
	mode           TEXT    NOT NULL,
	config_version TEXT    NOT NULL,
	model_version  INTEGER NOT NULL,
	arm            TEXT    NOT NULL,
	created_us     INTEGER NOT NULL
) STRICT;
CREATE INDEX decisions_by_job ON decisions (cluster, job_id, node, decision_id) WHERE job_id != 0;
CREATE INDEX decisions_by_token ON decisions (cluster, token, decision_id) WHERE token != '';
CREATE INDEX decisions_by_time ON decisions (created_us);

CREATE TABLE outcomes (
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
	UNIQUE (cluster, run_id)
) STRICT;
CREATE INDEX outcomes_by_workload ON outcomes (cluster, workload, gpu_model, outcome_id);
CREATE INDEX outcomes_by_job ON outcomes (cluster, job_id);
CREATE INDEX outcomes_by_time ON outcomes (received_us);

CREATE TABLE outcome_details (
	outcome_id  INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	gpus        TEXT, -- JSON: list of UUIDs
	clocks      TEXT, -- JSON: list of {core_mhz, mem_mhz, seconds_s}
	throttled_s TEXT, -- JSON: {reason: seconds}
	series      BLOB
) STRICT;

CREATE TABLE outcome_conflicts (
	conflict_id INTEGER PRIMARY KEY,
	cluster     TEXT    NOT NULL,
	run_id      TEXT    NOT NULL,
	digest      BLOB    NOT NULL,
	body        TEXT    NOT NULL, -- the outcome that differs, as JSON
	received_us INTEGER NOT NULL,
	UNIQUE (cluster, run_id, digest)
) STRICT;

CREATE TABLE models (
	cluster      TEXT    NOT NULL,
	workload     TEXT    NOT NULL,
	gpu_model    TEXT    NOT NULL,
	version      INTEGER NOT NULL,
	form         TEXT    NOT NULL,
	coefficients TEXT    NOT NULL, -- JSON
	covariance   TEXT    NOT NULL, -- JSON: row by row
	samples      INTEGER NOT NULL,
	created_us   INTEGER NOT NULL,
	in_use       INTEGER NOT NULL,
	note         TEXT    NOT NULL,
	PRIMARY KEY (cluster, workload, gpu_model, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_model_in_use ON models (cluster, workload, gpu_model) WHERE in_use = 1;
