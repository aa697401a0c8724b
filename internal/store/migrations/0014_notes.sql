-- What became of a run's clocks beside being locked and given back.
ALTER TABLE outcome_details ADD COLUMN notes TEXT; -- JSON: list of what became of its clocks, for people
