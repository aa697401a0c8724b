package queue

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// CSVRows are the rows of any CSV file, read in bounded memory: a line or a row of
// more than 1 MiB ends them, and so does a zero byte. A byte order mark before the first one is passed
// over. The fields of the csv.Reader may be set before the first row is read.
type CSVRows struct {
	*csv.Reader
	guard *textGuard
}

// NewCSVRows reads from r; the name is that of the file in errors.
func NewCSVRows(r io.Reader, name string) *CSVRows {
	g := newTextGuard(r, name)
	g.anyBytes = true
	g.want = `one row a line, every opened " closed`
	return newCSVRows(bufio.NewReaderSize(g, bufferSize), g)
}

// newCSVRows reads what a guard lets through.
func newCSVRows(in io.Reader, g *textGuard) *CSVRows {
	g.lines = true
	return &CSVRows{csv.NewReader(in), g}
}

// Read is the next row, io.EOF after the
// last one. Every other error says file and line.
func (r *CSVRows) Read() ([]string, error) {
	cells, err := r.next()
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return cells, err
	}
	name := Printable(r.guard.pos.File)
	if errors.Is(err, csv.ErrFieldCount) {
		return nil, fmt.Errorf("%s:%d: %d fields, want %d, as the header has", name, parse.StartLine,
			len(cells), r.FieldsPerRecord)
	}
	return nil, fmt.Errorf("%s:%d: a \" that doesn't belong there: want \"…\" around such a field, and "+
		"\"\" for each inside", name, parse.StartLine)
}

// next is Read with the errors of encoding/csv as they are.
func (r *CSVRows) next() ([]string, error) {
	start := r.InputOffset()
	cells, err := r.Reader.Read()
	if err != nil {
		if g := r.guard; !errors.Is(err, csv.ErrFieldCount) && g.err != nil && !errors.Is(g.err, io.EOF) {
			return nil, g.err
		}
		return cells, err
	}
	line, _ := r.FieldPos(0)
	r.guard.recordDone(r.lineAfter(cells))
	if r.InputOffset()-start > maxRecord {
		return nil, r.guard.tooLong(line, "record")
	}
	return cells, nil
}

func (r *CSVRows) lineAfter(cells []string) int {
	last := len(cells) - 1
	line, _ := r.FieldPos(last)
	return line + strings.Count(cells[last], "\n") + 1
}

// CSVTable is the rows of a CSV file below a header that names its columns.
type CSVTable struct {
	*CSVRows
	Header []string
	Row    []string // the current one
	Line   int      // on which it begins
	column map[string]int
}

// NewCSVTable reads the header, in which no name may come twice; want says what it is
// to have in the error of a file that has none.
func NewCSVTable(r io.Reader, name, want string) (*CSVTable, error) {
	t := &CSVTable{CSVRows: NewCSVRows(r, name), column: make(map[string]int)}
	header, err := t.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: is empty, want a header with %s", Printable(name), want)
	case err != nil:
		return nil, err
	}
	for i, column := range header {
		if t.Has(column) {
			return nil, fmt.Errorf("%s:1: column %s is there twice", Printable(name), quoted(column))
		}
		t.column[column] = i
	}
	t.Header, t.ReuseRecord = header, true
	return t, nil
}

// Has reports whether the table has a column.
func (t *CSVTable) Has(column string) bool {
	_, ok := t.column[column]
	return ok
}

// Text is a cell of the current row, as it was before [EscapeFormula]; "" where there is
// no such column.
func (t *CSVTable) Text(column string) string {
	i, ok := t.column[column]
	if !ok {
		return ""
	}
	return strings.Clone(UnescapeFormula(t.Row[i]))
}

// Each goes through the rows.
func (t *CSVTable) Each(row func() error) error {
	for {
		var err error
		if t.Row, err = t.Read(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		t.Line, _ = t.FieldPos(0)
		if err := row(); err != nil {
			return err
		}
	}
}
