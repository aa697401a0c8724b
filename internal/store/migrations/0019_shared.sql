-- Whether others may have used a run's GPUs, too, and why clocks that were decided weren't set.
ALTER TABLE outcome_details ADD COLUMN shared INTEGER;
ALTER TABLE outcome_details ADD COLUMN not_locked TEXT;
