package textfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// maxDecompressed is the most that a compressed file may unpack to, in bytes.
const maxDecompressed = 4 << 30

// believed is how much any compressed file may unpack to, and maxCompression how many
// times its own size beyond that: logs come to some tens.
const (
	trustedSize    = 64 << 20
	maxCompression = 500
)

// ErrBomb is the cause of an error for a compressed file that unpacks to what no text
// would.
var ErrBomb = errors.New("unpacks to more than 500 times its size, as no log does: unpack it " +
	"yourself if it is one")

// ErrTooLarge is the cause of an error for a compressed file that unpacks to
// more than 4 GiB.
var ErrTooLarge = errors.New("unpacks to more than 4 GiB")

// compressors are the programs whose files are told by how they begin, with what unpacks
// them.
var compressors = []struct{ name, begin, command string }{
	{"gzip", gzipMagic, "gzip -d"},
	{"zstd", "\x28\xb5\x2f\xfd", "zstd -d"},
	{"xz", "\xfd7zXZ\x00", "xz -d"},
	{"bzip2", "BZh91AY&SY", "bzip2 -d"},
	{"zip", "PK\x03\x04", "unzip"},
	{"lz4", "\x04\x22\x4d\x18", "lz4 -d"},
	{"compress", "\x1f\x9d", "uncompress"},
}

const (
	gzipMagic = "\x1f\x8b"
	maxMagic  = 10 // bytes
	readAhead = 64 << 10
)

// Decompress returns the contents of a stream that may be compressed by gzip, as its first
// bytes tell. A stream that another program compressed is refused. The name stands for the
// stream in errors.
func Decompress(r io.Reader, name string) (io.Reader, error) {
	count := &byteCounter{r: r}
	in := bufio.NewReaderSize(count, readAhead)
	begin, _ := in.Peek(maxMagic) // of what can't be read reading tells
	if !bytes.HasPrefix(begin, []byte(gzipMagic)) {
		return in, refuseCompressor(begin, name, "is compressed by %s, want text or gzip")
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, gzipError(name, err)
	}
	out := bufio.NewReaderSize(&boundedGzip{gz: z, packed: count, name: name, most: maxDecompressed},
		readAhead)
	begin, _ = out.Peek(maxMagic)
	return out, refuseCompressor(begin, name, "is compressed by gzip and by %s, want one of text and gzip")
}

// refuseCompressor refuses what begins as a file of a program that compresses.
func refuseCompressor(begin []byte, name, why string) error {
	for _, p := range compressors {
		if bytes.HasPrefix(begin, []byte(p.begin)) {
			return fmt.Errorf("%s: "+why+": unpack it with %s first", name, p.name, p.command)
		}
	}
	return nil
}

// byteCounter counts the bytes of a stream.
type byteCounter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *byteCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// boundedGzip reads a bounded part of a compressed stream.
type boundedGzip struct {
	gz     *gzip.Reader
	packed *byteCounter
	name   string
	most   int64 // bytes
	sum    int64 // so many were unpacked
}

// Read reads what is unpacked.
func (u *boundedGzip) Read(p []byte) (int, error) {
	n, err := u.gz.Read(p)
	u.sum += int64(n)
	if u.sum > u.most {
		return 0, fmt.Errorf("%s: %w", u.name, ErrTooLarge)
	}
	if u.sum > trustedSize && u.sum > maxCompression*u.packed.n {
		return 0, fmt.Errorf("%s: %w", u.name, ErrBomb)
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
