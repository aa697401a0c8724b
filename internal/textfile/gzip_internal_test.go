package textfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

// A few kilobytes may unpack to what fills a machine's memory.
func TestAFileThatUnpacksToFarMoreThanAnyTextIsRefused(t *testing.T) {
	pack := func(text []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		text []byte
		want error
	}{"little": {make([]byte, trustedSize), nil}, "a bomb": {make([]byte, trustedSize+1<<20), ErrBomb}} {
		r, err := Decompress(bytes.NewReader(pack(c.text)), "t.gz")
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if !errors.Is(err, c.want) || err == nil && n != int64(len(c.text)) || n > int64(len(c.text)) {
			t.Errorf("%s: %d of %d bytes, %v, want %v", name, n, len(c.text), err, c.want)
		}
	}
}

func TestUnpackingStopsAtItsBound(t *testing.T) {
	const size = 1 << 20
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bound int64
		want  error
	}{{size, nil}, {size - 1, ErrTooLarge}, {1, ErrTooLarge}} {
		z, err := gzip.NewReader(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		u := &boundedGzip{gz: z, packed: &byteCounter{n: int64(b.Len())}, name: "t.gz", most: c.bound}
		n, err := io.Copy(io.Discard, u)
		if !errors.Is(err, c.want) || n > c.bound {
			t.Errorf("bound %d: %d bytes, %v, want %v", c.bound, n, err, c.want)
		}
	}
}
