package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// nullableNumber is a Number as a column: NULL if unknown.
func nullableNumber(n live.Number) any {
	if v, ok := n.Get(); ok {
		return v
	}
	return nil
}

// knownNumber is what was read from a column of numbers; what can't be is unknown.
func knownNumber(column sql.NullFloat64) live.Number {
	if !column.Valid || !arePlausible(column.Float64) {
		return live.Number{}
	}
	return live.Known(column.Float64)
}

// nullableMicros is a time as a column: NULL if unknown.
func nullableMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// timeOf is what was read from a column of times.
func timeOf(column sql.NullInt64) time.Time {
	if !column.Valid || column.Int64 < -maxTime || column.Int64 > maxTime {
		return time.Time{}
	}
	return time.UnixMicro(column.Int64).UTC()
}

// maxTime is the end of the year 9999: JSON has no later times.
const maxTime = 253402300799_999_999

// jsonText is a value as a column of JSON.
func jsonText(value any) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("%w: %w", record.ErrInvalid, err)
	}
	return string(encoded), nil
}

// collect reads all rows with a function for one.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, typedError(err)
	}
	defer func() { _ = rows.Close() }()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, typedError(err)
		}
		all = append(all, one)
	}
	return all, typedError(rows.Err())
}

// list is collect with an error that says what was asked for.
func list[T any](
	rows *sql.Rows, err error, scan func(scanner) (T, error), what string, args ...any,
) ([]T, error) {
	all, err := collect(rows, err, scan)
	if err != nil {
		return nil, fmt.Errorf(what+": %w", append(args, err)...)
	}
	return all, nil
}

// scanIntervals are what was read from three columns each: a value and its bounds.
func scanIntervals(columns []sql.NullFloat64, into ...*record.Interval) {
	for i, interval := range into {
		*interval = record.Interval{
			Value: knownNumber(columns[3*i]), Low: knownNumber(columns[3*i+1]), High: knownNumber(columns[3*i+2]),
		}
	}
}

// scanner is a row, of one or of many.
type scanner interface{ Scan(into ...any) error }
