-- A run's time and energy by the core clock that was locked, where its clock was adapted.
ALTER TABLE outcome_details ADD COLUMN stays TEXT; -- JSON: list of {core_mhz, seconds_s, work_s, energy_j, rest_s, rest_energy_j, begun}
