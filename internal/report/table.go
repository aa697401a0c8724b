package report

import (
	"bufio"
	"encoding/csv"
	"io"
	"iter"
)

// Table is a result of equal rows, written as text, CSV or JSON.
type Table struct {
	Columns []Column
	// Rows yields the rows, a value for each column. It may use the same slice
	// for all of them.
	Rows iter.Seq[[]Value]
	// Len is the number of rows if it is known: it spares WriteText making
	// those that it only counts.
	Len int
}

// NewTable is a table of so many rows, each made when it is asked for.
func NewTable(columns []Column, rows int, row func(i int) []Value) *Table {
	return &Table{Columns: columns, Len: rows, Rows: func(yield func([]Value) bool) {
		for i := range rows {
			if !yield(row(i)) {
				return
			}
		}
	}}
}

// Column describes a column of a [Table].
type Column struct {
	Key      string // name in JSON and CSV, ending in the unit; empty: for people only
	Head     string // heading for people; empty: for machines only
	Note     string // second line of the heading; empty: the unit
	Unit     Unit
	Digits   int  // significant digits of the smallest number for people; 0: three
	Group    int  // columns of one group share prefix and decimals; 0: on its own
	Left     bool // aligned to the left
	JSONOnly bool // an object, which a CSV file has no place for
	Optional bool // left out of a JSON object when the value is missing
	Max      int  // longest text for people, in characters; 0: any
}

// WriteCSV writes the table with its keys as header.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	keyed := t.columns(func(c *Column) bool { return c.Key != "" && !c.JSONOnly })
	row := make([]string, len(keyed))
	for i, c := range keyed {
		row[i] = t.Columns[c].Key
	}
	if err := out.Write(row); err != nil {
		return err
	}
	for values := range t.Rows {
		for i, c := range keyed {
			row[i] = values[c].csv()
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteJSON writes the table as an array of objects, one a line.
func (t *Table) WriteJSON(w io.Writer) error {
	out := bufio.NewWriter(w)
	if err := t.WriteArray(out, ""); err != nil {
		return err
	}
	if err := out.WriteByte('\n'); err != nil {
		return err
	}
	return out.Flush()
}

// WriteArray writes the rows as a JSON array that stands at the given
// indentation. A bufio.Writer keeps its first error, so the last one tells.
func (t *Table) WriteArray(out *bufio.Writer, indent string) error {
	keyed := t.columns(func(c *Column) bool { return c.Key != "" })
	members := make([][]byte, len(keyed))
	for i, c := range keyed {
		members[i] = append(AppendQuoted(nil, t.Columns[c].Key), ": "...)
	}
	var line []byte
	_, err := out.WriteString("[")
	before := "\n" + indent + "  "
	for values := range t.Rows {
		line = t.appendObject(append(line[:0], before...), keyed, members, values)
		if _, err = out.Write(line); err != nil {
			return err
		}
		before = ",\n" + indent + "  "
	}
	if line != nil {
		_, err = out.WriteString("\n" + indent)
	}
	if err != nil {
		return err
	}
	return out.WriteByte(']')
}

func (t *Table) appendObject(dst []byte, keyed []int, members [][]byte, values []Value) []byte {
	dst = append(dst, '{')
	first := true
	for i, c := range keyed {
		if t.Columns[c].Optional && values[c].kind == missingKind {
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = values[c].AppendJSON(append(dst, members[i]...))
	}
	return append(dst, '}')
}

func (t *Table) columns(keep func(*Column) bool) []int {
	kept := make([]int, 0, len(t.Columns))
	for i := range t.Columns {
		if keep(&t.Columns[i]) {
			kept = append(kept, i)
		}
	}
	return kept
}
