package queue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Sizes of reading. A record is a row of CSV, or a token of JSON.
const (
	maxRecord  = 1 << 20
	bufferSize = 1 << 16
)

// textGuard stands between a file and its parser. It lets only text through, and,
// for parsers that read by lines, stops when a line or a record grows too long,
// so that no parser buffers more than that.
type textGuard struct {
	in   io.Reader
	pos  Position // of the next byte
	err  error    // what ended the input, once it has
	rest []byte   // an incomplete character at the end of the last chunk
	read bool     // something has been read

	anyBytes   bool   // all but zero bytes pass, also what isn't UTF-8
	want       string // what an error of bounds asks for
	lines      bool   // bound lines and records
	lineBytes  int    // since the last line end
	held       int    // since the last record was done
	recordLine int    // where the next record begins
}

func newTextGuard(in io.Reader, name string) *textGuard {
	return &textGuard{
		in: in, pos: Position{File: name, Line: 1, Column: 1}, rest: make([]byte, 0, utf8.UTFMax),
		want: `one job a line, every opened " closed`, recordLine: 1,
	}
}

// recordDone tells the guard that the parser has returned a record, and on
// which line the next one begins.
func (g *textGuard) recordDone(nextLine int) { g.held, g.recordLine = 0, nextLine }

// Read reads whole characters and stops at the first byte that is not text.
func (g *textGuard) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	kept := copy(p, g.rest)
	n, err := g.in.Read(p[kept:])
	n += kept
	g.rest = g.rest[:0]
	if !errors.Is(err, io.EOF) {
		tail := incompleteTail(p[:n])
		g.rest = append(g.rest, p[n-tail:n]...)
		n -= tail
	}
	if n > 0 && !g.read {
		g.read = true
		if bytes.HasPrefix(p[:n], []byte(byteOrderMark)) {
			n = copy(p, p[len(byteOrderMark):n])
		}
	}
	n, fault := g.accept(p[:n])
	switch {
	case fault != nil:
		g.err = fault
	case errors.Is(err, io.EOF):
		g.err = io.EOF
	case err != nil:
		g.err = fmt.Errorf("%s: %w", Printable(g.pos.File), err)
	}
	return n, g.err
}

// accept accounts for a chunk and cuts it at the first fault.
func (g *textGuard) accept(chunk []byte) (int, error) {
	if bad := g.firstBad(chunk); bad >= 0 {
		g.advance(chunk[:bad])
		return bad, &SyntaxError{
			Pos:  g.pos,
			Msg:  fmt.Sprintf("byte 0x%02x is not text", chunk[bad]),
			Want: "a file in UTF-8",
		}
	}
	line := g.pos.Line
	long := g.advance(chunk)
	switch {
	case g.lines && long:
		return 0, g.tooLong(line, "line")
	case g.lines && g.held > maxRecord+bufferSize:
		return 0, g.tooLong(g.recordLine, "record")
	}
	return len(chunk), nil
}

// tooLong is the error of a line, or of a record of several lines.
func (g *textGuard) tooLong(line int, what string) error {
	return &SyntaxError{
		Pos:  Position{File: g.pos.File, Line: line, Column: 1},
		Msg:  what + " is longer than 1 MiB",
		Want: g.want,
	}
}

// advance moves the position over a chunk. It reports whether the line at the
// chunk's start has become too long.
func (g *textGuard) advance(chunk []byte) (long bool) {
	g.held += len(chunk)
	lines := bytes.Count(chunk, []byte{'\n'})
	if lines == 0 {
		g.pos.Column += len(chunk)
		g.lineBytes += len(chunk)
		return g.lineBytes > maxRecord
	}
	long = g.lineBytes+bytes.IndexByte(chunk, '\n') > maxRecord
	g.lineBytes = len(chunk) - 1 - bytes.LastIndexByte(chunk, '\n')
	g.pos.Line += lines
	g.pos.Column = g.lineBytes + 1
	return long
}

// firstBad is the index of the first byte that is not let through, or -1.
func (g *textGuard) firstBad(chunk []byte) int {
	nul := bytes.IndexByte(chunk, 0)
	if g.anyBytes {
		return nul
	}
	if nul >= 0 {
		chunk = chunk[:nul]
	}
	if utf8.Valid(chunk) {
		return nul
	}
	i := 0
	for {
		r, size := utf8.DecodeRune(chunk[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
}

// incompleteTail is the number of bytes at the end of a chunk that begin a
// character whose rest is still to be read.
func incompleteTail(chunk []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(chunk); n++ {
		if tail := chunk[len(chunk)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

const byteOrderMark = "\uFEFF"
