package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxUnpacked is the most that a compressed file may unpack to, in bytes.
const maxUnpacked = 4 << 30

// ErrTooLarge is the cause of an error for a compressed file that unpacks to
// more than 4 GiB.
var ErrTooLarge = errors.New("unpacks to more than 4 GiB")

// Open opens a file, which may be compressed by gzip.
func Open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	r, err := Decompress(file, path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{r, file}, nil
}

// Decompress is what is in a stream that may be compressed by gzip: its first
// two bytes tell. The name stands for it in errors.
func Decompress(r io.Reader, name string) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil // also for what can't be read: reading tells
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, gzipError(name, err)
	}
	return &unpacked{gz: z, name: name, left: maxUnpacked}, nil
}

// unpacked reads a bounded part of a compressed stream.
type unpacked struct {
	gz   *gzip.Reader
	name string
	left int64
}

// Read reads what is unpacked.
func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.gz.Read(p)
	u.left -= int64(n)
	if u.left < 0 {
		return 0, fmt.Errorf("%s: %w", u.name, ErrTooLarge)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, gzipError(u.name, err)
	}
	return n, err
}

// gzipError says what is wrong with a compressed file.
func gzipError(name string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: the gzip data ends early, want a whole file: %w", name, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%s: not a valid gzip file: %w", name, err)
}
