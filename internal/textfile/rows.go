package textfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// separators are the characters that may stand between cells, the likeliest first.
const separators = ",;\t|"

// Rows are the rows of a table: cells with commas, semicolons, tabs or bars between
// them, in quotes or not, with spaces around them or not. Lines with nothing but space
// are passed over. A line or a row of more than 1 MiB ends the reading. Rows of UTF-8 are
// read as they come; what isn't UTF-8 is for the reader below to refuse.
type Rows struct {
	in        *bufio.Reader
	name      string
	separator byte // 0: not yet known
	width     int  // that a first row without a header is known to have; 0: it isn't

	line   int // lines that were read
	start  int // the line on which the current row begins
	open   bool
	buffer []byte
	text   []byte // of the row's cells, one after another
	ends   []int  // of the cells in it
	at     []place
	cells  []string
}

// place is where a cell begins.
type place struct{ line, column int }

// NewRows reads from text that was opened with [Open].
func NewRows(in *bufio.Reader, name string) *Rows { return &Rows{in: in, name: name} }

// ExpectCells says how many cells the first row has, which has no header before it.
func (r *Rows) ExpectCells(cells int) { r.width = cells }

// Separator returns what stands between cells; it is known when a row was read.
func (r *Rows) Separator() byte { return r.separator }

// Line returns the line on which the current row begins.
func (r *Rows) Line() int { return r.start }

// Unterminated reports whether the line that was read last has no end: it may be cut.
func (r *Rows) Unterminated() bool { return r.open }

// CellAt returns the position of a cell of the current row; the row's, where it has none.
func (r *Rows) CellAt(cell int) Position {
	if cell < 0 || cell >= len(r.at) {
		return Position{File: r.name, Line: max(r.start, 1), Column: 1}
	}
	return Position{File: r.name, Line: r.at[cell].line, Column: r.at[cell].column}
}

// Read returns the next row, io.EOF after the last one. Its cells hold until the next call,
// their text for good. Every other error says file, line and column.
func (r *Rows) Read() ([]string, error) {
	if r.separator == 0 {
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r.start = r.line
		if err := r.splitRow(line); err != nil {
			return nil, err
		}
		text, from := string(r.text), 0
		r.cells = r.cells[:0]
		for _, end := range r.ends {
			r.cells = append(r.cells, text[from:end])
			from = end
		}
		return r.cells, nil
	}
}

// readLine returns the next line without its end, which holds until the next one.
func (r *Rows) readLine() ([]byte, error) {
	r.buffer = r.buffer[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.buffer)+len(part) > maxRow+len("\r\n") {
			return nil, r.tooLong(r.line+1, "line")
		}
		if len(r.buffer) > 0 || err != nil {
			r.buffer = append(r.buffer, part...)
			part = r.buffer
		}
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(part) > 0:
			r.open = true
		default:
			return nil, err
		}
		r.line++
		part = bytes.TrimSuffix(part, []byte{'\n'})
		if part = bytes.TrimSuffix(part, []byte{'\r'}); len(part) > maxRow {
			return nil, r.tooLong(r.line, "line")
		}
		return part, nil
	}
}

func (r *Rows) tooLong(line int, what string) error {
	return &SyntaxError{
		Pos: Position{File: r.name, Line: line, Column: 1}, Msg: what + " is longer than 1 MiB",
		Want: `one row a line, every opened " closed`,
	}
}

// splitRow cuts a row that begins with a line into cells.
func (r *Rows) splitRow(line []byte) error {
	r.text, r.ends, r.at = r.text[:0], r.ends[:0], r.at[:0]
	for i := 0; ; i++ {
		for i < len(line) && r.isSpace(line[i]) {
			i++
		}
		r.at = append(r.at, place{r.line, i + 1})
		if i < len(line) && line[i] == '"' {
			var err error
			if line, i, err = r.quoted(line, i+1); err != nil {
				return err
			}
		} else {
			end := bytes.IndexByte(line[i:], r.separator)
			if end < 0 {
				end = len(line) - i
			}
			if q := bytes.IndexByte(line[i:i+end], '"'); q >= 0 {
				return r.quoteError(i+q+1, `a " inside a cell that does not begin with one`)
			}
			r.text = append(r.text, line[i:i+end]...)
			i += end
		}
		r.ends = append(r.ends, len(r.text))
		if i >= len(line) {
			return nil
		}
	}
}

// quoted reads a cell after its first quote, and the lines over which it goes. It ends
// at a separator or the end of the line.
func (r *Rows) quoted(line []byte, i int) ([]byte, int, error) {
	const noEnd = `a quoted cell that does not end with " and a separator or line end`
	for {
		q := bytes.IndexByte(line[i:], '"')
		if q < 0 {
			r.text = append(append(r.text, line[i:]...), '\n')
			if len(r.text) > maxRow {
				return nil, 0, r.tooLong(r.start, "record")
			}
			width := len(line)
			next, err := r.readLine()
			if errors.Is(err, io.EOF) {
				return nil, 0, r.quoteError(width+1, noEnd)
			}
			if err != nil {
				return nil, 0, err
			}
			line, i = next, 0
			continue
		}
		r.text = append(r.text, line[i:i+q]...)
		i += q + 1
		if i < len(line) && line[i] == '"' {
			r.text = append(r.text, '"')
			i++
			continue
		}
		end := i
		for i < len(line) && r.isSpace(line[i]) {
			i++
		}
		if i < len(line) && line[i] != r.separator {
			return nil, 0, r.quoteError(end, noEnd)
		}
		return line, i, nil
	}
}

func (r *Rows) quoteError(column int, msg string) error {
	if r.start != r.line {
		msg += ", in the row that begins on line " + strconv.Itoa(r.start)
	}
	return &SyntaxError{
		Pos: Position{File: r.name, Line: r.line, Column: column}, Msg: msg,
		Want: `"…" around such a cell and "" for each quote inside`,
	}
}

// isSpace reports whether a character around a cell is no part of it.
func (r *Rows) isSpace(c byte) bool { return c == ' ' || c == '\t' && r.separator != '\t' }

// begin finds the separator: what a first line such as sep=; says, else what stands most
// often in the first line outside of quotes, a comma in doubt.
func (r *Rows) begin() error {
	line := firstLine(r.in)
	if said, ok := statedSeparator(line); ok {
		if said == "" || !strings.Contains(separators, said) {
			return &SyntaxError{
				Pos: Position{File: r.name, Line: 1, Column: 1}, Msg: "separator " + Quoted(said),
				Want: "sep= and a comma, a semicolon, a tab or |",
			}
		}
		r.separator = said[0]
		_, err := r.readLine()
		return err
	}
	counts := countSeparators(line)
	best := 0
	for i := range counts {
		if counts[i] > counts[best] {
			best = i
		}
	}
	r.separator = separators[best]
	if r.width == 0 {
		return nil
	}
	// Decimal commas may stand beside the separator, and no header tells them apart.
	var fit []string
	for i, n := range counts {
		if n == r.width-1 {
			fit = append(fit, strconv.QuoteRune(rune(separators[i])))
			r.separator = separators[i]
		}
	}
	if len(fit) > 1 {
		return &SyntaxError{
			Pos: Position{File: r.name, Line: 1, Column: 1},
			Msg: "cells may be separated by " + strings.Join(fit, " or "), Want: "a first line such as sep=;",
		}
	}
	return nil
}

// countSeparators counts the separators of a line that are outside of quotes.
func countSeparators(line []byte) (counts [len(separators)]int) {
	quoted := false
	for _, c := range line {
		if c == '"' {
			quoted = !quoted
		} else if i := strings.IndexByte(separators, c); i >= 0 && !quoted {
			counts[i]++
		}
	}
	return counts
}

// statedSeparator returns the separator that spreadsheets state in a line of its own, sep=;,
// which may be in quotes, or followed by separators if it was read and written again.
func statedSeparator(line []byte) (string, bool) {
	text := strings.Trim(string(line), " \r\n")
	if strings.HasPrefix(text, `"`) {
		inside, after, closed := strings.Cut(text[1:], `"`)
		if !closed || strings.Trim(after, separators) != "" {
			return "", false
		}
		text = inside
	}
	const prefix = "sep="
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	text = text[len(prefix):]
	if len(text) > 1 && strings.Trim(text, text[:1]) == "" {
		text = text[:1]
	}
	return text, len(text) <= 1
}

// firstLine returns the first line that is not blank, or as much of it as the buffer holds. It
// waits for no more than that line, and leaves all in the buffer.
func firstLine(in *bufio.Reader) []byte {
	for want := 1; want <= in.Size(); {
		text, err := in.Peek(want)
		if err == nil {
			text, _ = in.Peek(in.Buffered())
		}
		begin := len(text) - len(bytes.TrimLeft(text, " \t\r\n"))
		if end := bytes.IndexByte(text[begin:], '\n'); end >= 0 || err != nil {
			if end < 0 {
				end = len(text) - begin
			}
			return text[begin : begin+end]
		}
		want = len(text) + 1
	}
	text, _ := in.Peek(in.Buffered())
	return text
}

// FirstLine returns the first line of a file that is not blank, decoded; it leaves all in the buffer.
func FirstLine(in *bufio.Reader) string {
	line, _ := Open(bytes.NewReader(firstLine(in)), "", AnyBytes).ReadString('\n') // or all of it
	return line
}

// FirstByte returns the first byte of a text that is no space; 0 where there is none in the buffer.
func FirstByte(in *bufio.Reader) byte {
	if line := bytes.TrimSpace(firstLine(in)); len(line) > 0 {
		return line[0]
	}
	return 0
}
