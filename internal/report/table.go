package report

import (
	"bufio"
	"encoding/csv"
	"io"
	"iter"
	"slices"
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

// NewTable returns a table of so many rows, each made when it is asked for.
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

// Row is a row of a [TableOf] on its way: a value for each column, both said in one place.
type Row struct {
	columns []Column
	values  []Value
}

// Add adds a column with the row's value.
func (r *Row) Add(c Column, v Value) {
	r.columns, r.values = append(r.columns, c), append(r.values, v)
}

// TableOf returns a table with a row for each of a list. All rows add the same columns; without any
// row the columns are those of an empty one.
func TableOf[T any](list []T, fill func(row *Row, of *T)) *Table {
	var row Row
	rowOf := func(of *T) []Value {
		row.columns, row.values = row.columns[:0], row.values[:0]
		fill(&row, of)
		return row.values
	}
	t := &Table{Len: len(list), Rows: func(yield func([]Value) bool) {
		for i := range list {
			if !yield(rowOf(&list[i])) {
				return
			}
		}
	}}
	first := new(T)
	if len(list) > 0 {
		first = &list[0]
	}
	rowOf(first)
	t.Columns = slices.Clone(row.columns)
	return t
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
