package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/storetest"
)

// What of the records is missing at the start is told, whether the database goes on or not.
func TestWhatIsMissingOfTheRecordsIsToldAtTheStart(t *testing.T) {
	storetest.NeedSQLite(t)
	for name, files := range map[string]map[string]string{
		"their log is damaged": {"records.db-wal": strings.Repeat("garbage!", 1000)},
		"they are empty beside their log": {
			"records.db": "", "records.db-wal": strings.Repeat("garbage!", 1000),
		},
		"they are no database": {"records.db": strings.Repeat("garbage!", 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			if told := toldOfRecords(t, state); len(told) > 0 {
				t.Errorf("of new records it says %q", told)
			}
			for file, text := range files {
				must(t, os.WriteFile(filepath.Join(state, file), []byte(text), 0o600))
			}
			told := toldOfRecords(t, state)
			aside, _ := filepath.Glob(filepath.Join(state, "records.db*.damaged-*"))
			if len(told) == 0 || len(aside) == 0 || !strings.Contains(strings.Join(told, " "), aside[0]) {
				t.Errorf("told %q, aside %q", told, aside)
			}
			if told := toldOfRecords(t, state); len(told) > 0 {
				t.Errorf("the next time it says %q", told)
			}
		})
	}
}

// toldOfRecords opens the records of a state folder, and returns what is told of that.
func toldOfRecords(t *testing.T, state string) (told []string) {
	t.Helper()
	records, err := openRecords(t.Context(), state, func(err error) { told = append(told, err.Error()) })
	must(t, err)
	must(t, records.Close())
	return told
}
