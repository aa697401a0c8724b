-- Of which task of an array a job is, so that it is found as 4_3 once Slurm has forgotten it.
ALTER TABLE jobs ADD COLUMN array_job INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN array_task INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_array ON jobs (array_job, array_task, submitted_us) WHERE array_job != 0;
