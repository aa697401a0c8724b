-- Time and energy of a run that epd was restarted under.
ALTER TABLE outcome_details ADD COLUMN restarted TEXT; -- JSON: {time_s, gpu_energy_j}
