package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/queue"
)

// csvTable is a table whose errors are positions of fields.
type csvTable struct {
	in       *textfile.Table
	name     string
	interned map[string]string // equal texts, once
}

// openTable reads the header.
func openTable(r io.Reader, name string) (*csvTable, error) {
	table, err := textfile.OpenTable(r, name, "the names of columns", textfile.OnlyText)
	if err != nil {
		return nil, err
	}
	return &csvTable{in: table, name: name, interned: make(map[string]string)}, nil
}

// field returns a field of the current record, without space around it.
func (t *csvTable) field(column int) string { return t.in.Cell(column) }

// requireColumns finds columns that the table must have.
func (t *csvTable) requireColumns(names ...string) ([]int, error) {
	found := make([]int, len(names))
	for i, name := range names {
		if found[i] = t.in.Index(name); found[i] < 0 {
			return nil, t.errorAt(-1, "column %s is missing, want %s", name, strings.Join(names, ", "))
		}
	}
	return found, nil
}

// errorAt is an error at a field of the current record; -1 is the whole record.
func (t *csvTable) errorAt(column int, format string, args ...any) error {
	return &queue.SyntaxError{Pos: t.position(column), Msg: fmt.Sprintf(format, args...)}
}

// errorOn returns an error on a line that isn't the current record's.
func (t *csvTable) errorOn(line int, format string, args ...any) error {
	return &queue.SyntaxError{
		Pos: queue.Position{File: t.name, Line: line}, Msg: fmt.Sprintf(format, args...),
	}
}

// position returns where a field of the current record is; -1 is the whole record.
func (t *csvTable) position(column int) queue.Position {
	if column < 0 {
		return queue.Position{File: t.name, Line: max(t.in.Line(), 1)}
	}
	return t.in.CellAt(column)
}

// each goes through the records; none says what is wrong where there are none.
func (t *csvTable) each(none string, record func() error) error {
	for first := true; ; first = false {
		err := t.in.Next()
		switch {
		case errors.Is(err, io.EOF) && first:
			return t.errorAt(-1, "%s", none)
		case errors.Is(err, io.EOF):
			return nil
		case err == nil:
			err = record()
		}
		if err != nil {
			return err
		}
	}
}

// integer returns a field with a whole number.
func (t *csvTable) integer(column int, most int64) (int64, error) {
	field, err := t.in.Number(column)
	if err != nil {
		return 0, err
	}
	x, ok := parseDigits(field)
	if !ok || x > most {
		return 0, t.errorAt(column, "%s is %.40q, want a whole number from 0 to %d",
			t.in.Header[column], field, most)
	}
	return x, nil
}

// number returns a field with a number, of many of which sums and squares stay finite.
func (t *csvTable) number(column int, least float64) (float64, error) {
	field, err := t.in.Number(column)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(field, 64)
	if err != nil || !(x >= least && x <= maxQuantity) {
		return 0, t.errorAt(column, "%s is %.40q, want a number from %v to %v", t.in.Header[column],
			field, least, maxQuantity)
	}
	return x, nil
}

// parseDigits returns a whole number that 64 bits can hold with room to spare.
func parseDigits(field string) (int64, bool) {
	const most = 18
	if len(field) == 0 || len(field) > most {
		return 0, false
	}
	x := int64(0)
	for i := range len(field) {
		c := field[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		x = 10*x + int64(c-'0')
	}
	return x, true
}

// seconds returns a field with a time, NaN where it is empty or the table has no
// such column.
func (t *csvTable) seconds(column int) (float64, error) {
	if column < 0 || len(t.field(column)) == 0 {
		return math.NaN(), nil
	}
	field, err := t.in.Number(column)
	if err != nil {
		return 0, err
	}
	if x, ok := parseDigits(field); ok {
		return float64(x), nil
	}
	x, err := strconv.ParseFloat(field, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return 0, t.errorAt(column, "%s is %.40q, want seconds, 0 or more, or nothing",
			t.in.Header[column], field)
	}
	return x, nil
}

// text returns a field's text, empty if the table has no such column.
func (t *csvTable) text(column int) string {
	if column < 0 {
		return ""
	}
	return strings.Clone(t.field(column))
}

// internedText is text of which many rows have the same.
func (t *csvTable) internedText(column int) string {
	if column < 0 || len(t.field(column)) == 0 {
		return ""
	}
	s, ok := t.interned[t.field(column)]
	if ok {
		return s
	}
	s = strings.Clone(t.field(column))
	t.interned[s] = s
	return s
}
