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

-- Records are of one cluster, and most jobs complete: neither helps an index, and both
-- take room in it for each run.
DROP INDEX jobs_by_user;
DROP INDEX jobs_by_partition;
DROP INDEX jobs_by_workload;
DROP INDEX jobs_by_state;
CREATE INDEX jobs_by_user ON jobs (user, submitted_us);
CREATE INDEX jobs_by_partition ON jobs (partition, submitted_us);
CREATE INDEX jobs_by_workload ON jobs (workload, submitted_us);
CREATE INDEX jobs_by_state ON jobs (shown, submitted_us) WHERE shown != 'COMPLETED';
DROP INDEX outcomes_by_workload;
DROP INDEX outcomes_by_job;
DROP INDEX outcomes_by_end;
CREATE INDEX outcomes_by_workload ON outcomes (workload, gpu_model, outcome_id);
CREATE INDEX outcomes_by_job ON outcomes (job_id);
CREATE INDEX outcomes_by_end ON outcomes (COALESCE(ended_us, received_us));
