package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that an agent of before wrote is written again as it was, to the byte: an agent
// of before that comes back reads it. (The order of the outermost fields is free.)
func TestARunsFileIsWrittenAsItWasRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "runs2", "*.json"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			t.Fatal(err)
		}
		r, err := decodeRun(strings.TrimSuffix(filepath.Base(name), ".json"), text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got, want map[string]json.RawMessage
		if err := errors.Join(json.Unmarshal(again, &got), json.Unmarshal(text, &want)); err != nil {
			t.Fatal(err)
		}
		same := func(x, y json.RawMessage) bool { return bytes.Equal(x, y) }
		if !maps.EqualFunc(got, want, same) {
			t.Errorf("%s is written as\n%s, want\n%s", name, again, text)
		}
	}
}

// What isn't in the format is told, however deep it lies.
func TestARunsFileHasNoOtherFields(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "runs2", "adapted.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"run":{`, `"wish":{`, `"adapt":{`} {
		spoilt := bytes.Replace(text, []byte(field), []byte(field+`"other":1,`), 1)
		if _, err := decodeRun("adapted", spoilt); err == nil || bytes.Equal(spoilt, text) {
			t.Errorf("another field in %s is read", field)
		}
	}
}
