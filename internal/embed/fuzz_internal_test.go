package embed

import (
	"math"
	"testing"
)

// Whatever a server answers: it is refused, or there is one embedding of finite numbers for each text.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3,4]}]}`,
		`{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[2]}]}`, `{"data":[{"index":-1}]}`, `{}`, `[]`,
		`{"data":[{"index":0,"embedding":[null]},{"index":1,"embedding":[1e999]}]}`, "\xff",
	} {
		f.Add([]byte(text))
	}
	c, err := New(&Options{URL: "http://localhost:1", Hosts: []string{"localhost"}, Model: "m"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		texts := []string{"a", "b"}
		found, err := c.parse(answer, texts)
		if err != nil {
			return
		}
		if len(found) != len(texts) {
			t.Fatalf("%d embeddings of %d texts", len(found), len(texts))
		}
		for _, e := range found {
			for _, v := range e {
				if math.IsNaN(v) || math.IsInf(v, 0) || len(e) == 0 {
					t.Fatalf("%v", e)
				}
			}
		}
	})
}
