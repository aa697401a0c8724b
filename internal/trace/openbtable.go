package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/queue"
)

// csvTable reads CSV by the names of its header, a record a line. Its fields
// belong to the current record only.
type csvTable struct {
	name     string
	line     int // of the current record, from 1
	scan     *bufio.Scanner
	columns  []string
	record   []byte
	fields   []fieldSpan       // of the record
	interned map[string]string // equal texts, once
	open     bool              // the current line has no end: it may be cut
}

type fieldSpan struct{ from, to int }

// field is a field of the current record.
func (t *csvTable) field(column int) []byte {
	s := t.fields[column]
	return t.record[s.from:s.to]
}

// openTable reads the header.
func openTable(r io.Reader, name string) (*csvTable, error) {
	t := &csvTable{name: name, scan: bufio.NewScanner(r), interned: make(map[string]string)}
	t.scan.Buffer(make([]byte, 0, 64<<10), maxLine)
	t.scan.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		advance, line, err := bufio.ScanLines(data, atEOF)
		if advance > 0 {
			t.open = data[advance-1] != '\n'
		}
		return advance, line, err
	})
	if ok, err := t.read(); err != nil {
		return nil, err
	} else if !ok {
		return nil, t.errorAt(-1, "nothing, want a header line")
	}
	t.columns = make([]string, len(t.fields))
	for i := range t.fields {
		t.columns[i] = t.text(i)
		if first := t.columnOf(t.columns[i]); first < i {
			return nil, t.errorAt(i, "column %.40q is named twice", t.columns[i])
		}
	}
	return t, nil
}

// columnOf is the column of a name, or -1.
func (t *csvTable) columnOf(name string) int { return slices.Index(t.columns, name) }

// requireColumns finds columns that the table must have.
func (t *csvTable) requireColumns(names ...string) ([]int, error) {
	found := make([]int, len(names))
	for i, name := range names {
		if found[i] = t.columnOf(name); found[i] < 0 {
			return nil, t.errorAt(-1, "column %s is missing, want %s", name, strings.Join(names, ", "))
		}
	}
	return found, nil
}

// errorAt is an error at a field of the current record; -1 is the whole record.
func (t *csvTable) errorAt(column int, format string, args ...any) error {
	return &PositionError{
		File: t.name, Line: max(t.line, 1), Column: column + 1, Err: fmt.Errorf(format, args...),
	}
}

// position is where a field of the current record is.
func (t *csvTable) position(column int) queue.Position {
	return queue.Position{File: t.name, Line: t.line, Column: column + 1}
}

// next goes to the next record; false: there is none.
func (t *csvTable) next() (bool, error) {
	ok, err := t.read()
	if err == nil && ok && len(t.fields) != len(t.columns) {
		return false, t.errorAt(-1, "%d fields, want %d", len(t.fields), len(t.columns))
	}
	return ok, err
}

// each goes through the records; none says what is wrong where there are none.
func (t *csvTable) each(none string, record func() error) error {
	for first := true; ; first = false {
		ok, err := t.next()
		switch {
		case err != nil:
			return err
		case !ok && first:
			return t.errorAt(-1, "%s", none)
		case !ok:
			return nil
		}
		if err := record(); err != nil {
			return err
		}
	}
}

// read takes the next line that isn't empty apart.
func (t *csvTable) read() (bool, error) {
	for t.scan.Scan() && t.scan.Err() == nil { // after an error a line may be cut
		t.line++
		line := t.scan.Bytes()
		if t.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !utf8.Valid(line) {
			return false, t.errorAt(-1, "bytes that aren't UTF-8, want text")
		}
		return true, t.split(line)
	}
	err := t.scan.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return false, &PositionError{File: t.name, Line: t.line + 1, Err: ErrLineTooLong}
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", t.name, err)
	}
	return false, nil
}

// split separates the fields of a line at commas that aren't in quotes.
func (t *csvTable) split(line []byte) error {
	t.record, t.fields = line, t.fields[:0]
	from := 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && line[i] != ',' {
			if line[i] != '"' || i > from {
				continue
			}
			end, after := unquote(line, i)
			if end < 0 {
				return t.errorAt(len(t.fields), "a quote without its end on the same line")
			}
			if after < len(line) && line[after] != ',' {
				return t.errorAt(len(t.fields), "%.20q after a quoted field, want a comma", line[after:])
			}
			t.fields = append(t.fields, fieldSpan{i, end})
			i, from = after, after+1
			continue
		}
		t.fields = append(t.fields, trimSpan(line, from, i))
		from = i + 1
	}
	return nil
}

// trimSpan is a part of a line without the space around it.
func trimSpan(line []byte, from, to int) fieldSpan {
	for from < to && (line[from] == ' ' || line[from] == '\t') {
		from++
	}
	for from < to && (line[to-1] == ' ' || line[to-1] == '\t' || line[to-1] == '\r') {
		to--
	}
	return fieldSpan{from, to}
}

// unquote takes the quotes away from the field that begins at from, in place:
// two in it stand for one. Its text ends at end, its last quote before after;
// -1: it has none.
func unquote(line []byte, from int) (end, after int) {
	end = from
	for i := from + 1; i < len(line); i++ {
		if line[i] == '"' {
			if i+1 == len(line) || line[i+1] != '"' {
				return end, i + 1
			}
			i++
		}
		line[end] = line[i]
		end++
	}
	return -1, -1
}

// integer is a field with a whole number.
func (t *csvTable) integer(column int, most int64) (int64, error) {
	field := t.field(column)
	x, ok := parseDigits(field)
	if !ok || x > most {
		return 0, t.errorAt(column, "%s is %.40q, want a whole number from 0 to %d",
			t.columns[column], field, most)
	}
	return x, nil
}

// number is a field with a number, of many of which sums and squares stay finite.
func (t *csvTable) number(column int, least float64) (float64, error) {
	field := t.field(column)
	x, err := strconv.ParseFloat(string(field), 64)
	if err != nil || !(x >= least && x <= maxQuantity) {
		return 0, t.errorAt(column, "%s is %.40q, want a number from %v to %v", t.columns[column],
			field, least, maxQuantity)
	}
	return x, nil
}

// parseDigits is a whole number that 64 bits can hold with room to spare.
func parseDigits(field []byte) (int64, bool) {
	const most = 18
	if len(field) == 0 || len(field) > most {
		return 0, false
	}
	x := int64(0)
	for _, c := range field {
		if c < '0' || c > '9' {
			return 0, false
		}
		x = 10*x + int64(c-'0')
	}
	return x, true
}

// seconds is a field with a time, NaN where it is empty or the table has no
// such column.
func (t *csvTable) seconds(column int) (float64, error) {
	if column < 0 || len(t.field(column)) == 0 {
		return math.NaN(), nil
	}
	field := t.field(column)
	if x, ok := parseDigits(field); ok {
		return float64(x), nil
	}
	x, err := strconv.ParseFloat(string(field), 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return 0, t.errorAt(column, "%s is %.40q, want seconds, 0 or more, or nothing",
			t.columns[column], field)
	}
	return x, nil
}

// text is a field's text, empty if the table has no such column.
func (t *csvTable) text(column int) string {
	if column < 0 {
		return ""
	}
	return string(t.field(column))
}

// internedText is text of which many rows have the same.
func (t *csvTable) internedText(column int) string {
	if column < 0 || len(t.field(column)) == 0 {
		return ""
	}
	if s, ok := t.interned[string(t.field(column))]; ok {
		return s
	}
	s := string(t.field(column))
	t.interned[s] = s
	return s
}
