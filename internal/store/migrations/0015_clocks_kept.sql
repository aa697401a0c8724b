-- At which core clock a run was at work, and what became of its clocks beside being locked and given back.
ALTER TABLE outcome_details ADD COLUMN notes TEXT; -- JSON: list of what became of its clocks, for people
ALTER TABLE outcome_details ADD COLUMN work_clock TEXT; -- JSON: {core_mhz, spread_mhz} while its GPUs were at work
