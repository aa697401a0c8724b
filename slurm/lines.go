package slurm

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// maxRecord bounds one record of an answer, in bytes. A job on thousands of
// nodes has some megabytes.
const maxRecord = 64 << 20

// errLongRecord means that one record is longer than the bound.
var errLongRecord = errors.New("record too long, want 64 MiB at most")

// positionReader passes on what it reads, bounds each record, and knows the line
// and column of every byte since the latest mark.
type positionReader struct {
	from io.Reader
	read int64 // bytes passed on
	err  error // why it ended before the end

	recordStart int64
	lines       int     // that ended before the mark
	began       int64   // where the line after those begins
	newlines    []int64 // where lines ended since the mark, from passed on
	passed      int
}

// Read implements io.Reader.
func (l *positionReader) Read(p []byte) (int, error) {
	if l.read-l.recordStart > maxRecord {
		l.err = errLongRecord
		return 0, l.err
	}
	l.newlines, l.passed = slices.Delete(l.newlines, 0, l.passed), 0
	n, err := l.from.Read(p)
	for rest, at := p[:n], l.read; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		at += int64(i) + 1
		rest = rest[i+1:]
		l.newlines = append(l.newlines, at)
	}
	l.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err //nolint:wrapcheck // a reader's error
}

// markRecord says that a record begins at an offset: places before it are not asked
// for any more.
func (l *positionReader) markRecord(offset int64) {
	l.recordStart = offset
	for l.passed < len(l.newlines) && l.newlines[l.passed] <= offset {
		l.began = l.newlines[l.passed]
		l.lines++
		l.passed++
	}
}

// position returns the line and column of an offset, both from 1.
func (l *positionReader) position(offset int64) (line, column int) {
	offset = min(offset, l.read)
	began := l.began
	since := l.newlines[l.passed:]
	if line, _ = slices.BinarySearch(since, offset+1); line > 0 {
		began = since[line-1]
	}
	return l.lines + line + 1, int(offset-began) + 1
}
