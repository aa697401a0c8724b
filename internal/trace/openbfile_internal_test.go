package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

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
		r, err := Decompress(bytes.NewReader(b.Bytes()), "t.gz")
		if err != nil {
			t.Fatal(err)
		}
		u, ok := r.(*unpacked)
		if !ok || u.left != maxUnpacked {
			t.Fatalf("reader %+v", r)
		}
		u.left = c.bound
		n, err := io.Copy(io.Discard, u)
		if !errors.Is(err, c.want) || n > c.bound {
			t.Errorf("bound %d: %d bytes, %v, want %v", c.bound, n, err, c.want)
		}
	}
}
