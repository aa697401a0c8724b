package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// schema1 makes a database of schema 1.
func schema1(t *testing.T) string {
	t.Helper()
	return dumped(t, "schema1")
}

// dumped makes a database of a dump.
func dumped(t *testing.T, name string) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("testdata", name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(tempDir(t), "old.db")
	execute(t, path, string(script))
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

// schemaVersion is the schema that a database has.
func schemaVersion(t *testing.T, path string) (version int) {
	t.Helper()
	if err := raw(t, path).QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

// newestSchema is the schema of a new database.
func newestSchema(t *testing.T) int {
	t.Helper()
	_, path := openNew(t)
	return schemaVersion(t, path)
}

// columnNames are the columns of a table, separated by commas.
func columnNames(t *testing.T, path, table string) (names string) {
	t.Helper()
	const question = "SELECT group_concat(name, ', ') FROM pragma_table_info(?)"
	if err := raw(t, path).QueryRowContext(t.Context(), question, table).Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestADatabaseOfSchema1IsMigratedWithItsRecordsAfterABackup(t *testing.T) {
	path := schema1(t)
	s := open(t, path, nil)
	page, err := s.Learning.OutcomesOf(t.Context(), workload(0), 0, 10)
	if err != nil || len(page.Outcomes) != 3 || page.Outcomes[0].Series.Len() != 3 {
		t.Errorf("outcomes: %+v, %v", page, err)
	}
	if j := lastJob(t, s, 1001); j.Limit != live.LimitOf(90*time.Minute) {
		t.Errorf("job: %+v", j)
	}
	if d, err := s.DecisionByToken(t.Context(), "alpha", "token-1"); err != nil || d.ID != 7 {
		t.Errorf("decision: %+v, %v", d, err)
	}
	if m, err := s.Learning.Model(t.Context(), workload(0)); err != nil || m.Version != 1 {
		t.Errorf("model: %+v, %v", m, err)
	}
	if err := s.Learning.UseModel(t.Context(), workload(0), 0, "why"); err != nil {
		t.Errorf("a table of schema 3: %v", err)
	}
	if added, err := s.Learning.AddHistory(t.Context(), []record.HistoryJob{past(0)}); err != nil || added != 1 {
		t.Errorf("a table of schema 4: %d, %v", added, err)
	}
	if strata, err := s.Strata(t.Context(), "alpha", time.Time{}); err != nil || len(strata) == 0 {
		t.Errorf("a table of schema 5: %+v, %v", strata, err)
	}
	features := &record.Features{Cluster: "alpha", Source: "a", Seen: start}
	if err := s.Learning.PutFeatures(t.Context(), features); err != nil {
		t.Errorf("a table of schema 6: %v", err)
	}
	profiled := outcome(0)
	profiled.Profile = profile()
	put(t, s, profiled, store.Stored)
	if all, err := s.Learning.Profiles(t.Context(), workload(0), 10); err != nil || len(all) != 1 {
		t.Errorf("a table of schema 7: %+v, %v", all, err)
	}
	stepped := outcome(1)
	stepped.RunID, stepped.Stays, stepped.Restarted = "stepped", stays(), restarted()
	put(t, s, stepped, store.Stored)
	if page, err := s.Learning.OutcomesOf(t.Context(), workload(1), 0, 1); err != nil ||
		len(page.Outcomes) != 1 ||
		!slices.Equal(page.Outcomes[0].Stays, stays()) || page.Outcomes[0].Restarted != restarted() {
		t.Errorf("columns of schemas 9 and 10: %+v, %v", page, err)
	}
	if got, want := schemaVersion(t, path), newestSchema(t); got != want {
		t.Errorf("schema %d, want %d", got, want)
	}
	if got := schemaVersion(t, path+".schema1.bak"); got != 1 {
		t.Errorf("the backup has schema %d", got)
	}
	found, err := store.Check(t.Context(), path+".schema1.bak")
	if err != nil || len(found) > 0 {
		t.Errorf("the backup: %q, %v", found, err)
	}
}

// Runs of before are named by their nodes, keep all that they had, and what can't be
// of them is set aside, and in no sum.
func TestADatabaseOfSchema10IsMigratedWithItsRecords(t *testing.T) {
	path := dumped(t, "schema10")
	s := open(t, path, nil)
	if got, want := schemaVersion(t, path), newestSchema(t); got != want {
		t.Fatalf("schema %d, want %d", got, want)
	}
	if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
		t.Errorf("Check found %q, %v", found, err)
	}
	for i := 2; i < 9; i++ {
		o, err := s.OutcomesOfJob(t.Context(), "alpha", int64(1000+i))
		if err != nil || len(o) != 1 {
			t.Fatalf("run %d: %+v, %v", i, o, err)
		}
		spoilt := i >= 3 && i <= 6
		if len(o[0].GPUs) != 2 || o[0].Series.Len() == 0 || o[0].ExitState != record.Completed ||
			o[0].Implausible.IsZero() == spoilt {
			t.Errorf("run %d: %+v", i, o[0])
		}
		if _, energy := o[0].GPUEnergyJ.Get(); energy == spoilt {
			t.Errorf("run %d has the energy %s", i, o[0].GPUEnergyJ)
		}
	}
	o, err := s.OutcomesOfJob(t.Context(), "alpha", 1003)
	if p := o[0].Implausible; err != nil || p.TimeS != live.Known(-60) ||
		p.GPUEnergyJ != live.Known(1.7e308) || p.GPUSource != record.Counter {
		t.Errorf("what can't be isn't kept: %+v, %v", p, err)
	}
	if all, err := s.Learning.Profiles(t.Context(), record.WorkloadKey{
		Cluster: "alpha", Workload: "w2",
		GPUModel: "V100",
	}, 9); err != nil || len(all) != 1 {
		t.Errorf("profiles: %+v, %v", all, err)
	}
	if asides := exported(t, s, "outcome_conflicts"); len(asides) != 1 ||
		!strings.Contains(asides[0], `"node":"elsewhere","run_id":"run-000002"`) {
		t.Errorf("conflicts: %s", asides)
	}
	checkHealed(t, s)
	put(t, s, outcome(9), store.Stored)
	if ids := exported(t, s, "outcomes"); !strings.Contains(ids[len(ids)-1], `"outcome_id":10,`) {
		t.Errorf("ids go on with %s", ids[len(ids)-1])
	}
	put(t, s, outcome(1), store.Repeated) // pruned before
	put(t, s, outcome(8), store.Repeated)
	if _, err := s.Prune(t.Context(), start.Add(time.Hour)); err != nil {
		t.Errorf("sums that can't be taken back: %v", err)
	}
}

// checkHealed wants finite sums of what can be.
func checkHealed(t *testing.T, s *store.Store) {
	t.Helper()
	days, err := s.RunDays(t.Context(), "alpha", start.Add(-24*time.Hour))
	if err != nil || len(days) != 1 || days[0].Runs != 8 || days[0].GPURuns != 3 ||
		days[0].GPUEnergyJ != 100002+100007+100008 {
		t.Errorf("days: %+v, %v", days, err)
	}
	strata, err := s.Strata(t.Context(), "alpha", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var ended, measured int64
	for _, st := range strata {
		ended, measured = ended+st.Endings.Ended, measured+st.GPU.Runs
		if st.GPU.Runs > 0 && !(st.GPU.Value > 1e5 && st.GPU.Value < 1.1e5) {
			t.Errorf("%+v", st)
		}
	}
	if ended != 7 || measured != 4 { // and the one that was pruned
		t.Errorf("%d jobs ended, %d energies: %+v", ended, measured, strata)
	}
}

// Nothing but these sums is left of what retention removed.
func TestSumsOfOutcomesThatWerePrunedBySchema3OutliveTheMigration(t *testing.T) {
	path := schema1(t)
	for _, name := range []string{"0002_retention.sql", "0003_models_out.sql"} {
		script, err := os.ReadFile(filepath.Clean(filepath.Join("migrations", name)))
		if err != nil {
			t.Fatal(err)
		}
		execute(t, path, string(script))
	}
	for _, arm := range []live.Arm{live.ArmTreated, live.ArmHeldOut} {
		execute(t, path,
			fmt.Sprintf(
				`INSERT INTO outcome_months (cluster, workload, gpu_model, arm, month, runs, time_s, gpu_energy_j, node_energy_j,
	done_gpu_runs, done_gpu_j, done_gpu_j2, done_node_runs, done_node_j, done_node_j2)
VALUES ('alpha', 'pruned', 'V100', '%s', '2026-01', 9, 900, 9000, 9900, 8, 8000, 8000000, 7, 7000, 7000000)`,
				arm,
			))
	}
	execute(t, path, "PRAGMA user_version = 3")
	s := open(t, path, nil)
	strata, err := s.Strata(t.Context(), "alpha", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	strata = slices.DeleteFunc(strata, func(st record.Stratum) bool { return st.Workload != "pruned" })
	if len(strata) != 2 {
		t.Fatalf("%+v", strata)
	}
	for _, st := range strata {
		if st.GPU.Runs != 8 || st.GPU.Value != 1000 || st.Node.Runs != 7 {
			t.Errorf("%+v", st)
		}
	}
	if got := schemaVersion(t, path+".schema3.bak"); got != 3 {
		t.Errorf("the backup has schema %d", got)
	}
}

// Whoever went back to an older epd by a copy of the backup left the backup itself,
// and what was recorded since is in the database alone.
func TestABackupFromBeforeAnEarlierUpgradeIsMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration // of the database against the backup
		want string
	}{"of this try": {-time.Minute, "old"}, "of an earlier upgrade": {time.Hour, ""}} {
		t.Run(name, func(t *testing.T) {
			path := schema1(t)
			copied := path + ".schema1.bak"
			if err := os.WriteFile(copied, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if at := info.ModTime().Add(-c.age); os.Chtimes(copied, at, at) != nil {
				t.Fatal("no time can be set")
			}
			open(t, path, nil)
			if got := string(contents(t, copied)); (got == "old") != (c.want == "old") {
				t.Errorf("the backup is %.20q", got)
			}
			if c.want == "" && schemaVersion(t, copied) != 1 {
				t.Errorf("the backup has schema %d", schemaVersion(t, copied))
			}
			if beside, err := filepath.Glob(path + ".*.part*"); err != nil || len(beside) > 0 {
				t.Errorf("left beside: %q, %v", beside, err)
			}
		})
	}
}

// An older epd that was killed left what it wrote last in the log alone: the backup has it.
func TestABackupHasWhatIsInTheLogAlone(t *testing.T) {
	written := schema1(t)
	db := raw(t, written)
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", "DELETE FROM outcomes",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "records.db")
	copied := path + ".schema1.bak" // of an earlier upgrade, before the log was written
	for to, from := range map[string]string{path: written, path + "-wal": written + "-wal", copied: written} {
		if err := os.WriteFile(to, contents(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	for file, at := range map[string]time.Time{path: now.Add(-time.Hour), copied: now.Add(-time.Minute)} {
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	open(t, path, nil)
	var left int
	const question = "SELECT count(*) FROM outcomes"
	if err := raw(t, copied).QueryRowContext(t.Context(), question).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if got := schemaVersion(t, copied); got != 1 || left != 0 {
		t.Errorf("the backup has schema %d and %d outcomes that were deleted", got, left)
	}
}

func TestAnOpenedDatabaseIsMigratedOnce(t *testing.T) {
	path := schema1(t)
	for range 2 {
		if err := open(t, path, nil).Close(); err != nil {
			t.Fatal(err)
		}
	}
	backups, err := filepath.Glob(path + ".*")
	if err != nil || len(backups) != 1 {
		t.Errorf("beside the database lie %q, %v", backups, err)
	}
}

// Each is as large as the database.
func TestWhatAKilledMigrationLeftOfItsBackupGoesWithTheNextOne(t *testing.T) {
	path := schema1(t)
	others := path + ".schema1.bak.mine"
	for _, name := range []string{
		path + ".schema1.bak.1455338150.part",
		path + ".schema1.bak.1455338150.part-journal", others,
	} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, path, nil)
	beside, err := filepath.Glob(path + ".*")
	if want := []string{path + ".schema1.bak", others}; err != nil || !slices.Equal(beside, want) {
		t.Errorf("beside the database lie %q, %v; want %q", beside, err, want)
	}
}

func TestADatabaseOfANewerEpdIsRefusedAndNotTouched(t *testing.T) {
	path := schema1(t)
	execute(t, path, "PRAGMA user_version = 99")
	before := contents(t, path)
	_, err := store.Open(t.Context(), path, nil)
	if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("got %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "no copy from before lies beside it") {
		t.Errorf("without a copy: %v", err)
	}
	for _, schema := range []string{"1", "3", "98", "x"} {
		if err := os.WriteFile(path+".schema"+schema+".bak", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err = store.Open(t.Context(), path, nil)
	want := fmt.Sprintf("with epd stopped put %[1]s.schema3.bak in its place, and remove %[1]s-wal "+
		"and %[1]s-shm", path)
	if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if !bytes.Equal(before, contents(t, path)) {
		t.Error("the database was changed")
	}
}

func TestAMigrationThatFailsLeavesTheDatabaseAsItWas(t *testing.T) {
	path := schema1(t)
	execute(t, path, "CREATE VIEW holdouts AS SELECT 1") // in the way of schema 2
	if _, err := store.Open(t.Context(), path, nil); err == nil ||
		!strings.Contains(err.Error(), "bring it to schema 2") {
		t.Fatalf("got %v", err)
	}
	if got := schemaVersion(t, path); got != 1 {
		t.Errorf("schema %d", got)
	}
	for _, table := range tableNames(t, path) {
		if table == "outcome_months" {
			t.Error("half a migration was left")
		}
	}
}

// contents are a file's bytes.
func contents(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
