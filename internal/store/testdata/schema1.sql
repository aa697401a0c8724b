BEGIN TRANSACTION;
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
INSERT INTO "decisions" VALUES(7,'alpha',1001,'n1','token-1','run-000001','w0','V100',1200.0,877.0,100.0,90.0,110.0,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',1,'treated',1773500966535897);
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
INSERT INTO "jobs" VALUES(1,'alpha',1001,1773500966000000,'token-1','ann','acc','gpu',X'747261696E0AFF','5ca1ab1e','w0',5400.0,1,2,'COMPLETED');
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
INSERT INTO "models" VALUES('alpha','w0','V100',1,'paper','{"p0":1}','[1,0,0,1]',3,1773502167000000,1,'first');
CREATE TABLE outcome_conflicts (
	conflict_id INTEGER PRIMARY KEY,
	cluster     TEXT    NOT NULL,
	run_id      TEXT    NOT NULL,
	digest      BLOB    NOT NULL,
	body        TEXT    NOT NULL, -- the outcome that differs, as JSON
	received_us INTEGER NOT NULL,
	UNIQUE (cluster, run_id, digest)
) STRICT;
CREATE TABLE outcome_details (
	outcome_id  INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	gpus        TEXT, -- JSON: list of UUIDs
	clocks      TEXT, -- JSON: list of {core_mhz, mem_mhz, seconds_s}
	throttled_s TEXT, -- JSON: {reason: seconds}
	series      BLOB
) STRICT;
INSERT INTO "outcome_details" VALUES(1,'["GPU-a"]',NULL,NULL,X'01E0D40364FFC8');
INSERT INTO "outcome_details" VALUES(2,'["GPU-a"]',NULL,NULL,X'01E0D40364FFC8');
INSERT INTO "outcome_details" VALUES(3,'["GPU-a"]',NULL,NULL,X'01E0D40364FFC8');
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
INSERT INTO "outcomes" VALUES(1,'alpha','run-000001',1001,'n1',0,7,'w0','V100','treated',1773500966000000,1773500966535897,1773502166535897,'COMPLETED',1200.0,877.0,1200.0,1.05,100000.0,'counter',200000.0,'modelled',83.5,120.0,0.7,NULL,0,1773502167000000,X'0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "outcomes" VALUES(2,'alpha','run-000002',1002,'n1',0,7,'w0','V100','treated',1773500966000000,1773500966535897,1773502166535897,'COMPLETED',1200.0,877.0,1200.0,1.05,100001.0,'counter',200001.0,'modelled',83.5,120.0,0.7,NULL,0,1773502167000000,X'0101010101010101010101010101010101010101010101010101010101010101');
INSERT INTO "outcomes" VALUES(3,'alpha','run-000003',1003,'n1',0,7,'w0','V100','treated',1773500966000000,1773500966535897,1773502166535897,'COMPLETED',1200.0,877.0,1200.0,1.05,100002.0,'counter',200002.0,'modelled',83.5,120.0,0.7,NULL,0,1773502167000000,X'0202020202020202020202020202020202020202020202020202020202020202');
CREATE INDEX jobs_by_user ON jobs (cluster, user, seq);
CREATE INDEX decisions_by_job ON decisions (cluster, job_id, node, decision_id) WHERE job_id != 0;
CREATE INDEX decisions_by_token ON decisions (cluster, token, decision_id) WHERE token != '';
CREATE INDEX decisions_by_time ON decisions (created_us);
CREATE INDEX outcomes_by_workload ON outcomes (cluster, workload, gpu_model, outcome_id);
CREATE INDEX outcomes_by_job ON outcomes (cluster, job_id);
CREATE INDEX outcomes_by_time ON outcomes (received_us);
CREATE UNIQUE INDEX one_model_in_use ON models (cluster, workload, gpu_model) WHERE in_use = 1;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decisions',7);
INSERT INTO "sqlite_sequence" VALUES('outcomes',3);
COMMIT;
PRAGMA user_version = 1;
