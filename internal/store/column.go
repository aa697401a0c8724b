package store

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// nullableNumber returns a Number as a column: NULL if unknown.
func nullableNumber(n live.Number) any {
	if v, ok := n.Get(); ok {
		return v
	}
	return nil
}

// knownNumber returns what was read from a column of numbers; what can't be is unknown.
func knownNumber(column sql.NullFloat64) live.Number {
	if !column.Valid || !arePlausible(column.Float64) {
		return live.Number{}
	}
	return live.Known(column.Float64)
}

// nullableMicros returns a time as a column: NULL if unknown.
func nullableMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// timeOf returns what was read from a column of times.
func timeOf(column sql.NullInt64) time.Time {
	if !column.Valid || column.Int64 < -maxTime || column.Int64 > maxTime {
		return time.Time{}
	}
	return time.UnixMicro(column.Int64).UTC()
}

// maxTime is the end of the year 9999: JSON has no later times.
const maxTime = 253402300799_999_999

// jsonText returns a value as a column of JSON.
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

// encodeCourse returns an outcome's clocks, seconds throttled and clock at work as a column; nil where none
// of them is known. It is a byte of version, the number of clocks, and for each its core and memory
// clock and its seconds; the number of reasons for throttling, and for each its text and its
// seconds; then mean and spread of the clock at work, or nothing. Counts and lengths are varints,
// figures of four bytes, little endian: IEEE 754 numbers, to seven digits.
func encodeCourse(o *record.Outcome) []byte {
	mean, atWork := o.WorkClock.CoreMHz.Get()
	if len(o.Clocks)+len(o.ThrottledS) == 0 && !atWork {
		return nil
	}
	number := func(b []byte, x float64) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	b := binary.AppendUvarint([]byte{courseVersion}, uint64(len(o.Clocks)))
	for _, r := range o.Clocks {
		b = binary.AppendUvarint(b, tenths(r.Core))
		b = binary.AppendUvarint(b, tenths(r.Mem))
		b = number(b, r.Seconds)
	}
	b = binary.AppendUvarint(b, uint64(len(o.ThrottledS)))
	for _, reason := range slices.Sorted(maps.Keys(o.ThrottledS)) {
		b = append(binary.AppendUvarint(b, uint64(len(reason))), reason...)
		b = number(b, o.ThrottledS[reason])
	}
	if atWork {
		b = number(number(b, mean), o.WorkClock.SpreadMHz.Or(math.NaN()))
	}
	return b
}

const courseVersion = 1

// tenths returns a clock in units of 0.1 MHz, which no clock is told finer than.
func tenths(clock dvfsmodel.MHz) uint64 { return uint64(max(0, math.Round(float64(clock)*10))) }

// errCourse tells that bytes aren't what encodeCourse writes.
var errCourse = errors.New("the course of a run can't be read")

// decodeCourse reads what encodeCourse wrote into an outcome.
func decodeCourse(b []byte, o *record.Outcome) error {
	if len(b) == 0 || b[0] != courseVersion {
		return errCourse
	}
	b = b[1:]
	sound := true
	count := func() uint64 {
		n, size := binary.Uvarint(b)
		if sound = sound && size > 0; !sound {
			return 0
		}
		b = b[size:]
		return n
	}
	take := func(n uint64) []byte {
		if sound = sound && n <= uint64(len(b)); !sound {
			return make([]byte, 4) //nolint:mnd // a number
		}
		taken := b[:n]
		b = b[n:]
		return taken
	}
	number := func() float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(take(4)))) }
	for n := count(); n > 0 && sound; n-- {
		core, mem := dvfsmodel.MHz(count())/10, dvfsmodel.MHz(count())/10
		o.Clocks = append(o.Clocks, live.Residency{
			Setting: dvfsmodel.Setting{Core: core, Mem: mem}, Seconds: number(),
		})
	}
	for n := count(); n > 0 && sound; n-- {
		if o.ThrottledS == nil {
			o.ThrottledS = make(map[string]float64)
		}
		reason := string(take(count()))
		o.ThrottledS[reason] = number()
	}
	if sound && len(b) > 0 {
		o.WorkClock.CoreMHz = live.Known(number())
		o.WorkClock.SpreadMHz = live.Known(number()) // of what is no number, unknown
	}
	if !sound || len(b) > 0 {
		return errCourse
	}
	return nil
}

// intoCourse scans what encodeCourse wrote; NULL leaves the outcome alone.
type intoCourse struct{ to *record.Outcome }

// Scan is part of [sql.Scanner].
func (i intoCourse) Scan(value any) error {
	column, _ := value.([]byte)
	if column == nil {
		return nil
	}
	return decodeCourse(column, i.to)
}
