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

// lineAfter is the line after the row that was just read.
func (r *CSVRows) lineAfter(cells []string) int {
	last := len(cells) - 1
	line, _ := r.FieldPos(last)
	return line + strings.Count(cells[last], "\n") + 1
}
