package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/epplan/epplan/internal/store/record"
)

// PutFeatures keeps what a script looks like, in place of what was known of it. The
// code's features stay where the new ones have none.
func (l *Learning) PutFeatures(ctx context.Context, f *record.Features) error {
	if f.Cluster == "" || f.Source == "" || f.Seen.IsZero() || len(f.Script) > record.MaxFeatures ||
		len(f.Code) > record.MaxFeatures {
		return fmt.Errorf("%w: features need cluster, source and time, and at most %d coordinates",
			record.ErrInvalid, record.MaxFeatures)
	}
	digest := f.Digest
	if digest == nil {
		digest = []byte{}
	}
	err := l.db.do(ctx, func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `
INSERT INTO features (cluster, source, script, code, digest, seen_us) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET script = COALESCE(excluded.script, script),
	digest = CASE WHEN excluded.code IS NULL THEN digest ELSE excluded.digest END,
	code = COALESCE(excluded.code, code), seen_us = excluded.seen_us`,
			record.CleanText(f.Cluster), record.CleanText(f.Source), record.PackVector(f.Script),
			record.PackVector(f.Code), digest,
			record.StoredTime(f.Seen).UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("store features of %s: %w", f.Source, err)
	}
	return nil
}

// Features lists what the scripts of a cluster look like that were submitted last, at
// most so many, the latest first.
func (l *Learning) Features(ctx context.Context, cluster string, most int) ([]record.Features, error) {
	rows, err := l.db.read.QueryContext(ctx, `
SELECT cluster, source, script, code, digest, seen_us FROM features WHERE cluster = ? ORDER BY seen_us DESC, source LIMIT ?`, cluster, most)
	return list(rows, err, func(row scanner) (record.Features, error) {
		var f record.Features
		var script, code []byte
		var seen sql.NullInt64
		err := row.Scan(&f.Cluster, &f.Source, &script, &code, &f.Digest, &seen)
		if err != nil {
			return f, err
		}
		f.Seen = timeOf(seen)
		if f.Script, err = record.UnpackVector(script); err != nil {
			return f, err
		}
		f.Code, err = record.UnpackVector(code)
		return f, err
	}, "list features")
}
