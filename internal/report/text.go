package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/epplan/epplan/queue"
)

// TextOptions change how text for people looks; nil means the defaults.
type TextOptions struct {
	// Rows is the most rows of a table that are shown. 0 means [DefaultRows], [NoRows]
	// none, and another negative number all of them.
	Rows int
	// Color emphasises headings and trouble with terminal colours.
	Color bool
	// Width is in how many columns a table has to fit if cutting its longest texts makes it; 0: any number.
	Width int
	// Wide shows every column that a CSV file has, and cuts nothing.
	Wide bool
	// Markup writes a table in a markup language, its lines after [MarkupRow].
	Markup Markup
}

// Markup is a language for tables in documents.
type Markup uint8

// The markup languages; none by default.
const (
	NoMarkup Markup = iota
	Markdown
	LaTeX
)

// MarkupRow tells the lines of a table in a markup language from others, which have no such character.
const MarkupRow = "\x00"

// DefaultRows is how many rows of a long table people get to see.
const DefaultRows = 25

// NoRows makes a table print only its number of rows.
const NoRows = math.MinInt

// The emphasis that a terminal with colours gets.
const (
	Bold    = "1"
	BoldRed = "1;31"
	Yellow  = "33"
)

// Paint emphasises text where colours are wanted.
func (o *TextOptions) Paint(style, text string) string {
	if o == nil || !o.Color || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// WriteRow writes a line with a name before it.
func WriteRow(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-12s"+format+"\n", append([]any{name}, args...)...)
}

// WriteText writes the table in aligned columns. Columns without any value are
// left out, and long tables are cut with a line that counts the rest.
func (t *Table) WriteText(w io.Writer, opts *TextOptions) error {
	out := bufio.NewWriter(w)
	limit := DefaultRows
	if opts != nil && opts.Rows != 0 {
		if limit = opts.Rows; limit == NoRows {
			limit = 0
		}
	}
	rows, more := t.firstRows(limit)
	columns := t.layOut(rows, opts)
	switch {
	case opts == nil || opts.Markup == NoMarkup:
		writeText(out, columns, len(rows), more, opts)
	case opts.Markup == LaTeX:
		writeLaTeX(out, columns, len(rows))
	default:
		writeMarkdown(out, columns, len(rows))
	}
	if more > 0 {
		WriteLines(out, "… "+FormatCount(more)+" more; --json or --csv shows all")
	}
	return out.Flush()
}

func writeText(out *bufio.Writer, columns []textColumn, rows, more int, opts *TextOptions) {
	if rows > 0 || more == 0 {
		writeAligned(out, columns, opts, func(c *textColumn) string { return c.head })
	}
	if slices.ContainsFunc(columns, func(c textColumn) bool { return c.note != "" }) {
		writeAligned(out, columns, opts, func(c *textColumn) string { return c.note })
	}
	for i := range rows {
		writeAligned(out, columns, nil, func(c *textColumn) string { return c.cells[i] })
	}
}

// layOut returns the columns that people see, as wide as what is in them.
func (t *Table) layOut(rows [][]Value, opts *TextOptions) []textColumn {
	if opts == nil {
		opts = &TextOptions{}
	}
	var columns []textColumn
	for _, i := range t.columns(func(c *Column) bool { return c.Head != "" || opts.Wide && !c.JSONOnly }) {
		c := t.Columns[i]
		if opts.Wide {
			c.Left = c.Left || c.Head == "" && len(rows) > 0 && rows[0][i].kind == textKind
			c.Head, c.Max = cmp.Or(c.Head, c.Key), 0
		}
		if col := c.layOut(rows, i, t.scale(rows, i)); col.filled {
			columns = append(columns, col)
		}
	}
	if opts.Width > 0 && !opts.Wide && opts.Markup == NoMarkup {
		fitColumns(columns, opts.Width)
	}
	return columns
}

// leastText is how much of a text is left, so that one sees what it is.
const leastText = 12

// fitColumns cuts the longest texts until the columns fit in so many of a terminal, if they can.
func fitColumns(columns []textColumn, width int) {
	total := -len(columnGap)
	for i := range columns {
		total += columns[i].width + len(columnGap)
	}
	cut := make([]bool, len(columns))
	for ; total > width; total-- {
		longest := -1
		for i := range columns {
			least := max(leastText, textWidth(columns[i].head), textWidth(columns[i].note))
			if columns[i].left && columns[i].width > least &&
				(longest < 0 || columns[i].width > columns[longest].width) {
				longest = i
			}
		}
		if longest < 0 {
			break
		}
		columns[longest].width--
		cut[longest] = true
	}
	for i := range columns {
		for k, cell := range columns[i].cells {
			if cut[i] {
				columns[i].cells[k] = Truncate(cell, columns[i].width)
			}
		}
	}
}

// markdownEscapes keep what stands in a cell from ending it, and from being read as Markdown or HTML.
var markdownEscapes = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "~", "\\~", "!", "\\!",
	"<", "&lt;", ">", "&gt;", "&", "&amp;",
)

// EscapeMarkdown returns text that Markdown shows as it is.
func EscapeMarkdown(text string) string { return markdownEscapes.Replace(text) }

// writeMarkdown writes a table in Markdown, units in the headings.
func writeMarkdown(out *bufio.Writer, columns []textColumn, rows int) {
	line := func(cell func(*textColumn) string) {
		cells := make([]string, len(columns))
		for i := range columns {
			cells[i] = cell(&columns[i])
		}
		WriteLines(out, MarkupRow+"| "+strings.Join(cells, " | ")+" |")
	}
	line(func(c *textColumn) string { return EscapeMarkdown(c.heading()) })
	line(func(c *textColumn) string {
		if c.left {
			return "---"
		}
		return "---:"
	})
	for i := range rows {
		line(func(c *textColumn) string { return EscapeMarkdown(c.cells[i]) })
	}
	WriteLines(out, MarkupRow)
}

// Text returns what WriteText writes.
func (t *Table) Text(opts *TextOptions) string {
	var b strings.Builder
	_ = t.WriteText(&b, opts) // a Builder takes everything
	return b.String()
}

// firstRows returns the first rows of the table, at most limit of them unless that is
// negative, and how many more there are.
func (t *Table) firstRows(limit int) (rows [][]Value, more int) {
	for row := range t.Rows {
		if limit < 0 || len(rows) < limit {
			rows = append(rows, slices.Clone(row))
			continue
		}
		if t.Len > 0 {
			return rows, t.Len - len(rows)
		}
		more++
	}
	return rows, more
}

// textColumn is a column ready to be printed.
type textColumn struct {
	head, note string
	cells      []string
	width      int
	left       bool
	filled     bool // some cell has a value
}

// heading returns the heading with its unit on one line.
func (c *textColumn) heading() string {
	if c.note == "" {
		return c.head
	}
	return c.head + " (" + c.note + ")"
}

func (c *Column) layOut(rows [][]Value, index int, scale Scale) textColumn {
	out := textColumn{head: c.Head, note: c.Note, left: c.Left, cells: make([]string, len(rows))}
	if out.note == "" {
		out.note = scale.Symbol()
	}
	out.width = max(textWidth(out.head), textWidth(out.note))
	for i := range rows {
		v := &rows[i][index]
		out.filled = out.filled || v.kind != missingKind
		out.cells[i] = Truncate(v.Display(scale, c.Unit), c.Max)
		out.width = max(out.width, textWidth(out.cells[i]))
	}
	return out
}

// scale returns the one that suits all numbers of a column and of its group.
func (t *Table) scale(rows [][]Value, column int) Scale {
	c := &t.Columns[column]
	var numbers []float64
	for other := range t.Columns {
		if o := &t.Columns[other]; o.Head == "" || (other != column && (c.Group == 0 || o.Group != c.Group)) {
			continue
		}
		for i := range rows {
			if v := &rows[i][other]; v.kind == numberKind {
				numbers = append(numbers, v.number)
			}
		}
	}
	return CommonScale(c.Unit, cmp.Or(c.Digits, ColumnDigits), numbers...)
}

// ColumnDigits is how many significant digits the smallest number of a column
// has unless the column says otherwise.
const ColumnDigits = 3

// Display returns the value as people read it.
func (v *Value) Display(scale Scale, unit Unit) string {
	switch v.kind {
	case textKind, jsonKind:
		return queue.Printable(v.text)
	case numberKind:
		if unit == Plain {
			return strconv.FormatFloat(v.number, 'g', 6, 64)
		}
		return scale.Format(v.number)
	case countKind:
		return FormatCount(int(v.number))
	case gpuSetKind:
		return RangesText(v.set)
	default:
		return missingText
	}
}

// columnGap is the space between two columns.
const columnGap = "  "

func writeAligned(out *bufio.Writer, columns []textColumn, opts *TextOptions, cell func(*textColumn) string) {
	var line strings.Builder
	for i := range columns {
		c := &columns[i]
		text := cell(c)
		pad := strings.Repeat(" ", max(0, c.width-textWidth(text)))
		if i > 0 {
			line.WriteString(columnGap)
		}
		if c.left {
			line.WriteString(text + pad)
		} else {
			line.WriteString(pad + text)
		}
	}
	WriteLines(out, opts.Paint(Bold, strings.TrimRight(line.String(), " ")))
}

// WriteLines writes lines of text. The writer keeps its first error until it
// is flushed.
func WriteLines(out *bufio.Writer, lines ...string) {
	for _, line := range lines {
		_, _ = out.WriteString(line)
		_ = out.WriteByte('\n')
	}
}

// textWidth returns how many columns of a terminal a text takes; wide scripts count as
// narrow.
func textWidth(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me) {
			n--
		}
	}
	return n
}

// Truncate cuts a text to at most n characters; 0 leaves it alone.
func Truncate(s string, n int) string {
	if n == 0 || utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}

// MostNames is how many names a sentence has at most.
const MostNames = 10

// NamesText returns the first of so many names, and how many more there are.
func NamesText(names []string, count int) string {
	const longest = 24 // characters
	first := make([]string, min(len(names), MostNames))
	for i := range first {
		first[i] = Truncate(names[i], longest)
	}
	text := strings.Join(first, ", ")
	if rest := count - len(first); rest > 0 {
		text += " and " + FormatCount(rest) + " more"
	}
	return text
}
