package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// number is a Number as a column: NULL if unknown.
func number(n live.Number) any {
	if v, ok := n.Get(); ok {
		return v
	}
	return nil
}

// known is what was read from a column of numbers; what can't be is unknown.
func known(column sql.NullFloat64) live.Number {
	if !column.Valid || !believed(column.Float64) {
		return live.Number{}
	}
	return live.Known(column.Float64)
}

// micros is a time as a column: NULL if unknown.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// timeOf is what was read from a column of times.
func timeOf(column sql.NullInt64) time.Time {
	if !column.Valid || column.Int64 < -lastTime || column.Int64 > lastTime {
		return time.Time{}
	}
	return time.UnixMicro(column.Int64).UTC()
}

// lastTime is the end of the year 9999: JSON has no later times.
const lastTime = 253402300799_999_999

// text is a value as a column of JSON.
func text(value any) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("%w: %w", record.ErrInvalid, err)
	}
	return string(encoded), nil
}

// parse reads a column of JSON; NULL leaves the value alone.
func parse(column sql.NullString, value any) error {
	if !column.Valid {
		return nil
	}
	return json.Unmarshal([]byte(column.String), value)
}

// flag is a truth as a column.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// collect reads all rows with a function for one.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, typed(err)
	}
	defer func() { _ = rows.Close() }()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, typed(err)
		}
		all = append(all, one)
	}
	return all, typed(rows.Err())
}

// scanner is a row, of one or of many.
type scanner interface{ Scan(into ...any) error }
