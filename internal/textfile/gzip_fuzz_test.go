package textfile_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/epplan/epplan/internal/textfile"
)

func FuzzDecompressEndsWithAnErrorOrAll(f *testing.F) {
	f.Add([]byte{0x1f, 0x8b})
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := textfile.Decompress(bytes.NewReader(in), "t.gz")
		if err != nil {
			return
		}
		const enough = 1 << 20
		out, err := io.ReadAll(io.LimitReader(r, enough))
		if err == nil && !bytes.HasPrefix(in, []byte{0x1f, 0x8b}) && len(in) < enough &&
			!bytes.Equal(in, out) {
			t.Errorf("%q was read as %q", in, out)
		}
	})
}
