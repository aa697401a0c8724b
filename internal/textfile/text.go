package textfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Bytes says which bytes of a file pass.
type Bytes uint8

const (
	// OnlyText lets UTF-8 pass, and UTF-16 as UTF-8.
	OnlyText Bytes = iota
	// AnyButZero lets all bytes pass but zeros: logs hold names in any encoding.
	AnyButZero
	// AnyBytes lets all bytes pass; who reads them looks at each line.
	AnyBytes
)

const (
	bufferSize = 1 << 16
	maxRow     = 1 << 20
	mark       = "\uFEFF"
	wantText   = "UTF-8 or UTF-16 text"
)

// Open returns the text of a file as UTF-8, without a byte order mark. UTF-16 is told by
// its mark, or by the zero bytes of its first two characters. Line ends that are carriage
// returns alone become line feeds. The name is that of the file in errors.
func Open(r io.Reader, name string, pass Bytes) *bufio.Reader {
	return bufio.NewReaderSize(&text{
		in: bufio.NewReaderSize(r, bufferSize), pass: pass, pos: Position{File: name, Line: 1, Column: 1},
	}, bufferSize)
}

// text decodes a file block by block.
type text struct {
	in    *bufio.Reader
	pass  Bytes
	pos   Position // of the next byte that is decoded
	err   error    // what ended the input, once it has
	ready []byte   // decoded and not yet handed out
	left  []byte   // an incomplete character at the end of the last block

	begun bool
	wide  utf16Order // UTF-16
	ends  lineEnds
	space []byte // for decoded text

	returned bool // the last block ended in the first carriage return, which is held back
}

// utf16Order is the order of the bytes of UTF-16.
type utf16Order uint8

const (
	notWide utf16Order = iota
	littleFirst
	bigFirst
)

type lineEnds uint8

const (
	endsUnknown lineEnds = iota
	lineFeeds
	returnsOnly
)

// Read returns whole blocks of text until the first byte that is none.
func (t *text) Read(p []byte) (int, error) {
	for len(t.ready) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		t.fill()
	}
	n := copy(p, t.ready)
	t.ready = t.ready[n:]
	return n, nil
}

// fill decodes the next block.
func (t *text) fill() {
	if !t.begun {
		t.begun, t.wide = true, t.readByteOrder()
	}
	if t.space == nil {
		t.space = make([]byte, 0, bufferSize)
	}
	block := append(t.space[:0], t.left...)
	kept := len(block)
	n, err := t.in.Read(block[kept:cap(block)])
	block, t.left = block[:kept+n], t.left[:0]
	ended := errors.Is(err, io.EOF)
	if t.wide != notWide {
		block, t.left = t.decodeUTF16(block, ended)
	} else if !ended {
		tail := incompleteTail(block)
		t.left = append(t.left, block[len(block)-tail:]...)
		block = block[:len(block)-tail]
	}
	if bad := t.firstBad(block); bad >= 0 {
		t.advance(block[:bad])
		t.ready, t.err = block[:bad], t.badByteError(block[bad])
		return
	}
	t.ready = t.loneCRToLF(block, ended)
	t.advance(t.ready)
	switch {
	case t.err != nil || err == nil:
	case ended:
		t.err = io.EOF
	case t.pos.File == "", isSyntax(err): // it has a place
		t.err = err
	default:
		t.err = fmt.Errorf("%s: %w", Printable(t.pos.File), err)
	}
}

func isSyntax(err error) bool {
	_, ok := errors.AsType[*SyntaxError](err)
	return ok
}

// readByteOrder passes over a byte order mark, and tells UTF-16 by it or by two characters
// with zero bytes.
func (t *text) readByteOrder() utf16Order {
	const two = 4 // bytes of two characters
	start, _ := t.in.Peek(two)
	switch {
	case bytes.HasPrefix(start, []byte(mark)):
		_, _ = t.in.Discard(len(mark)) // they are in the buffer
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}):
		_, _ = t.in.Discard(2)
		return littleFirst
	case bytes.HasPrefix(start, []byte{0xfe, 0xff}):
		_, _ = t.in.Discard(2)
		return bigFirst
	case len(start) == two && start[0] > 0 && start[1] == 0 && start[2] > 0 && start[3] == 0:
		return littleFirst
	case len(start) == two && start[0] == 0 && start[1] > 0 && start[2] == 0 && start[3] > 0:
		return bigFirst
	}
	return notWide
}

// decodeUTF16 decodes UTF-16. What is left is an incomplete character.
func (t *text) decodeUTF16(block []byte, ended bool) (decoded, left []byte) {
	unit := func(at int) rune {
		if t.wide == bigFirst {
			return rune(block[at])<<8 | rune(block[at+1])
		}
		return rune(block[at+1])<<8 | rune(block[at])
	}
	decoded = make([]byte, 0, 2*len(block))
	at := 0
	for ; at+2 <= len(block); at += 2 {
		r := unit(at)
		if utf16.IsSurrogate(r) {
			if at+4 > len(block) && !ended {
				break
			}
			low := rune(-1)
			if at+4 <= len(block) {
				low = unit(at + 2)
			}
			r = utf16.DecodeRune(r, low)
			if r == utf8.RuneError && t.pass == OnlyText {
				t.advance(decoded)
				t.err = &SyntaxError{Pos: t.pos, Msg: "half a character of UTF-16", Want: wantText}
				return decoded, nil
			}
			if r != utf8.RuneError {
				at += 2
			}
		}
		decoded = utf8.AppendRune(decoded, r)
	}
	left = append(left, block[at:]...)
	if ended && len(left) > 0 && t.pass == OnlyText {
		t.err = &SyntaxError{Pos: t.pos, Msg: "the file ends within a character of UTF-16", Want: wantText}
	}
	return decoded, left
}

// loneCRToLF makes line feeds of carriage returns if the first line of the file ends
// in one alone.
func (t *text) loneCRToLF(block []byte, ended bool) []byte {
	if t.returned {
		block, t.returned = append([]byte{'\r'}, block...), false
	}
	if t.ends == endsUnknown {
		switch at := bytes.IndexAny(block, "\r\n"); {
		case at < 0:
			return block
		case block[at] == '\n', at+1 < len(block) && block[at+1] == '\n':
			t.ends = lineFeeds
		case at+1 < len(block) || ended:
			t.ends = returnsOnly
		default: // the next block tells
			t.returned = true
			return block[:at]
		}
	}
	if t.ends == returnsOnly {
		for i, c := range block {
			if c == '\r' {
				block[i] = '\n'
			}
		}
	}
	return block
}

// badByteError returns the error of a byte that is not text.
func (t *text) badByteError(bad byte) error {
	fault := &SyntaxError{Pos: t.pos, Msg: fmt.Sprintf("byte 0x%02x is not text", bad), Want: wantText}
	if bad >= utf8.RuneSelf {
		fault.Msg = fmt.Sprintf("byte 0x%02x is not UTF-8", bad)
		fault.Want += ": iconv -f WINDOWS-1252 -t UTF-8 makes it of a file in the usual 8-bit encoding"
	}
	return fault
}

// advance moves the position over decoded text.
func (t *text) advance(block []byte) {
	if lines := bytes.Count(block, []byte{'\n'}); lines > 0 {
		t.pos.Line += lines
		t.pos.Column = 1
		block = block[bytes.LastIndexByte(block, '\n')+1:]
	}
	t.pos.Column += len(block)
}

// firstBad returns the index of the first byte that is not let through, or -1.
func (t *text) firstBad(block []byte) int {
	if t.pass == AnyBytes {
		return -1
	}
	zero := bytes.IndexByte(block, 0)
	if t.pass == AnyButZero {
		return zero
	}
	if zero >= 0 {
		block = block[:zero]
	}
	if utf8.Valid(block) {
		return zero
	}
	i := 0
	for {
		r, size := utf8.DecodeRune(block[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
}

// incompleteTail returns the number of bytes at the end of a block that begin a
// character whose rest is still to be read.
func incompleteTail(block []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(block); n++ {
		if tail := block[len(block)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
