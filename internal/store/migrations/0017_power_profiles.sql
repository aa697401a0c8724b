-- Workload power profiles that were decided or set, by their names; '' where none was.
ALTER TABLE decisions ADD COLUMN power_profile TEXT NOT NULL DEFAULT '';
ALTER TABLE outcomes ADD COLUMN set_power_profile TEXT NOT NULL DEFAULT '';
