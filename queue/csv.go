package queue

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// csvReader reads rows into a builder.
type csvReader struct {
	rows  *Rows
	b     *builder
	cols  []column        // of each cell
	extra []string        // name of each x_ cell
	cells [numColumns]int // where each column is, -1 when the file lacks it
	d     draft
}

// readCSV reads a CSV file with the given names of columns; nil lets the
// header choose them.
func readCSV(in io.Reader, g *guard, b *builder, names *columnNames) error {
	c := &csvReader{rows: newRows(in, g), b: b}
	c.rows.ReuseRecord = true
	c.rows.FieldsPerRecord = -1
	c.rows.TrimLeadingSpace = true
	b.where = c.position
	header, err := c.next()
	if err != nil {
		return ignoreEOF(err)
	}
	if names == nil {
		names = namesOf(header)
	}
	b.names = names
	if err := c.header(header); err != nil {
		return err
	}
	for {
		cells, err := c.next()
		if err != nil {
			return ignoreEOF(err)
		}
		if err := c.job(cells); err != nil {
			return err
		}
	}
}

func ignoreEOF(err error) error {
	if isEOF(err) {
		return nil
	}
	return err
}

// namesOf tells the EDL columns from the others by one that only they have.
func namesOf(header []string) *columnNames {
	if slices.ContainsFunc(header, func(cell string) bool { return strings.TrimSpace(cell) == edlNames[colP0] }) {
		return &edlNames
	}
	return &nativeNames
}

// next is the next row that is not blank.
func (c *csvReader) next() ([]string, error) {
	for {
		cells, err := c.rows.next()
		if err != nil {
			return nil, c.syntax(err)
		}
		if len(cells) > 1 || strings.TrimSpace(cells[0]) != "" {
			return cells, nil
		}
	}
}

// syntax gives an error of encoding/csv its file and what was expected.
func (c *csvReader) syntax(err error) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	fault := &SyntaxError{Pos: Position{File: c.b.out.Name, Line: parse.Line, Column: parse.Column}}
	if errors.Is(err, csv.ErrBareQuote) {
		fault.Msg = `a " inside a cell that does not begin with one`
	} else {
		fault.Msg = `a quoted cell that does not end with " and a comma or line end`
		if parse.StartLine != parse.Line {
			fault.Msg += ", in the row that begins on line " + strconv.Itoa(parse.StartLine)
		}
	}
	fault.Want = `"…" around such a cell and "" for each quote inside`
	return fault
}

// cellAt is the position of a cell of the current row.
func (c *csvReader) cellAt(cell int) Position {
	line, col := c.rows.FieldPos(cell)
	return Position{File: c.b.out.Name, Line: line, Column: col}
}

// position is that of a column's cell in the current row, or of the row.
func (c *csvReader) position(col column) Position {
	if col < numColumns && c.cells[col] >= 0 {
		return c.cellAt(c.cells[col])
	}
	return c.cellAt(0)
}

// header learns which cell holds which column.
func (c *csvReader) header(header []string) error {
	for i := range c.cells {
		c.cells[i] = -1
	}
	c.cols = make([]column, len(header))
	c.extra = make([]string, len(header))
	seen := make(map[string]bool, len(header))
	for i, name := range header {
		name = strings.TrimSpace(name)
		if seen[name] {
			return &SyntaxError{Pos: c.cellAt(i), Msg: "column " + quoted(name) + " is there twice", Want: "each once"}
		}
		seen[name] = true
		if err := c.headerCell(i, name, len(header)); err != nil {
			return err
		}
	}
	return c.required()
}

func (c *csvReader) headerCell(i int, name string, cells int) error {
	if c.b.names == &paramsNames {
		c.cols[i] = colIgnored
		if col, ok := c.b.names.find(name); ok {
			c.cols[i], c.cells[col] = col, i
		}
		return nil
	}
	if isExtra(name) {
		known, problem := c.b.extraName(name)
		if problem != nil {
			return c.b.faultAt(c.cellAt(i), problem)
		}
		c.cols[i], c.extra[i] = colExtra, known
		return nil
	}
	col, ok := c.b.names.find(name)
	if !ok {
		fault := &SyntaxError{Pos: c.cellAt(i), Msg: "unknown column " + quoted(name), Want: unknownWant(name, c.b.names.known())}
		if cells == 1 && strings.ContainsAny(name, ";\t|") {
			fault.Want = "a header with commas between the columns"
		}
		return fault
	}
	c.cols[i], c.cells[col] = col, i
	return nil
}

// required reports a header that no valid job can follow.
func (c *csvReader) required() error {
	var have columnSet
	for col := range numColumns {
		if c.cells[col] >= 0 {
			have = have.with(col)
		}
	}
	names := c.b.names
	switch {
	case !have.has(colID):
		return &SyntaxError{Pos: c.cellAt(0), Msg: "no column " + names[colID], Want: "one for the jobs' unique ids"}
	case names != &nativeNames && !have.hasAll(modelColumns):
		missing := names.name((modelColumns &^ have).first())
		return &SyntaxError{Pos: c.cellAt(0), Msg: "no column " + missing, Want: "all of " + strings.Join(names[firstModelColumn:], ", ")}
	case !have.hasAny(modelColumns) && !have.has(colRuntime) && !have.has(colWorkload):
		return &SyntaxError{
			Pos:  c.cellAt(0),
			Msg:  "no column says how long a job runs",
			Want: names[colRuntime] + ", " + names[colWorkload] + ", or all of " + strings.Join(names[firstModelColumn:], ", "),
		}
	}
	return nil
}

// job reads one row.
func (c *csvReader) job(cells []string) error {
	if len(cells) != len(c.cols) {
		at := c.cellAt(min(len(cells)-1, len(c.cols)))
		return &SyntaxError{
			Pos:  at,
			Msg:  "cells in this row: " + strconv.Itoa(len(cells)),
			Want: strconv.Itoa(len(c.cols)) + " as in the header",
		}
	}
	c.d.reset()
	c.d.job.Pos = c.cellAt(0)
	for i, text := range cells {
		if problem := c.cell(i, text); problem != nil {
			return c.b.faultAt(c.cellAt(i), problem)
		}
	}
	return c.b.add(&c.d)
}

// cell takes one cell; an empty one keeps the default.
func (c *csvReader) cell(i int, text string) *FieldError {
	if c.cols[i] == colIgnored {
		return nil
	}
	if c.cols[i] == colExtra {
		return c.d.addExtra(c.extra[i], text)
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return c.d.set(c.cols[i], text)
}
