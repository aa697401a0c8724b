package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// What a file says is kept to the byte. (The order of the outermost fields is free.)
func TestARunsFileIsWrittenAsItWasRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "runs", "*.json"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, r := fixtureRun(t, name)
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

// fixtureRun returns the file of a run, and what it says.
func fixtureRun(t *testing.T, name string) ([]byte, *runFile) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := decodeRun(strings.TrimSuffix(filepath.Base(name), ".json"), text)
	if err != nil {
		t.Fatal(err)
	}
	return text, r
}

// A newer epd may have written them.
func TestFieldsOfARunsFileThatArentKnownArePassedOver(t *testing.T) {
	text, want := fixtureRun(t, filepath.Join("testdata", "runs", "adapted.json"))
	for _, field := range []string{`"run":{`, `"wish":{`, `"adapt":{`} {
		more := bytes.Replace(text, []byte(field), []byte(field+`"other":1,`), 1)
		got, err := decodeRun("adapted", more)
		if err != nil || bytes.Equal(more, text) || !reflect.DeepEqual(got, want) {
			t.Errorf("with another field in %s: %v, %+v", field, err, got)
		}
	}
}
