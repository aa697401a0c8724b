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
	files, err := filepath.Glob(filepath.Join("testdata", "runs3", "*.json"))
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

// fixtureRun is the file of a run, and what it says.
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

func TestARunsFileOfVersion2SaysWhatItsSuccessorSays(t *testing.T) {
	for _, name := range []string{"open.json", "ended.json", "adapted.json"} {
		_, old := fixtureRun(t, filepath.Join("testdata", "runs2", name))
		_, now := fixtureRun(t, filepath.Join("testdata", "runs3", name))
		if !reflect.DeepEqual(old, now) {
			t.Errorf("%s says\n%+v, want\n%+v", name, old, now)
		}
	}
}

// What isn't in the format of an older version is told, however deep it lies; in the present one it is passed
// over, as a newer epd may have written it.
func TestARunsFileOfAnOlderVersionHasNoOtherFields(t *testing.T) {
	for version, strict := range map[string]bool{"runs2": true, "runs3": false} {
		text, want := fixtureRun(t, filepath.Join("testdata", version, "adapted.json"))
		for _, field := range []string{`"run":{`, `"wish":{`, `"adapt":{`} {
			more := bytes.Replace(text, []byte(field), []byte(field+`"other":1,`), 1)
			got, err := decodeRun("adapted", more)
			if (err != nil) != strict || bytes.Equal(more, text) || !strict && !reflect.DeepEqual(got, want) {
				t.Errorf("%s with another field in %s: %v, %+v", version, field, err, got)
			}
		}
	}
}
