-- The schema of a new database.
--
-- Times end in _us: microseconds since 1970-01-01 UTC. NULL is unknown.
-- docs/records.md says what the rows are.

-- What is known of jobs, and what was decided for them.

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
	shown        TEXT    NOT NULL DEFAULT '', -- how it ended once all its runs are over, else as state has it
	array_job    INTEGER NOT NULL DEFAULT 0, -- the array of which it is a task; 0: of none
	array_task   INTEGER NOT NULL DEFAULT 0,
	UNIQUE (cluster, job_id, submitted_us)
) STRICT;
CREATE INDEX jobs_by_time ON jobs (submitted_us);
CREATE INDEX jobs_by_user ON jobs (user, submitted_us);
CREATE INDEX jobs_by_partition ON jobs (partition, submitted_us);
CREATE INDEX jobs_by_workload ON jobs (workload, submitted_us);
CREATE INDEX jobs_by_state ON jobs (shown, submitted_us) WHERE shown != 'COMPLETED';
CREATE INDEX jobs_by_array ON jobs (array_job, array_task, submitted_us) WHERE array_job != 0;

CREATE TABLE decisions (
	decision_id      INTEGER PRIMARY KEY AUTOINCREMENT,
	cluster          TEXT    NOT NULL,
	job_id           INTEGER NOT NULL,
	node             TEXT    NOT NULL,
	token            TEXT    NOT NULL,
	run_id           TEXT    NOT NULL,
	workload         TEXT    NOT NULL,
	gpu_model        TEXT    NOT NULL,
	core_mhz         REAL    NOT NULL,
	mem_mhz          REAL    NOT NULL,
	time_s           REAL, time_low_s    REAL, time_high_s   REAL,
	power_w          REAL, power_low_w   REAL, power_high_w  REAL,
	energy_j         REAL, energy_low_j  REAL, energy_high_j REAL,
	reason           TEXT    NOT NULL,
	mode             TEXT    NOT NULL,
	config_version   TEXT    NOT NULL,
	model_version    INTEGER NOT NULL,
	arm              TEXT    NOT NULL,
	created_us       INTEGER NOT NULL,
	default_energy_j REAL, -- predicted at default clocks
	hold_out         REAL, -- the part of the jobs that the lot held out when it was decided
	rung             TEXT    NOT NULL DEFAULT '', -- what a prediction rests on; '': a model of the workload, or nothing
	constant_arm     REAL, -- the part that the lot had run at constant clocks
	cap_w            REAL    NOT NULL DEFAULT 0, -- the power limit that was decided; 0: none
	power_profile    TEXT    NOT NULL DEFAULT '' -- the workload power profile that was decided; '': none
) STRICT;
CREATE INDEX decisions_by_job ON decisions (cluster, job_id, node, decision_id) WHERE job_id != 0;
CREATE INDEX decisions_by_token ON decisions (cluster, token, decision_id) WHERE token != '';
CREATE INDEX decisions_by_time ON decisions (created_us);

-- What runs came to. A run is named by its node, too: what another node sends under
-- the same id is another run.

CREATE TABLE outcomes (
	outcome_id         INTEGER PRIMARY KEY AUTOINCREMENT,
	cluster            TEXT    NOT NULL,
	run_id             TEXT    NOT NULL,
	job_id             INTEGER NOT NULL,
	node               TEXT    NOT NULL,
	restart_count      INTEGER NOT NULL,
	decision_id        INTEGER NOT NULL,
	workload           TEXT    NOT NULL,
	gpu_model          TEXT    NOT NULL,
	arm                TEXT    NOT NULL,
	submitted_us       INTEGER,
	started_us         INTEGER,
	ended_us           INTEGER,
	exit_state         TEXT    NOT NULL,
	core_mhz           REAL    NOT NULL,
	mem_mhz            REAL    NOT NULL,
	time_s             REAL,
	slowdown           REAL,
	gpu_energy_j       REAL,
	gpu_energy_source  TEXT    NOT NULL,
	node_energy_j      REAL,
	node_energy_source TEXT    NOT NULL,
	mean_power_w       REAL,
	peak_power_w       REAL,
	utilisation        REAL,
	peak_memory_bytes  REAL,
	unmatched          INTEGER NOT NULL,
	received_us        INTEGER NOT NULL,
	digest             BLOB    NOT NULL,
	set_cap_w          REAL    NOT NULL DEFAULT 0, -- the power limit that epd set; 0: none
	cap_w              REAL,                       -- the one in force for the longest time, by whomever
	other_caps_s       REAL,                       -- how long others were
	set_power_profile  TEXT    NOT NULL DEFAULT '', -- the workload power profile that epd set; '': none
	UNIQUE (cluster, run_id, node)
) STRICT;
CREATE INDEX outcomes_by_workload ON outcomes (workload, gpu_model, outcome_id);
CREATE INDEX outcomes_by_job ON outcomes (job_id);
CREATE INDEX outcomes_by_time ON outcomes (received_us);
CREATE INDEX outcomes_by_end ON outcomes (COALESCE(ended_us, received_us));

CREATE TABLE outcome_details (
	outcome_id  INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	gpus        TEXT, -- JSON: list of UUIDs
	clocks      TEXT, -- JSON: list of {core_mhz, mem_mhz, seconds_s}
	throttled_s TEXT, -- JSON: {reason: seconds}
	series      BLOB, -- utilisation over time
	readings    BLOB, -- power and core clock of the GPUs over time
	stays       TEXT, -- of an adapted run, JSON: list of {core_mhz, seconds_s, work_s, energy_j, rest_s, rest_energy_j, begun}
	restarted   TEXT, -- of a run that epd was restarted under, JSON: {time_s, gpu_energy_j}
	implausible TEXT, -- JSON: {why, and what came with the outcome and can't be}
	notes       TEXT, -- JSON: list of what became of its clocks, for people
	work_clock  TEXT, -- JSON: {core_mhz, spread_mhz} while its GPUs were at work
	shared      INTEGER, -- 1: others may have used its GPUs, too, so that its energy isn't known
	not_locked  TEXT -- why decided clocks weren't set, or not to its end, JSON: {kind, why}
) STRICT;

-- How a run used its GPUs over time: what may run beside what is told from it.
CREATE TABLE outcome_profiles (
	outcome_id INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	cluster    TEXT    NOT NULL, -- this and the next two as the outcome has them
	workload   TEXT    NOT NULL,
	gpu_model  TEXT    NOT NULL,
	alone      INTEGER NOT NULL, -- nobody else was seen on its GPUs
	profile    BLOB    NOT NULL
) STRICT;
CREATE INDEX profiles_by_workload ON outcome_profiles (cluster, workload, gpu_model, alone, outcome_id);

-- What remains of a run once it isn't kept in detail any more: one row in place of its
-- details and its decision. What is the same for many runs is kept once, in texts.
CREATE TABLE old_runs (
	outcome_id       INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	gpu_list         INTEGER, -- as texts has it: JSON, list of UUIDs
	course           BLOB, -- clocks, seconds throttled by reason, clock at work
	decided_us       INTEGER, -- when it was decided; NULL: nothing was, or decisions has it
	decided_mode     INTEGER, -- as texts has it
	decided_config   INTEGER, -- as texts has it
	decided_model    INTEGER,
	decided_arm      TEXT, -- this and the next four: NULL where the outcome says the same
	decided_core_mhz REAL,
	decided_mem_mhz  REAL,
	decided_cap_w    REAL,
	decided_profile  TEXT,
	hold_out         REAL,
	constant_arm     REAL,
	default_energy_j REAL,
	predicted_s      REAL, predicted_low_s REAL, predicted_high_s REAL, -- from 100 on in whole units
	predicted_w      REAL, predicted_low_w REAL, predicted_high_w REAL,
	predicted_j      REAL, predicted_low_j REAL, predicted_high_j REAL
) STRICT;
CREATE TABLE texts (
	text_id INTEGER PRIMARY KEY, -- of the text's hash
	text    TEXT NOT NULL
) STRICT;

-- Up to where runs aren't kept in detail any more.
CREATE TABLE compacted (
	one         INTEGER PRIMARY KEY, -- 1
	received_us INTEGER NOT NULL,
	outcome_id  INTEGER NOT NULL
) STRICT;

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
CREATE INDEX conflicts_by_time ON outcome_conflicts (received_us);

-- What remains of runs whose details were pruned, so that a late repeat is still
-- known as one.
CREATE TABLE pruned_runs (
	cluster TEXT NOT NULL,
	run_id  TEXT NOT NULL,
	node    TEXT NOT NULL,
	digest  BLOB NOT NULL,
	PRIMARY KEY (cluster, run_id, node)
) STRICT, WITHOUT ROWID;

-- Sums over outcomes. They are kept up to date with each of them, and outlive it.

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

-- What savings are computed from.
CREATE TABLE energy_sums (
	cluster         TEXT    NOT NULL,
	day             INTEGER NOT NULL, -- of the job's end; 0: all days, -1: jobs whose details were pruned
	workload        TEXT    NOT NULL,
	gpu_model       TEXT    NOT NULL,
	hold_out        REAL    NOT NULL, -- -1: not known
	constant_arm    REAL    NOT NULL,
	arm             TEXT    NOT NULL,
	core_mhz        REAL    NOT NULL, -- as decided
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
	predicted_j     REAL    NOT NULL, -- what they were thought to take there
	predicted_gpu_j REAL    NOT NULL, -- and what they took
	done_time_runs  INTEGER NOT NULL DEFAULT 0, -- completed jobs whose time is known, on the node where it was longest
	done_time_s     REAL    NOT NULL DEFAULT 0,
	done_time_s2    REAL    NOT NULL DEFAULT 0,
	PRIMARY KEY (cluster, day, workload, gpu_model, hold_out, constant_arm, arm, core_mhz, mem_mhz)
) STRICT, WITHOUT ROWID;

-- Outcomes whose details were pruned, by month.
CREATE TABLE outcome_months (
	cluster         TEXT    NOT NULL,
	workload        TEXT    NOT NULL,
	gpu_model       TEXT    NOT NULL,
	arm             TEXT    NOT NULL,
	month           TEXT    NOT NULL, -- YYYY-MM, UTC, of the end of the run
	hold_out        REAL    NOT NULL, -- -1: not known
	constant_arm    REAL    NOT NULL,
	core_mhz        REAL    NOT NULL, -- as decided
	mem_mhz         REAL    NOT NULL,
	runs            INTEGER NOT NULL, -- on one node each
	time_s          REAL    NOT NULL, -- sum over all runs, as are the next two
	gpu_energy_j    REAL    NOT NULL,
	node_energy_j   REAL    NOT NULL,
	done_gpu_runs   INTEGER NOT NULL, -- of completed jobs, on all their nodes, with a known energy
	done_gpu_j      REAL    NOT NULL,
	done_gpu_j2     REAL    NOT NULL, -- sum of squares
	done_node_runs  INTEGER NOT NULL,
	done_node_j     REAL    NOT NULL,
	done_node_j2    REAL    NOT NULL,
	predicted_runs  INTEGER NOT NULL, -- as in energy_sums
	predicted_j     REAL    NOT NULL,
	predicted_gpu_j REAL    NOT NULL,
	done_time_runs  INTEGER NOT NULL DEFAULT 0, -- as in energy_sums
	done_time_s     REAL    NOT NULL DEFAULT 0,
	done_time_s2    REAL    NOT NULL DEFAULT 0,
	PRIMARY KEY (cluster, workload, gpu_model, arm, month, hold_out, constant_arm, core_mhz, mem_mhz)
) STRICT, WITHOUT ROWID;

-- What was learnt.

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

-- Features of what jobs ran, by what repeats: hashes and numbers, no text.
CREATE TABLE features (
	cluster TEXT    NOT NULL,
	source  TEXT    NOT NULL, -- a job's script_hash
	script  BLOB, -- of the script
	code    BLOB, -- of it and the source code that it runs; NULL is not known
	digest  BLOB    NOT NULL, -- hash of what was read
	seen_us INTEGER NOT NULL,
	PRIMARY KEY (cluster, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX features_by_time ON features (seen_us);
