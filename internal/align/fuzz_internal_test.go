package align

import (
	"strings"
	"testing"
)

// FuzzRewrites: whatever a server answers, it is refused, or there is a text of a bounded length that isn't
// binary and can be compared with the source; one that is the source has the same numbers.
func FuzzRewrites(f *testing.F) {
	for _, text := range []string{
		`{"choices":[{"message":{"role":"assistant","content":"epochs = 3\n"}}]}`,
		"{\"choices\":[{\"message\":{\"content\":\"Here:\\n```python\\nepochs = 3\\n```\"}}]}",
		"{\"choices\":[{\"message\":{\"content\":\"```\"}}]}", `{"choices":[]}`,
		`{"choices":[{"message":{"content":"\u0000"}}]}`, `{"choices":[{"message":{"content":7}}]}`, `[]`, "\xff",
	} {
		f.Add([]byte(text), "epochs = 3\n")
	}
	c, err := New(&Options{URL: "http://localhost:1", Hosts: []string{"localhost"}, Model: "m"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte, source string) {
		text, err := c.parse(answer)
		if err != nil {
			return
		}
		if strings.TrimSpace(text) == "" || len(text) > maxText || strings.ContainsRune(text, 0) {
			t.Fatalf("%q", text)
		}
		_ = numberDifference(source, text)
		if said := numberDifference(text, text); said != "" {
			t.Fatalf("%q differs from itself: %s", text, said)
		}
	})
}
