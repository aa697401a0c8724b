-- What a prediction rests on; '' where a model of the workload made it, or nothing.
ALTER TABLE decisions ADD COLUMN rung TEXT NOT NULL DEFAULT '';

-- Features of what jobs ran, by what repeats: hashes and numbers, no text.
CREATE TABLE features (
	cluster TEXT    NOT NULL,
	source  TEXT    NOT NULL, -- a job's script_hash
	script  BLOB, -- of the script
	code    BLOB, -- of it and the source code that it runs; NULL is not known
	digest  BLOB    NOT NULL, -- hash of what was read
	seen_us INTEGER NOT NULL,
	PRIMARY KEY (cluster, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX features_by_time ON features (seen_us);
