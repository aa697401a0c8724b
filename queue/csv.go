package queue

import (
	"bufio"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/textfile"
)

// csvReader reads rows into a builder.
type csvReader struct {
	rows  *textfile.Rows
	b     *batchBuilder
	cols  []columnHeading // of each cell
	cells [numColumns]int // where each column is, -1 when the file lacks it
	d     jobDraft
}

// readCSV reads a CSV file with the given names of columns until io.EOF; nil lets the
// header choose them.
func readCSV(in *bufio.Reader, b *batchBuilder, names *columnNames) error {
	c := &csvReader{rows: textfile.NewRows(in, b.out.Name), b: b}
	b.where = c.position
	header := b.options.Header
	if len(header) > 0 {
		c.rows.ExpectCells(len(header))
	} else {
		var err error
		if header, err = c.next(); err != nil {
			return err
		}
		header = slices.Clone(header)
	}
	if names == nil {
		names = columnNamesOf(header)
	}
	b.names = names
	if err := c.header(header); err != nil {
		return err
	}
	for {
		cells, err := c.next()
		if err != nil {
			return err
		}
		b.numbers.Commas = c.rows.Separator() == ','
		if err := c.job(cells); err != nil {
			return err
		}
	}
}

// columnNamesOf tells the EDL columns from the others by one that only they have.
func columnNamesOf(header []string) *columnNames {
	if slices.ContainsFunc(header,
		func(cell string) bool { return strings.TrimSpace(cell) == edlNames[firstModelColumn] }) {
		return &edlNames
	}
	return &nativeNames
}

// next returns the next row that has anything in it.
func (c *csvReader) next() ([]string, error) {
	for {
		cells, err := c.rows.Read()
		full := func(cell string) bool { return strings.TrimSpace(cell) != "" }
		if err != nil || slices.ContainsFunc(cells, full) {
			return cells, err
		}
	}
}

// cellAt returns the position of a cell of the current row.
func (c *csvReader) cellAt(cell int) Position { return c.rows.CellAt(cell) }

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
	c.cols = make([]columnHeading, len(header))
	seen := make(map[string]bool, len(header))
	var unknown []int
	for i, name := range header {
		name = strings.TrimSpace(name)
		if name == textfile.UnusedColumn && len(c.b.options.Header) > 0 {
			c.cols[i] = columnHeading{col: colIgnored}
			continue
		}
		if name == "" { // spreadsheets write some after the last column
			c.cols[i] = columnHeading{col: colBlank}
			if i == 0 && len(header) > 1 { // pandas writes the rows' numbers there
				c.cols[i].col = colIgnored
				c.b.out.Warnings = append(c.b.out.Warnings, &Warning{Kind: WarnUnused, Err: &SyntaxError{
					Pos: c.cellAt(i), Msg: "the first column has no name and isn't used",
				}})
			}
			continue
		}
		if seen[name] {
			return &SyntaxError{
				Pos: c.cellAt(i), Msg: "column " + quoted(name) + " is there twice", Want: "each once",
			}
		}
		seen[name] = true
		known, err := c.headerCell(i, name, header)
		if err != nil {
			return err
		}
		switch {
		case known:
		case c.b.options.Ignore:
			c.b.passOver(c.cellAt(i), name)
			c.cols[i] = columnHeading{col: colIgnored}
		default:
			unknown = append(unknown, i)
		}
	}
	if err := c.b.checkMapped(c.cellAt(0)); err != nil {
		return err
	}
	if len(unknown) > 0 {
		return c.unknownColumns(header, unknown)
	}
	return c.checkRequired()
}

// headerCell finds the column of a cell of the header.
func (c *csvReader) headerCell(i int, name string, header []string) (known bool, err error) {
	h := columnHeading{col: colIgnored}
	if c.b.names == &nativeNames {
		var problem *FieldError
		if h, known, problem = c.b.heading(name); problem != nil {
			return true, c.b.faultAt(c.cellAt(i), problem)
		}
		if !known {
			return false, nil
		}
		if h.col == colOnModel {
			c.cols[i] = h
			return true, nil
		}
	} else if col, ok := c.b.names.find(name); ok {
		h.col = col
	} else if isExtra(name) && c.b.names != &paramsNames {
		h = columnHeading{col: colExtra, extra: name}
	} else if c.b.names != &paramsNames {
		return false, nil
	}
	c.b.warnOfKept(c.cellAt(i), name, &h)
	switch {
	case h.col == colExtra:
		extra, problem := c.b.extraName(h.extra)
		if problem != nil {
			return true, c.b.faultAt(c.cellAt(i), problem)
		}
		if slices.ContainsFunc(c.cols[:i], func(other columnHeading) bool { return other.extra == extra }) {
			return true, &SyntaxError{
				Pos: c.cellAt(i), Msg: "column " + quoted(extra) + " is there twice", Want: "each once",
			}
		}
		h.extra = extra
	case h.col < numColumns:
		if first := c.cells[h.col]; first >= 0 {
			return true, &SyntaxError{
				Pos: c.cellAt(i),
				Msg: "columns " + quoted(strings.TrimSpace(header[first])) + " and " + quoted(name) +
					" are both " + c.b.names.name(h.col),
				Want: "one of them",
			}
		}
		c.cells[h.col] = i
	}
	c.cols[i] = h
	return true, nil
}

// unknownColumns names all the columns of the header that are none.
func (c *csvReader) unknownColumns(header []string, unknown []int) error {
	first := strings.TrimSpace(header[unknown[0]])
	fault := &SyntaxError{
		Pos: c.cellAt(unknown[0]), Msg: "unknown column " + quoted(first),
		Want: unknownWant(first, c.b.names.known()),
	}
	if len(unknown) == 1 {
		return fault
	}
	names := make([]string, len(unknown))
	for i, at := range unknown {
		name := strings.TrimSpace(header[at])
		names[i] = quoted(name)
		if near := nearestColumn(name, c.b.names.known()); near != "" {
			names[i] += " (did you mean " + near + "?)"
		}
	}
	fault.Msg = "unknown columns " + strings.Join(names, ", ")
	fault.Want = "each one of " + strings.Join(c.b.names.known(), ", ") + ", or a name that begins with x_"
	return fault
}

// checkRequired reports a header that no valid job can follow.
func (c *csvReader) checkRequired() error {
	var have columnSet
	for col := range numColumns {
		if c.cells[col] >= 0 {
			have = have.with(col)
		}
	}
	if slices.ContainsFunc(c.cols, func(h columnHeading) bool { return h.of == colRuntime }) {
		have = have.with(colRuntime)
	}
	names := c.b.names
	switch {
	case !have.has(colID):
		return &SyntaxError{
			Pos: c.cellAt(0), Msg: "no column " + names[colID], Want: "one for the jobs' unique ids",
		}
	case names != &nativeNames && !have.hasAll(neededColumns):
		missing := names.name((neededColumns &^ have).first())
		return &SyntaxError{Pos: c.cellAt(0), Msg: "no column " + missing, Want: "all of " + names.model()}
	case !have.hasAny(modelColumns) && !have.has(colRuntime) && !have.has(colWorkload):
		return &SyntaxError{
			Pos:  c.cellAt(0),
			Msg:  "no column says how long a job runs",
			Want: names[colRuntime] + ", " + names[colWorkload] + ", or all of " + names.model(),
		}
	}
	return nil
}

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
	h := &c.cols[i]
	if h.col == colIgnored {
		return nil
	}
	if h.col == colExtra {
		return c.d.addExtra(h.extra, text)
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	if h.col == colBlank {
		return newFieldError(colJob, quoted(text)+" stands in a column without a name",
			"a name for it in the header")
	}
	if !isText(h.col) {
		var problem *FieldError
		if text, problem = c.plain(i, h, text); problem != nil {
			return problem
		}
	}
	if h.col == colOnModel {
		return c.d.setOn(h.of, h.extra, text, h)
	}
	return c.d.set(h.col, text, h)
}

// plain returns a cell with its numbers as programmers write them.
func (c *csvReader) plain(i int, h *columnHeading, text string) (string, *FieldError) {
	numbers := []string{text}
	if h.col == colUtil {
		numbers = strings.Fields(text)
	}
	for k, number := range numbers {
		plain, msg, want := c.b.numbers.Plain(number, c.cellAt(i))
		if msg != "" {
			col := h.col
			if col == colOnModel {
				col = h.of
			}
			return "", newFieldError(col, msg, want)
		}
		numbers[k] = plain
	}
	return strings.Join(numbers, " "), nil
}
