package sweep_test

import (
	"bytes"
	"testing"

	"github.com/epplan/epplan/lab/sweep"
)

// Whatever a part's file says that other machines wrote: it is refused, or reads the same once it is written again.
func FuzzDecode(f *testing.F) {
	text, err := sweep.Encode(figures{List: []watt{1}, By: map[string]figures{"a": {}}, Text: "x"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{text, text[:9], []byte(`{"X":"NaN"}`), []byte(`{"X":"x"}`), []byte("{}"), []byte("null"), {}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second figures
		if sweep.Decode(text, &first) != nil {
			return
		}
		once, err := sweep.Encode(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := sweep.Decode(once, &second); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, err := sweep.Encode(second); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s became %s, %v", once, twice, err)
		}
	})
}
