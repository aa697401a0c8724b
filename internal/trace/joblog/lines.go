package joblog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/epplan/epplan/internal/textfile"
)

// maxLine bounds a line, bytes: a job on thousands of nodes has some ten
// thousand.
const maxLine = 1 << 20

// lineReader reads lines of any length in bounded memory.
type lineReader struct {
	in     *bufio.Reader
	buffer []byte
	number int // of the latest line, from 1
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: textfile.Open(r, "", textfile.AnyBytes)} // checkText looks at lines
}

// next returns the next line without its end, until io.EOF. What of a line is beyond
// the bound is passed over, and long is true. The line holds until the next one.
func (l *lineReader) next() (line []byte, long bool, err error) {
	l.buffer = l.buffer[:0]
	l.number++
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case err == nil && len(l.buffer) == 0:
			return trimEnd(part), false, nil
		case len(l.buffer)+len(part) > maxLine:
			long = true
		default:
			l.buffer = append(l.buffer, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF) && (len(l.buffer) > 0 || long):
			return trimEnd(l.buffer), long, nil
		default:
			l.number--
			return nil, false, err
		}
	}
}

// trimEnd takes the end of a line off, of either kind.
func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'})
}

// checkText tells by its error that a line isn't text.
func checkText(line []byte) error {
	if i := bytes.IndexByte(line, 0); i >= 0 {
		return fmt.Errorf("a zero byte at column %d, want text", i+1)
	}
	return nil
}

// readError gives an error of reading its place.
func readError(name string, line int, err error) error {
	return fmt.Errorf("%s: after line %d: %w", name, line, err)
}
