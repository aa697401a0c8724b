package terminal

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnyFileThatIsReadMayBeCompressedByGzip(t *testing.T) {
	const text = "id,workload\na,b\n"
	pack := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ data, want, says string }{
		"plain":    {text, text, ""},
		"empty":    {"", "", ""},
		"gzip":     {pack(text), text, ""},
		"cut gzip": {pack(text)[:15], "", "ends early"},
		"twice": {
			pack(pack(text)), "",
			"is compressed by gzip and by gzip, want one of text and gzip: unpack it with gzip -d first",
		},
		"zstd": {
			"\x28\xb5\x2f\xfd\x04\x58\x79", "",
			"is compressed by zstd, want text or gzip: unpack it with zstd -d first",
		},
		"xz": {
			"\xfd7zXZ\x00\x00\x04", "", "is compressed by xz, want text or gzip: unpack it with xz -d first",
		},
		"bzip2": {
			"BZh91AY&SY", "", "is compressed by bzip2, want text or gzip: unpack it with bzip2 -d first",
		},
		"zip": {
			"PK\x03\x04\x14", "", "is compressed by zip, want text or gzip: unpack it with unzip first",
		},
		"lz4": {
			"\x04\x22\x4d\x18d", "", "is compressed by lz4, want text or gzip: unpack it with lz4 -d first",
		},
		"like a bzip": {"BZh,gpus\n", "BZh,gpus\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "batch.csv")
			if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{path, "-"} {
				term := &Terminal{Stdin: strings.NewReader(c.data)}
				got, err := ParseFile(term, source, func(r io.Reader, _ string) ([]byte, error) {
					return io.ReadAll(r)
				})
				if c.says == "" && (err != nil || string(got) != c.want) {
					t.Errorf("%s: %q, %v", source, got, err)
				}
				if c.says != "" &&
					(err == nil || !strings.HasSuffix(err.Error(), c.says) && c.says != "ends early" ||
						!strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s: error %v, want %q", source, err, c.says)
				}
			}
		})
	}
}
