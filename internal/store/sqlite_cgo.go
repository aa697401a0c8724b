//go:build cgo

package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/mattn/go-sqlite3"
)

// resultCode is SQLite's primary result code of an error, 0 if it has none.
func resultCode(err error) int {
	if failure, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(failure.Code)
	}
	return 0
}

// openWatched is [sql.Open] with a function that hears of each error that a query meets.
func openWatched(dsn string, met func(error)) (*sql.DB, error) {
	return sql.OpenDB(watched{dsn: dsn, met: met}), nil
}

// watched opens connections whose errors are heard of.
type watched struct {
	sqlite3.SQLiteDriver
	dsn string
	met func(error)
}

// watchedConn and watchedRows are SQLite's.
type (
	watchedConn struct {
		*sqlite3.SQLiteConn
		met func(error)
	}
	watchedRows struct {
		*sqlite3.SQLiteRows
		met func(error)
	}
)

// Driver is [driver.Connector]'s.
func (w watched) Driver() driver.Driver { return &w.SQLiteDriver }

// Connect is [driver.Connector]'s.
func (w watched) Connect(context.Context) (driver.Conn, error) {
	conn, err := w.Open(w.dsn)
	if err != nil {
		return nil, err
	}
	if own, ok := conn.(*sqlite3.SQLiteConn); ok { // it opens no other
		return watchedConn{own, w.met}, nil
	}
	return conn, nil
}

// QueryContext is [driver.QueryerContext]'s.
func (c watchedConn) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Rows, error) {
	rows, err := c.SQLiteConn.QueryContext(ctx, query, args)
	if err != nil {
		c.met(err)
		return nil, err
	}
	if own, ok := rows.(*sqlite3.SQLiteRows); ok { // it has no other
		return watchedRows{own, c.met}, nil
	}
	return rows, nil
}

// Next is [driver.Rows]'s.
func (r watchedRows) Next(dest []driver.Value) error {
	err := r.SQLiteRows.Next(dest)
	if err != nil && !errors.Is(err, io.EOF) {
		r.met(err)
	}
	return err
}
