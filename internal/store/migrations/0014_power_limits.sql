-- Power limits: the one that was decided or set, 0 where none was, and those in force.
ALTER TABLE decisions ADD COLUMN cap_w REAL NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN set_cap_w REAL NOT NULL DEFAULT 0;
ALTER TABLE outcomes ADD COLUMN cap_w REAL;
ALTER TABLE outcomes ADD COLUMN other_caps_s REAL;
