-- How runs used their GPUs over time: what may run beside what is told from it.
-- A profile goes with its outcome.
CREATE TABLE outcome_profiles (
	outcome_id INTEGER PRIMARY KEY REFERENCES outcomes (outcome_id) ON DELETE CASCADE,
	cluster    TEXT    NOT NULL, -- this and the next two as the outcome has them
	workload   TEXT    NOT NULL,
	gpu_model  TEXT    NOT NULL,
	alone      INTEGER NOT NULL, -- nobody else was seen on its GPUs
	profile    BLOB    NOT NULL
) STRICT;
CREATE INDEX profiles_by_workload ON outcome_profiles (cluster, workload, gpu_model, alone, outcome_id);
