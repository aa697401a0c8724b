PRAGMA foreign_keys=OFF;
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
, default_energy_j REAL, hold_out REAL, rung TEXT NOT NULL DEFAULT '', constant_arm REAL) STRICT;
INSERT INTO "decisions" VALUES(1,'alpha',1001,'n1','token-1','r','w0','V100',1200.0,877.0,100.0,90.0,1.10000000000000014216e+02,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,NULL,NULL,'',NULL);
INSERT INTO "decisions" VALUES(2,'alpha',1003,'n1','token-3','run-000003','w0','V100',1200.0,877.0,100.0,90.0,1.10000000000000014216e+02,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.1,'',NULL);
INSERT INTO "decisions" VALUES(3,'alpha',1004,'n1','token-4','run-000004','w1','V100',1200.0,877.0,100.0,90.0,1.10000000000000014216e+02,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.1,'',NULL);
INSERT INTO "decisions" VALUES(4,'alpha',1005,'n1','token-5','run-000005','w2','V100',1200.0,877.0,100.0,90.0,1.10000000000000014216e+02,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.1,'',NULL);
INSERT INTO "decisions" VALUES(5,'alpha',1006,'n1','token-6','run-000006','w0','V100',1200.0,877.0,100.0,90.0,1.10000000000000014216e+02,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.1,'',NULL);
INSERT INTO "decisions" VALUES(6,'alpha',1007,'n1','token-7','run-000007','w1','V100',1200.0,877.0,100.0,90.0,1.10000000000000014216e+02,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.1,'',NULL);
INSERT INTO "decisions" VALUES(7,'alpha',1008,'n1','token-8','run-000008','w2','V100',1200.0,877.0,100.0,90.0,1.10000000000000014216e+02,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.1,'',NULL);
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
INSERT INTO "energy_sums" VALUES('alpha',-1,'w1','V100',-1.0,0.0,'treated',1200.0,877.0,0,0,1,100001.0,10000200001.0,1,200001.0,40000400001.0,0,0.0,0.0);
INSERT INTO "energy_sums" VALUES('alpha',0,'w0','V100',0.1,0.0,'treated',1200.0,877.0,3,3,1,100007.0,10001400049.0,1,200007.0,40002800049.0,1,120000.0,100007.0);
INSERT INTO "energy_sums" VALUES('alpha',0,'w1','V100',0.1,0.0,'treated',1200.0,877.0,1,1,0,0.0,0.0,0,0.0,0.0,0,0.0,0.0);
INSERT INTO "energy_sums" VALUES('alpha',0,'w2','V100',-1.0,0.0,'treated',1200.0,877.0,1,1,1,100002.0,10000400004.0,1,200002.0,40000800004.0,0,0.0,0.0);
INSERT INTO "energy_sums" VALUES('alpha',0,'w2','V100',0.1,0.0,'treated',1200.0,877.0,2,2,1,100008.0,10001600064.0,1,200008.0,40003200064.0,1,120000.0,100008.0);
INSERT INTO "energy_sums" VALUES('alpha',20526,'w0','V100',0.1,0.0,'treated',1200.0,877.0,3,3,1,100007.0,10001400049.0,1,200007.0,40002800049.0,1,120000.0,100007.0);
INSERT INTO "energy_sums" VALUES('alpha',20526,'w1','V100',0.1,0.0,'treated',1200.0,877.0,1,1,0,0.0,0.0,0,0.0,0.0,0,0.0,0.0);
INSERT INTO "energy_sums" VALUES('alpha',20526,'w2','V100',-1.0,0.0,'treated',1200.0,877.0,1,1,1,100002.0,10000400004.0,1,200002.0,40000800004.0,0,0.0,0.0);
INSERT INTO "energy_sums" VALUES('alpha',20526,'w2','V100',0.1,0.0,'treated',1200.0,877.0,2,2,1,100008.0,10001600064.0,1,200008.0,40003200064.0,1,120000.0,100008.0);
CREATE TABLE features (
	cluster TEXT    NOT NULL,
	source  TEXT    NOT NULL, -- a job's script_hash
	script  BLOB, -- of the script
	code    BLOB, -- of it and the source code that it runs; NULL is not known
	digest  BLOB    NOT NULL, -- hash of what was read
	seen_us INTEGER NOT NULL,
	PRIMARY KEY (cluster, source)
) STRICT, WITHOUT ROWID;
INSERT INTO "features" VALUES('alpha','a',X'02020000803F',NULL,X'',1773500966535897);
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
INSERT INTO "history" VALUES(1,'alpha','100_1',1773501026000000,1773501086000000,1773504626000000,'ada','physics','gpu','normal',X'747261696EFF7C0A',4.0,32.0,1.0,'V100',7200.0,'COMPLETED',0.0,3600000.0,0.5,1773500966535897);
INSERT INTO "history" VALUES(2,'alpha','100_2',1773501086000000,1773501146000000,1773504686000000,'ada','physics','gpu','normal',X'747261696EFF7C0A',4.0,32.0,1.0,'V100',7200.0,'COMPLETED',0.0,3600000.0,0.5,1773500966535897);
CREATE TABLE holdouts (
	cluster  TEXT    NOT NULL,
	from_us  INTEGER NOT NULL,
	fraction REAL    NOT NULL CHECK (fraction BETWEEN 0 AND 1),
	note     TEXT    NOT NULL,
	PRIMARY KEY (cluster, from_us)
) STRICT, WITHOUT ROWID;
INSERT INTO "holdouts" VALUES('alpha',1773500966535897,0.05,'');
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
	state        TEXT    NOT NULL, shown TEXT NOT NULL DEFAULT '',
	UNIQUE (cluster, job_id, submitted_us)
) STRICT;
INSERT INTO "jobs" VALUES(1,'alpha',1001,1773501026000000,'token-1','user1','acc','gpu',X'610A6200FF','5ca1ab1e','w0',5400.0,1,2,'PENDING','PENDING');
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
INSERT INTO "models" VALUES('alpha','w0','V100',1,'paper','{"p0":1}','[1,0.5,0.5,2]',3,1773500966535897,1,'first');
CREATE TABLE models_out (
	cluster   TEXT    NOT NULL,
	workload  TEXT    NOT NULL,
	gpu_model TEXT    NOT NULL,
	note      TEXT    NOT NULL,
	since_us  INTEGER NOT NULL,
	PRIMARY KEY (cluster, workload, gpu_model)
) STRICT, WITHOUT ROWID;
INSERT INTO "models_out" VALUES('alpha','w1','V100','why',1773500966535897);
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
INSERT INTO "outcome_conflicts" VALUES(1,'alpha','elsewhere','run-000002',X'765FD3F759F7C876C13A93F2FDF83F7338A90D22E968D0AB5DBA40769AFF8802','{"cluster":"alpha","run_id":"run-000002","job_id":1002,"node":"elsewhere","restart":0,"decision_id":0,"workload":"w2","gpu_model":"V100","arm":"treated","submitted":"2026-03-14T15:11:26Z","started":"2026-03-14T15:11:26.535897Z","ended":"2026-03-14T15:31:26.535897Z","gpus":["GPU-a","GPU-b"],"exit_state":"COMPLETED","setting":{"core_mhz":1200,"mem_mhz":877},"time_s":1200,"slowdown":1.05,"gpu_energy_j":100002,"gpu_energy_source":"counter","node_energy_j":200002,"node_energy_source":"modelled","mean_power_w":83.5,"peak_power_w":120,"utilisation":0.7,"peak_memory_bytes":null,"clocks":[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}],"throttled_s":{"power_cap":12.5},"series":"AeDUAyg8UGR4jKC0ABQoPFBkeIygtAAU","profile":"AQEBgYCAgASBgICAQCEB6AcAyADIAMgAyADIAMgAyADIAMgAyADIAMgAyADIAMghAegHAMgAyADIAMgAyADIAMgAyADIAMgAyADIAMgAyADI","unmatched":false}',1773500966535897);
CREATE TABLE outcome_details (
	outcome_id  INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	gpus        TEXT, -- JSON: list of UUIDs
	clocks      TEXT, -- JSON: list of {core_mhz, mem_mhz, seconds_s}
	throttled_s TEXT, -- JSON: {reason: seconds}
	series      BLOB
, readings BLOB, stays TEXT, restarted TEXT, implausible TEXT) STRICT;
INSERT INTO "outcome_details" VALUES(2,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01E0D403283C5064788CA0B40014283C5064788CA0B40014',NULL,NULL,NULL,NULL);
INSERT INTO "outcome_details" VALUES(4,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01E0D4033C5064788CA0B40014283C5064788CA0B4001428',NULL,NULL,NULL,'{"why":"recorded before epd looked at what can be","time_s":-60.0,"gpu_energy_j":1.7e+308,"gpu_energy_source":"counter","node_energy_j":200003.0,"node_energy_source":"modelled"}');
INSERT INTO "outcome_details" VALUES(5,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01E0D4035064788CA0B40014283C5064788CA0B40014283C',NULL,NULL,NULL,'{"why":"recorded before epd looked at what can be","gpu_energy_j":1.7e+308,"gpu_energy_source":"counter","node_energy_j":1.7e+308,"node_energy_source":"modelled"}');
INSERT INTO "outcome_details" VALUES(6,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01E0D40364788CA0B40014283C5064788CA0B40014283C50',NULL,NULL,NULL,'{"why":"recorded before epd looked at what can be","time_s":1.7e+308,"gpu_energy_j":-1.7e+308,"gpu_energy_source":"counter","node_energy_j":200005.0,"node_energy_source":"modelled"}');
INSERT INTO "outcome_details" VALUES(7,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01E0D403788CA0B40014283C5064788CA0B40014283C5064',NULL,NULL,NULL,'{"why":"recorded before epd looked at what can be","gpu_energy_j":1.7e+308,"gpu_energy_source":"counter","node_energy_j":1.7e+308,"node_energy_source":"modelled"}');
INSERT INTO "outcome_details" VALUES(8,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01E0D4038CA0B40014283C5064788CA0B40014283C506478',NULL,NULL,NULL,NULL);
INSERT INTO "outcome_details" VALUES(9,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01E0D403A0B40014283C5064788CA0B40014283C5064788C',NULL,NULL,NULL,NULL);
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
INSERT INTO "outcome_months" VALUES('alpha','w1','V100','treated','2026-03',-1.0,0.0,1200.0,877.0,1,1200.0,100001.0,200001.0,1,100001.0,10000200001.0,1,200001.0,40000400001.0,0,0.0,0.0);
CREATE TABLE outcome_profiles (
	outcome_id INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	cluster    TEXT    NOT NULL, -- this and the next two as the outcome has them
	workload   TEXT    NOT NULL,
	gpu_model  TEXT    NOT NULL,
	alone      INTEGER NOT NULL, -- nobody else was seen on its GPUs
	profile    BLOB    NOT NULL
) STRICT;
INSERT INTO "outcome_profiles" VALUES(2,'alpha','w2','V100',1,X'010101818080800481808080402101E80700C800C800C800C800C800C800C800C800C800C800C800C800C800C800C82101E80700C800C800C800C800C800C800C800C800C800C800C800C800C800C800C8');
CREATE TABLE "outcomes" (
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
INSERT INTO "outcomes" VALUES(2,'alpha','run-000002',1002,'n1',0,0,'w2','V100','treated',1773501086000000,1773501086535897,1773502286535897,'COMPLETED',1200.0,877.0,1200.0,1.05,100002.0,'counter',200002.0,'modelled',83.5,120.0,0.7,NULL,0,1773500966535897,X'F6156F7DE3BD3A0A823438675770953A9A7CEEDD17DA9B3DE6FF1359C909C1D3');
INSERT INTO "outcomes" VALUES(4,'alpha','run-000003',1003,'n1',1,2,'w0','V100','treated',1773501146000000,1773501146535897,1773502346535897,'COMPLETED',1200.0,877.0,NULL,1.05,NULL,'',NULL,'',83.5,120.0,0.7,NULL,0,1773500966535897,X'8D219793E9F3A3D0CA01A8535183F2A94C7100DD7442012E2EACAC2FBDB3BDC4');
INSERT INTO "outcomes" VALUES(5,'alpha','run-000004',1004,'n1',0,3,'w1','V100','treated',1773501206000000,1773501206535897,1773502406535897,'COMPLETED',1200.0,877.0,1200.0,1.05,NULL,'',NULL,'',83.5,120.0,0.7,NULL,0,1773500966535897,X'353CB5BC24A89E2DAB26B2073E1D8C567E0C912B7379E7F3AEF52C7EC25442D8');
INSERT INTO "outcomes" VALUES(6,'alpha','run-000005',1005,'n1',1,4,'w2','V100','treated',1773501266000000,1773501266535897,1773502466535897,'COMPLETED',1200.0,877.0,NULL,1.05,NULL,'',NULL,'',83.5,120.0,0.7,NULL,0,1773500966535897,X'D329FD6CC50072AFB9CBA683DA07FBDE455435A0D0E6DEF25BEADB69C9EB326D');
INSERT INTO "outcomes" VALUES(7,'alpha','run-000006',1006,'n1',0,5,'w0','V100','treated',1773501326000000,1773501326535897,1773502526535897,'COMPLETED',1200.0,877.0,1200.0,1.05,NULL,'',NULL,'',83.5,120.0,0.7,NULL,0,1773500966535897,X'3FABE66965031B6E292D2A23B59BB099CE99274EDB928222BA076A9814BCF29C');
INSERT INTO "outcomes" VALUES(8,'alpha','run-000007',1007,'n1',1,6,'w0','V100','treated',1773501386000000,1773501386535897,1773502586535897,'COMPLETED',1200.0,877.0,1200.0,1.05,100007.0,'counter',200007.0,'modelled',83.5,120.0,0.7,NULL,0,1773500966535897,X'421D2990D78263009B97D242F26C8EACA94CCE8D5D32BFF51047F255F6E66C01');
INSERT INTO "outcomes" VALUES(9,'alpha','run-000008',1008,'n1',0,7,'w2','V100','treated',1773501446000000,1773501446535897,1773502646535897,'COMPLETED',1200.0,877.0,1200.0,1.05,100008.0,'counter',200008.0,'modelled',83.5,120.0,0.7,NULL,0,1773500966535897,X'0CDF06347C130FF14EB7DAAB69112B6D77C31153E12EE13414344C670F1089AF');
CREATE TABLE pruned_runs (
	cluster TEXT NOT NULL,
	run_id  TEXT NOT NULL,
	node    TEXT NOT NULL,
	digest  BLOB NOT NULL,
	PRIMARY KEY (cluster, run_id, node)
) STRICT, WITHOUT ROWID;
INSERT INTO "pruned_runs" VALUES('alpha','run-000001','',X'4053831028FECB1ACDF468F72130942C5DE05AB850A022895A732972EE058959');
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
INSERT INTO "run_days" VALUES('alpha',20526,'COMPLETED','treated',8,6000.0,3,300017.0,3,600017.0);
CREATE INDEX decisions_by_job ON decisions (cluster, job_id, node, decision_id) WHERE job_id != 0;
CREATE INDEX decisions_by_token ON decisions (cluster, token, decision_id) WHERE token != '';
CREATE INDEX decisions_by_time ON decisions (created_us);
CREATE UNIQUE INDEX one_model_in_use ON models (cluster, workload, gpu_model) WHERE in_use = 1;
CREATE INDEX jobs_by_time ON jobs (submitted_us);
CREATE UNIQUE INDEX history_by_submission ON history (cluster, submitted_us, job_id);
CREATE INDEX history_by_time ON history (received_us);
CREATE INDEX features_by_time ON features (seen_us);
CREATE INDEX profiles_by_workload ON outcome_profiles (cluster, workload, gpu_model, alone, outcome_id);
CREATE INDEX jobs_by_user ON jobs (cluster, user, submitted_us);
CREATE INDEX jobs_by_partition ON jobs (cluster, partition, submitted_us);
CREATE INDEX jobs_by_workload ON jobs (cluster, workload, submitted_us);
CREATE INDEX jobs_by_state ON jobs (cluster, shown, submitted_us);
CREATE INDEX outcomes_by_workload ON outcomes (cluster, workload, gpu_model, outcome_id);
CREATE INDEX outcomes_by_job ON outcomes (cluster, job_id);
CREATE INDEX outcomes_by_time ON outcomes (received_us);
CREATE INDEX outcomes_by_end ON outcomes (cluster, COALESCE(ended_us, received_us));
CREATE INDEX conflicts_by_time ON outcome_conflicts (received_us);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decisions',7);
INSERT INTO "sqlite_sequence" VALUES('outcomes',9);
COMMIT;
PRAGMA user_version = 12;
