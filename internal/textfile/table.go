package textfile

import (
	"errors"
	"io"
	"strconv"
	"strings"
)

// Table is the rows of a file below a header that names its columns. Names are the same
// whatever their case, spaces and underscores.
type Table struct {
	*Rows

	Header  []string // without space around names
	Row     []string // the current one
	Ragged  bool     // rows may be longer or shorter than the header
	numbers Numbers
	column  map[string]int // by folded name
	asked   map[string]int // by the names that readers ask for; -1: there is none
}

// OpenTable reads the header, in which no name may come twice; want says what it
// is to have in the error of a file that has none.
func OpenTable(r io.Reader, name, want string, pass Bytes) (*Table, error) {
	return NewTable(NewRows(Open(r, name, pass), name), nil, want)
}

// NewTable is [OpenTable] of rows of which none was read; a header that is given stands
// for one that the file lacks.
func NewTable(rows *Rows, header []string, want string) (*Table, error) {
	t := &Table{Rows: rows, column: make(map[string]int), asked: make(map[string]int)}
	rows.ExpectCells(len(header))
	given := len(header) > 0
	if !given {
		var err error
		header, err = t.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, &SyntaxError{Pos: Position{File: rows.name}, Msg: "is empty", Want: "a header with " + want}
		case err != nil:
			return nil, err
		}
	}
	for i, column := range header {
		column = strings.TrimSpace(column)
		t.Header = append(t.Header, column)
		folded := Fold(column)
		if column == "" || column == UnusedColumn && given {
			continue
		}
		if first, twice := t.column[folded]; twice {
			return nil, &SyntaxError{
				Pos: rows.CellAt(i), Msg: TwiceText(t.Header[first], column), Want: "each once",
			}
		}
		t.column[folded] = i
	}
	return t, nil
}

// TwiceText says that a file has a column under two names, or twice under one.
func TwiceText(first, second string) string {
	if first == second {
		return "column " + Quoted(second) + " is there twice"
	}
	return "columns " + Quoted(first) + " and " + Quoted(second) + " have the same name"
}

// Index returns where the table has a column, or -1.
func (t *Table) Index(column string) int {
	at, known := t.asked[column]
	if !known {
		at = -1
		if i, ok := t.column[Fold(column)]; ok {
			at = i
		}
		t.asked[column] = at
	}
	return at
}

// Has reports whether the table has a column.
func (t *Table) Has(column string) bool { return t.Index(column) >= 0 }

// Next goes to the next row; io.EOF: there is none. The row is there even if it is an error
// that it has too few or too many cells.
func (t *Table) Next() (err error) {
	if t.Row, err = t.Read(); err != nil {
		return err
	}
	if n, want := len(t.Row), len(t.Header); n != want && !t.Ragged {
		return &SyntaxError{
			Pos:  t.CellAt(min(n-1, want)),
			Msg:  "cells in this row: " + strconv.Itoa(n),
			Want: strconv.Itoa(want) + " as in the header",
		}
	}
	return nil
}

// Each goes through the rows.
func (t *Table) Each(row func() error) error {
	for {
		if err := t.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := row(); err != nil {
			return err
		}
	}
}

// Cell returns a cell of the current row without space around it; "" where the row, or the table, has none.
func (t *Table) Cell(column int) string {
	if column < 0 || column >= len(t.Row) {
		return ""
	}
	return strings.TrimSpace(t.Row[column])
}

// Number returns a cell of the current row with its number as programmers write it, or an error at its place
// that begins with the column's name.
func (t *Table) Number(column int) (string, error) {
	t.numbers.Commas = t.separator == ','
	text, msg, want := t.numbers.Plain(t.Cell(column), t.CellAt(column))
	if msg != "" {
		return "", &SyntaxError{Pos: t.CellAt(column), Msg: t.Header[column] + " " + msg, Want: want}
	}
	return text, nil
}

// Doubt is [Numbers.Doubt] of the numbers that were read.
func (t *Table) Doubt() error { return t.numbers.Doubt() }

// Text returns a cell of the current row, as it was before [EscapeFormula]; "" where there is
// no such column.
func (t *Table) Text(column string) string {
	i := t.Index(column)
	if i < 0 || i >= len(t.Row) {
		return ""
	}
	return strings.Clone(UnescapeFormula(t.Row[i]))
}
