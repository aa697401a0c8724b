package store

import (
	"context"
	"database/sql"
	"strconv"
)

// LookEvery is how often it is looked whether the database is at its path.
const LookEvery = lookEvery

// Apply has the writer apply a change.
func (s *Store) Apply(ctx context.Context, change func(context.Context, *sql.Conn) error) error {
	return s.db.do(ctx, change)
}

// LimitPages makes the disk full when the database has that many pages.
func (s *Store) LimitPages(ctx context.Context, pages int) error {
	return s.db.do(ctx, func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "PRAGMA max_page_count = "+strconv.Itoa(pages))
		return err
	})
}
