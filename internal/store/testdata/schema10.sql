PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO jobs VALUES(1,'alpha',1001,1773501026000000,'token-1','user1','acc','gpu',X'610a6200ff','5ca1ab1e','w0',5400.0,1,2,'PENDING','PENDING');
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
, default_energy_j REAL, hold_out REAL, rung TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO decisions VALUES(1,'alpha',1001,'n1','token-1','r','w0','V100',1200.0,877.0,100.0,90.0,110.00000000000001421,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,NULL,NULL,'');
INSERT INTO decisions VALUES(2,'alpha',1003,'n1','token-3','run-000003','w0','V100',1200.0,877.0,100.0,90.0,110.00000000000001421,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.10000000000000000555,'');
INSERT INTO decisions VALUES(3,'alpha',1004,'n1','token-4','run-000004','w1','V100',1200.0,877.0,100.0,90.0,110.00000000000001421,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.10000000000000000555,'');
INSERT INTO decisions VALUES(4,'alpha',1005,'n1','token-5','run-000005','w2','V100',1200.0,877.0,100.0,90.0,110.00000000000001421,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.10000000000000000555,'');
INSERT INTO decisions VALUES(5,'alpha',1006,'n1','token-6','run-000006','w0','V100',1200.0,877.0,100.0,90.0,110.00000000000001421,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.10000000000000000555,'');
INSERT INTO decisions VALUES(6,'alpha',1007,'n1','token-7','run-000007','w1','V100',1200.0,877.0,100.0,90.0,110.00000000000001421,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.10000000000000000555,'');
INSERT INTO decisions VALUES(7,'alpha',1008,'n1','token-8','run-000008','w2','V100',1200.0,877.0,100.0,90.0,110.00000000000001421,80.0,72.0,88.0,8000.0,NULL,NULL,'deadline-bound','enforce','c1',3,'held-out',1773500966535897,120000.0,0.10000000000000000555,'');
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
INSERT INTO outcomes VALUES(2,'alpha','run-000002',1002,'n1',0,0,'w2','V100','treated',1773501086000000,1773501086535897,1773502286535897,'COMPLETED',1200.0,877.0,1200.0,1.0500000000000000444,100002.0,'counter',200002.0,'modelled',83.500000000000000003,120.0,0.69999999999999995559,NULL,0,1773500966535897,X'f6156f7de3bd3a0a823438675770953a9a7ceedd17da9b3de6ff1359c909c1d3');
INSERT INTO outcomes VALUES(4,'alpha','run-000003',1003,'n1',1,2,'w0','V100','treated',1773501146000000,1773501146535897,1773502346535897,'COMPLETED',1200.0,877.0,-60.0,1.0500000000000000444,1.6999999999999998576e+308,'counter',200003.0,'modelled',83.500000000000000003,120.0,0.69999999999999995559,NULL,0,1773500966535897,X'8d219793e9f3a3d0ca01a8535183f2a94c7100dd7442012e2eacac2fbdb3bdc4');
INSERT INTO outcomes VALUES(5,'alpha','run-000004',1004,'n1',0,3,'w1','V100','treated',1773501206000000,1773501206535897,1773502406535897,'COMPLETED',1200.0,877.0,1200.0,1.0500000000000000444,1.6999999999999998576e+308,'counter',1.6999999999999998576e+308,'modelled',83.500000000000000003,120.0,0.69999999999999995559,NULL,0,1773500966535897,X'353cb5bc24a89e2dab26b2073e1d8c567e0c912b7379e7f3aef52c7ec25442d8');
INSERT INTO outcomes VALUES(6,'alpha','run-000005',1005,'n1',1,4,'w2','V100','treated',1773501266000000,1773501266535897,1773502466535897,'COMPLETED',1200.0,877.0,1.6999999999999998576e+308,1.0500000000000000444,-1.6999999999999998576e+308,'counter',200005.0,'modelled',83.500000000000000003,120.0,0.69999999999999995559,NULL,0,1773500966535897,X'd329fd6cc50072afb9cba683da07fbde455435a0d0e6def25beadb69c9eb326d');
INSERT INTO outcomes VALUES(7,'alpha','run-000006',1006,'n1',0,5,'w0','V100','treated',1773501326000000,1773501326535897,1773502526535897,'COMPLETED',1200.0,877.0,1200.0,1.0500000000000000444,1.6999999999999998576e+308,'counter',1.6999999999999998576e+308,'modelled',83.500000000000000003,120.0,0.69999999999999995559,NULL,0,1773500966535897,X'3fabe66965031b6e292d2a23b59bb099ce99274edb928222ba076a9814bcf29c');
INSERT INTO outcomes VALUES(8,'alpha','run-000007',1007,'n1',1,6,'w0','V100','treated',1773501386000000,1773501386535897,1773502586535897,'COMPLETED',1200.0,877.0,1200.0,1.0500000000000000444,100007.0,'counter',200007.0,'modelled',83.500000000000000003,120.0,0.69999999999999995559,NULL,0,1773500966535897,X'421d2990d78263009b97d242f26c8eaca94cce8d5d32bff51047f255f6e66c01');
INSERT INTO outcomes VALUES(9,'alpha','run-000008',1008,'n1',0,7,'w2','V100','treated',1773501446000000,1773501446535897,1773502646535897,'COMPLETED',1200.0,877.0,1200.0,1.0500000000000000444,100008.0,'counter',200008.0,'modelled',83.500000000000000003,120.0,0.69999999999999995559,NULL,0,1773500966535897,X'0cdf06347c130ff14eb7daab69112b6d77c31153e12ee13414344c670f1089af');
CREATE TABLE outcome_details (
	outcome_id  INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	gpus        TEXT, -- JSON: list of UUIDs
	clocks      TEXT, -- JSON: list of {core_mhz, mem_mhz, seconds_s}
	throttled_s TEXT, -- JSON: {reason: seconds}
	series      BLOB
, readings BLOB, stays TEXT, restarted TEXT) STRICT;
INSERT INTO outcome_details VALUES(2,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01e0d403283c5064788ca0b40014283c5064788ca0b40014',NULL,NULL,NULL);
INSERT INTO outcome_details VALUES(4,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01e0d4033c5064788ca0b40014283c5064788ca0b4001428',NULL,NULL,NULL);
INSERT INTO outcome_details VALUES(5,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01e0d4035064788ca0b40014283c5064788ca0b40014283c',NULL,NULL,NULL);
INSERT INTO outcome_details VALUES(6,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01e0d40364788ca0b40014283c5064788ca0b40014283c50',NULL,NULL,NULL);
INSERT INTO outcome_details VALUES(7,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01e0d403788ca0b40014283c5064788ca0b40014283c5064',NULL,NULL,NULL);
INSERT INTO outcome_details VALUES(8,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01e0d4038ca0b40014283c5064788ca0b40014283c506478',NULL,NULL,NULL);
INSERT INTO outcome_details VALUES(9,'["GPU-a","GPU-b"]','[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}]','{"power_cap":12.5}',X'01e0d403a0b40014283c5064788ca0b40014283c5064788c',NULL,NULL,NULL);
CREATE TABLE outcome_conflicts (
	conflict_id INTEGER PRIMARY KEY,
	cluster     TEXT    NOT NULL,
	run_id      TEXT    NOT NULL,
	digest      BLOB    NOT NULL,
	body        TEXT    NOT NULL, -- the outcome that differs, as JSON
	received_us INTEGER NOT NULL,
	UNIQUE (cluster, run_id, digest)
) STRICT;
INSERT INTO outcome_conflicts VALUES(1,'alpha','run-000002',X'765fd3f759f7c876c13a93f2fdf83f7338a90d22e968d0ab5dba40769aff8802','{"cluster":"alpha","run_id":"run-000002","job_id":1002,"node":"elsewhere","restart":0,"decision_id":0,"workload":"w2","gpu_model":"V100","arm":"treated","submitted":"2026-03-14T15:11:26Z","started":"2026-03-14T15:11:26.535897Z","ended":"2026-03-14T15:31:26.535897Z","gpus":["GPU-a","GPU-b"],"exit_state":"COMPLETED","setting":{"core_mhz":1200,"mem_mhz":877},"time_s":1200,"slowdown":1.05,"gpu_energy_j":100002,"gpu_energy_source":"counter","node_energy_j":200002,"node_energy_source":"modelled","mean_power_w":83.5,"peak_power_w":120,"utilisation":0.7,"peak_memory_bytes":null,"clocks":[{"core_mhz":1200,"mem_mhz":877,"seconds_s":1190}],"throttled_s":{"power_cap":12.5},"series":"AeDUAyg8UGR4jKC0ABQoPFBkeIygtAAU","profile":"AQEBgYCAgASBgICAQCEB6AcAyADIAMgAyADIAMgAyADIAMgAyADIAMgAyADIAMghAegHAMgAyADIAMgAyADIAMgAyADIAMgAyADIAMgAyADI","unmatched":false}',1773500966535897);
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
INSERT INTO models VALUES('alpha','w0','V100',1,'paper','{"p0":1}','[1,0.5,0.5,2]',3,1773500966535897,1,'first');
CREATE TABLE pruned_runs (
	cluster TEXT NOT NULL,
	run_id  TEXT NOT NULL,
	digest  BLOB NOT NULL,
	PRIMARY KEY (cluster, run_id)
) STRICT, WITHOUT ROWID;
INSERT INTO pruned_runs VALUES('alpha','run-000001',X'4053831028fecb1acdf468f72130942c5de05ab850a022895a732972ee058959');
CREATE TABLE holdouts (
	cluster  TEXT    NOT NULL,
	from_us  INTEGER NOT NULL,
	fraction REAL    NOT NULL CHECK (fraction BETWEEN 0 AND 1),
	note     TEXT    NOT NULL,
	PRIMARY KEY (cluster, from_us)
) STRICT, WITHOUT ROWID;
INSERT INTO holdouts VALUES('alpha',1773500966535897,0.050000000000000002775,'');
CREATE TABLE models_out (
	cluster   TEXT    NOT NULL,
	workload  TEXT    NOT NULL,
	gpu_model TEXT    NOT NULL,
	note      TEXT    NOT NULL,
	since_us  INTEGER NOT NULL,
	PRIMARY KEY (cluster, workload, gpu_model)
) STRICT, WITHOUT ROWID;
INSERT INTO models_out VALUES('alpha','w1','V100','why',1773500966535897);
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
INSERT INTO history VALUES(1,'alpha','100_1',1773501026000000,1773501086000000,1773504626000000,'ada','physics','gpu','normal',X'747261696eff7c0a',4.0,32.0,1.0,'V100',7200.0,'COMPLETED',0.0,3600000.0,0.5,1773500966535897);
INSERT INTO history VALUES(2,'alpha','100_2',1773501086000000,1773501146000000,1773504686000000,'ada','physics','gpu','normal',X'747261696eff7c0a',4.0,32.0,1.0,'V100',7200.0,'COMPLETED',0.0,3600000.0,0.5,1773500966535897);
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
INSERT INTO outcome_months VALUES('alpha','w1','V100','treated','2026-03',-1.0,1200.0,877.0,1,1200.0,100001.0,200001.0,1,100001.0,10000200001.0,1,200001.0,40000400001.0,0,0.0,0.0);
CREATE TABLE features (
	cluster TEXT    NOT NULL,
	source  TEXT    NOT NULL, -- a job's script_hash
	script  BLOB, -- of the script
	code    BLOB, -- of it and the source code that it runs; NULL is not known
	digest  BLOB    NOT NULL, -- hash of what was read
	seen_us INTEGER NOT NULL,
	PRIMARY KEY (cluster, source)
) STRICT, WITHOUT ROWID;
INSERT INTO features VALUES('alpha','a',X'02020000803f',NULL,X'',1773500966535897);
CREATE TABLE outcome_profiles (
	outcome_id INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	cluster    TEXT    NOT NULL, -- this and the next two as the outcome has them
	workload   TEXT    NOT NULL,
	gpu_model  TEXT    NOT NULL,
	alone      INTEGER NOT NULL, -- nobody else was seen on its GPUs
	profile    BLOB    NOT NULL
) STRICT;
INSERT INTO outcome_profiles VALUES(2,'alpha','w2','V100',1,X'010101818080800481808080402101e80700c800c800c800c800c800c800c800c800c800c800c800c800c800c800c82101e80700c800c800c800c800c800c800c800c800c800c800c800c800c800c800c8');
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
INSERT INTO run_days VALUES('alpha',20526,'COMPLETED','treated',8,1.6999999999999998576e+308,8,1e999,8,1e999);
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
INSERT INTO energy_sums VALUES('alpha',-1,'w1','V100',-1.0,'treated',1200.0,877.0,0,0,1,100001.0,10000200001.0,1,200001.0,40000400001.0,0,0.0,0.0);
INSERT INTO energy_sums VALUES('alpha',0,'w0','V100',0.10000000000000000555,'treated',1200.0,877.0,3,3,3,1e999,1e999,3,1.6999999999999998576e+308,1e999,3,360000.0,1e999);
INSERT INTO energy_sums VALUES('alpha',0,'w1','V100',-1.0,'treated',1200.0,877.0,0,0,0,0.0,0.0,0,0.0,0.0,0,0.0,0.0);
INSERT INTO energy_sums VALUES('alpha',0,'w1','V100',0.10000000000000000555,'treated',1200.0,877.0,1,1,1,1.6999999999999998576e+308,1e999,1,1.6999999999999998576e+308,1e999,1,120000.0,1.6999999999999998576e+308);
INSERT INTO energy_sums VALUES('alpha',0,'w2','V100',-1.0,'treated',1200.0,877.0,1,1,1,100002.0,10000400004.0,1,200002.0,40000800004.0,0,0.0,0.0);
INSERT INTO energy_sums VALUES('alpha',0,'w2','V100',0.10000000000000000555,'treated',1200.0,877.0,2,2,2,-1.6999999999999998576e+308,1e999,2,400013.0,80005200089.0,2,240000.0,-1.6999999999999998576e+308);
INSERT INTO energy_sums VALUES('alpha',20526,'w0','V100',0.10000000000000000555,'treated',1200.0,877.0,3,3,3,1e999,1e999,3,1.6999999999999998576e+308,1e999,3,360000.0,1e999);
INSERT INTO energy_sums VALUES('alpha',20526,'w1','V100',0.10000000000000000555,'treated',1200.0,877.0,1,1,1,1.6999999999999998576e+308,1e999,1,1.6999999999999998576e+308,1e999,1,120000.0,1.6999999999999998576e+308);
INSERT INTO energy_sums VALUES('alpha',20526,'w2','V100',-1.0,'treated',1200.0,877.0,1,1,1,100002.0,10000400004.0,1,200002.0,40000800004.0,0,0.0,0.0);
INSERT INTO energy_sums VALUES('alpha',20526,'w2','V100',0.10000000000000000555,'treated',1200.0,877.0,2,2,2,-1.6999999999999998576e+308,1e999,2,400013.0,80005200089.0,2,240000.0,-1.6999999999999998576e+308);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('outcomes',9);
INSERT INTO sqlite_sequence VALUES('decisions',7);
CREATE INDEX decisions_by_job ON decisions (cluster, job_id, node, decision_id) WHERE job_id != 0;
CREATE INDEX decisions_by_token ON decisions (cluster, token, decision_id) WHERE token != '';
CREATE INDEX decisions_by_time ON decisions (created_us);
CREATE INDEX outcomes_by_workload ON outcomes (cluster, workload, gpu_model, outcome_id);
CREATE INDEX outcomes_by_job ON outcomes (cluster, job_id);
CREATE INDEX outcomes_by_time ON outcomes (received_us);
CREATE UNIQUE INDEX one_model_in_use ON models (cluster, workload, gpu_model) WHERE in_use = 1;
CREATE INDEX conflicts_by_time ON outcome_conflicts (received_us);
CREATE INDEX jobs_by_time ON jobs (submitted_us);
CREATE UNIQUE INDEX history_by_submission ON history (cluster, submitted_us, job_id);
CREATE INDEX history_by_time ON history (received_us);
CREATE INDEX features_by_time ON features (seen_us);
CREATE INDEX profiles_by_workload ON outcome_profiles (cluster, workload, gpu_model, alone, outcome_id);
CREATE INDEX jobs_by_user ON jobs (cluster, user, submitted_us);
CREATE INDEX jobs_by_partition ON jobs (cluster, partition, submitted_us);
CREATE INDEX jobs_by_workload ON jobs (cluster, workload, submitted_us);
CREATE INDEX jobs_by_state ON jobs (cluster, shown, submitted_us);
CREATE INDEX outcomes_by_end ON outcomes (cluster, COALESCE(ended_us, received_us));
COMMIT;
PRAGMA user_version = 10;
