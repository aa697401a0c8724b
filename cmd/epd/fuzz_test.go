package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// FuzzReadRuns: whatever is to be put back into the records, it is refused by its line, or is read again as
// it was written.
func FuzzReadRuns(f *testing.F) {
	f.Add([]byte(`{"id":1,"received":"2026-05-01T10:00:00Z","digest":"AQ==","outcome":{"cluster":"alpha","node":"n1","run_id":"1"}}` + "\n"))
	f.Add([]byte(`{"id":1,"x":2}`))
	f.Add([]byte("{}\n\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		runs, err := readRuns(bytes.NewReader(text), "runs")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "runs:") {
				t.Fatal(err)
			}
			return
		}
		var again bytes.Buffer
		for i := range runs {
			if err := json.NewEncoder(&again).Encode(&runs[i]); err != nil {
				t.Fatal(err)
			}
		}
		back, err := readRuns(&again, "again")
		if err != nil || len(back) != len(runs) || len(runs) > 0 && !reflect.DeepEqual(back, runs) {
			t.Fatalf("%v: %+v, before %+v", err, back, runs)
		}
	})
}
