package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/internal/store"
)

// Migrations to come, as they may be: one adds a column, one makes a table anew to which
// others refer.
const (
	addsColumn = "ALTER TABLE jobs ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'"
	renewsRows = `
CREATE TABLE outcomes_new AS SELECT * FROM outcomes;
DROP TABLE outcomes;
ALTER TABLE outcomes_new RENAME TO outcomes;
CREATE UNIQUE INDEX outcomes_by_id ON outcomes (outcome_id)`
)

// written makes a database with records that is closed.
func written(t *testing.T) string {
	t.Helper()
	s, path := openNew(t)
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// execute runs statements on a database as another program would.
func execute(tb testing.TB, path, script string) {
	tb.Helper()
	db := raw(tb, path)
	if _, err := db.ExecContext(tb.Context(), script); err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

// count returns the number of rows that a query has.
func count(t *testing.T, path, from string) (n int) {
	t.Helper()
	if err := raw(t, path).QueryRowContext(t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// schemaVersion returns the schema that a database has.
func schemaVersion(t *testing.T, path string) (version int) {
	t.Helper()
	if err := raw(t, path).QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

func TestAnOlderDatabaseIsMigratedOnceWithAllItsRecordsAfterABackup(t *testing.T) {
	path := written(t)
	rows := map[string]int{}
	for _, table := range tableNames(t, path) {
		rows[table] = count(t, path, table)
	}
	from, to := store.UseMigrations(t, addsColumn, renewsRows)
	var all errgroup.Group
	for range 3 {
		all.Go(func() error {
			s, err := store.Open(t.Context(), path, nil)
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	for table, want := range rows {
		if got := count(t, path, table); got != want || table == "outcome_details" && got == 0 {
			t.Errorf("%s has %d rows of %d", table, got, want)
		}
	}
	if red := count(t, path, "jobs WHERE colour = 'red'"); red == 0 || red != rows["jobs"] {
		t.Errorf("%d of %d jobs have the new column", red, rows["jobs"])
	}
	copied := fmt.Sprintf("%s.schema%d.bak", path, from)
	if got, old := schemaVersion(t, path), schemaVersion(t, copied); got != to || old != from {
		t.Errorf("schema %d, want %d; the backup has %d, want %d", got, to, old, from)
	}
	if found, err := store.Check(t.Context(), copied); err != nil || len(found) > 0 {
		t.Errorf("the backup: %q, %v", found, err)
	}
	beside, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.*.*"))
	if err != nil || len(beside) != 1 {
		t.Errorf("beside the database lie %q, %v", beside, err)
	}
}

// Whoever went back to an older epd by a copy of the backup left the backup itself, and
// what was recorded since is in the database alone, or even in its log alone.
func TestABackupFromBeforeAnEarlierUpgradeIsMadeAnew(t *testing.T) {
	killed := written(t)
	db := raw(t, killed)
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "DELETE FROM features",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	from, _ := store.UseMigrations(t, addsColumn)
	path := filepath.Join(t.TempDir(), "records.db")
	copied := fmt.Sprintf("%s.schema%d.bak", path, from)
	for to, from := range map[string]string{path: killed, path + "-wal": killed + "-wal", copied: killed} {
		if err := os.WriteFile(to, contents(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if count(t, copied, "features") == 0 {
		t.Fatal("there is nothing to delete")
	}
	open(t, path, nil)
	if got, left := schemaVersion(t, copied), count(t, copied, "features"); got != from || left != 0 {
		t.Errorf("the backup has schema %d and %d rows that were deleted", got, left)
	}
}

// Each is as large as the database.
func TestWhatAKilledMigrationLeftOfItsBackupGoesWithTheNextOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	if err := os.WriteFile(path, contents(t, written(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, _ := store.UseMigrations(t, addsColumn)
	copied := fmt.Sprintf("%s.schema%d.bak", path, schema)
	for _, name := range []string{copied + ".1455338150.part", copied + ".145.part-journal", copied + ".mine"} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	beside, err := filepath.Glob(path + ".*")
	if want := []string{copied, copied + ".mine"}; err != nil || !slices.Equal(beside, want) {
		t.Errorf("beside the database lie %q, %v; want %q", beside, err, want)
	}
}

func TestAMigrationThatFailsLeavesTheDatabaseAsItWas(t *testing.T) {
	path := written(t)
	from, to := store.UseMigrations(t, addsColumn, "CREATE TABLE jobs (x) STRICT")
	if _, err := store.Open(t.Context(), path, nil); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("bring it to schema %d", to)) {
		t.Fatalf("got %v", err)
	}
	columns := count(t, path, "pragma_table_info('jobs') WHERE name = 'colour'")
	if got := schemaVersion(t, path); got != from || columns > 0 {
		t.Errorf("schema %d, and half a migration was left", got)
	}
}

// A database whose schema isn't known is left as it is, to the byte, and the message says
// what it has and what to do.
func TestADatabaseOfAnotherSchemaIsRefusedAndNotTouched(t *testing.T) {
	newest, _ := store.UseMigrations(t)
	for version, want := range map[int]string{
		0: "another program made it", 1: "from before v0.1.0", -1: "from before v0.1.0",
		newest - 1: "move %[1]s, %[1]s-wal and %[1]s-shm away",
		newest + 1: "no copy from before lies beside it", 99: "of a newer epd",
	} {
		path := written(t)
		execute(t, path, fmt.Sprintf("PRAGMA journal_mode = DELETE; PRAGMA user_version = %d", version))
		before := contents(t, path)
		_, err := store.Open(t.Context(), path, nil)
		if strings.Contains(want, "%") {
			want = fmt.Sprintf(want, path)
		}
		if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), want) ||
			version != 0 && !strings.Contains(err.Error(), fmt.Sprintf("schema %d", version)) {
			t.Errorf("%d: %v, want %s", version, err, want)
		}
		if !bytes.Equal(before, contents(t, path)) {
			t.Errorf("%d: the database was changed", version)
		}
		if _, err := os.Stat(path + "-wal"); err == nil {
			t.Errorf("%d: a log was made", version)
		}
	}
}

// Who went on to a newer epd and comes back is told which copy to take.
func TestADatabaseOfANewerEpdNamesTheLastCopyThatThisOneKnows(t *testing.T) {
	path := written(t)
	newest, _ := store.UseMigrations(t)
	execute(t, path, "PRAGMA user_version = 99")
	for _, schema := range []string{"1", strconv.Itoa(newest), "98", "x"} {
		if err := os.WriteFile(path+".schema"+schema+".bak", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := store.Open(t.Context(), path, &store.Options{BusyTimeout: time.Second})
	want := fmt.Sprintf("with epd stopped put %[1]s.schema%[2]d.bak in its place, and remove %[1]s-wal "+
		"and %[1]s-shm", path, newest)
	if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// contents returns a file's bytes.
func contents(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
