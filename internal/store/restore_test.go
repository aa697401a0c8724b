package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// The children of tests here: what they do to the database, and from where.
const (
	copyDB     = "EPPLAN_TEST_COPY_DB"
	copySource = "EPPLAN_TEST_COPY_SOURCE"
)

// copyUntilKilled restores a database, or backs it up over and over.
func copyUntilKilled(path, source string) error {
	ctx := context.Background()
	for i := 0; ; i++ {
		var err error
		if source != "" {
			_, err = store.Restore(ctx, source, path, start.Add(time.Duration(i)*time.Second), nil)
		} else {
			_, err = store.BackupWith(ctx, path, path+".backup", store.CopyOptions{Replace: true})
		}
		if err != nil {
			return err
		}
	}
}

// killedAfter runs such a child for a while.
func killedAfter(t *testing.T, d time.Duration, path, source string) {
	t.Helper()
	var log bytes.Buffer
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), copyDB+"="+path, copySource+"="+source)
	child.Stderr = &log
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
	_ = child.Process.Kill()
	if err := child.Wait(); err == nil || log.Len() > 0 {
		t.Fatalf("the child ended by itself: %v %s", err, log.String())
	}
}

// outcomesIn returns the run ids that a database has, once it is found sound.
func outcomesIn(t *testing.T, path string) (ids string) {
	t.Helper()
	if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
		t.Fatalf("%s: Check found %q, %v", path, found, err)
	}
	db := raw(t, path)
	const all = "SELECT group_concat(run_id) FROM (SELECT run_id FROM outcomes ORDER BY outcome_id)"
	if err := db.QueryRowContext(t.Context(), all).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// writing has outcomes be written until what it returns is called, which tells how many were: so many before
// it returns.
func writing(t *testing.T, s *store.Store, first int) (stop func() (acknowledged int)) {
	t.Helper()
	var stopped atomic.Bool
	var writer sync.WaitGroup
	acknowledged, begun := 0, make(chan struct{})
	writer.Go(func() {
		for i := 0; !stopped.Load(); i++ {
			if _, err := s.PutOutcome(t.Context(), outcome(i)); err != nil {
				t.Error(err)
				return
			}
			if acknowledged = i + 1; acknowledged == first {
				close(begun)
			}
		}
	})
	<-begun
	return func() int {
		stopped.Store(true)
		writer.Wait()
		return acknowledged
	}
}

func TestABackupUnderConcurrentWritesIsOfOneMoment(t *testing.T) {
	s, path := openNew(t)
	stop := writing(t, s, 101)
	counts := make([]int64, 0, 5)
	for i := range 5 {
		c, err := store.BackupWith(t.Context(), path, path+".copy", store.CopyOptions{Replace: i > 0})
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, c.Rows["outcomes"])
		ids := strings.Split(outcomesIn(t, path+".copy"), ",")
		if int64(len(ids)) != c.Rows["outcomes"] || ids[len(ids)-1] != fmt.Sprintf("run-%06d", len(ids)-1) ||
			c.Rows["outcome_details"] != c.Rows["outcomes"] {
			t.Errorf("%d runs up to %s, said are %v", len(ids), ids[len(ids)-1], c.Rows)
		}
	}
	acknowledged := stop()
	if counts[0] < 101 || counts[4] > int64(acknowledged) {
		t.Errorf("copies have %v runs of %d", counts, acknowledged)
	}
}

func TestABackupReplacesAFileOnlyWhenToldAndOnlyByASoundOne(t *testing.T) {
	s, path := openNew(t)
	put(t, s, outcome(1), store.Stored)
	copied, link := path+".copy", path+".link"
	if err := os.WriteFile(copied, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(copied, link); err != nil {
		t.Fatal(err)
	}
	if err := store.Backup(t.Context(), path, copied); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	for what, dest := range map[string]string{"itself": path, "a link": link} {
		if _, err := store.BackupWith(t.Context(), path, dest, store.CopyOptions{Replace: true}); err == nil {
			t.Errorf("replaced %s", what)
		}
	}
	broken := brokenCopy(t, path)
	over := store.CopyOptions{Replace: true}
	if _, err := store.BackupWith(t.Context(), broken, copied, over); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a damaged copy: %v", err)
	}
	if string(contents(t, copied)) != "mine" {
		t.Error("the file that was there has changed")
	}
	if _, err := store.BackupWith(t.Context(), path, copied, store.CopyOptions{Replace: true}); err != nil {
		t.Error(err)
	}
	if ids := outcomesIn(t, copied); ids != "run-000001" {
		t.Errorf("the copy has %s", ids)
	}
}

// brokenCopy returns a copy of a database whose details refer to no outcome.
func brokenCopy(t *testing.T, path string) string {
	t.Helper()
	broken := filepath.Join(tempDir(t), "broken.db")
	if err := store.Backup(t.Context(), path, broken); err != nil {
		t.Fatal(err)
	}
	execute(t, broken, "PRAGMA foreign_keys = OFF; DELETE FROM outcomes")
	return broken
}

// two returns a database with one run, and a backup with another one.
func two(t *testing.T) (path, backup string) {
	t.Helper()
	path = filepath.Join(tempDir(t), "records.db")
	backup = path + ".backup"
	for i, to := range []string{backup, path} {
		s := open(t, path, nil)
		if i == 1 {
			if _, err := s.Forget(t.Context(), []int64{1}, nil); err != nil {
				t.Fatal(err)
			}
		}
		put(t, s, outcome(i), store.Stored)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if to == backup {
			if err := store.Backup(t.Context(), path, backup); err != nil {
				t.Fatal(err)
			}
		}
	}
	return path, backup
}

func TestARestoredDatabaseIsTheBackupAndWhatItReplacedStaysAside(t *testing.T) {
	path, backup := two(t)
	c, err := store.Restore(t.Context(), backup, path, start, nil)
	if err != nil || c.Rows["outcomes"] != 1 || c.File != path {
		t.Fatalf("%+v, %v", c, err)
	}
	got, was, left := outcomesIn(t, path), outcomesIn(t, c.Aside), outcomesIn(t, backup)
	if got != "run-000000" || was != "run-000001" || left != got {
		t.Errorf("restored %s, aside %s, the backup has %s", got, was, left)
	}
	next, err := store.Restore(t.Context(), backup, path, start, nil) // in the same second
	if err != nil || next.Aside == c.Aside || outcomesIn(t, c.Aside) != was || outcomesIn(t, next.Aside) != got {
		t.Errorf("a second time: %+v, %v, and aside %s", next, err, outcomesIn(t, c.Aside))
	}
	put(t, open(t, path, nil), outcome(5), store.Stored)
	again, err := store.Restore(t.Context(), c.Aside, path, start, nil)
	if !errors.Is(err, store.ErrBusy) {
		t.Errorf("while it is open: %+v, %v", again, err)
	}
	if got := outcomesIn(t, path); got != "run-000000,run-000005" {
		t.Errorf("it has %s after a refusal", got)
	}
}

func TestADatabaseIsRestoredFromSoundBackupsAlone(t *testing.T) {
	path, backup := two(t)
	text, newer, empty := path+".text", path+".newer", path+".empty"
	for name, what := range map[string]string{text: "no database, but long enough to look like one", empty: ""} {
		if err := os.WriteFile(name, []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Backup(t.Context(), backup, newer); err != nil {
		t.Fatal(err)
	}
	execute(t, newer, "PRAGMA user_version = 99")
	for _, from := range []string{text, newer, empty, brokenCopy(t, path), path, path + ".none"} {
		if _, err := store.Restore(t.Context(), from, path, start, nil); err == nil {
			t.Errorf("restored from %s", from)
		}
		if got := outcomesIn(t, path); got != "run-000001" {
			t.Errorf("after %s it has %s", from, got)
		}
	}
	if left, err := filepath.Glob(path + ".re*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// A damaged database is what a backup is for.
func TestADamagedDatabaseIsReplacedByABackup(t *testing.T) {
	path, backup := two(t)
	if err := os.WriteFile(path, bytes.Repeat([]byte("damaged!"), 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := store.Restore(t.Context(), backup, path, start, nil)
	if err != nil || !bytes.HasPrefix(contents(t, c.Aside), []byte("damaged!")) {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := outcomesIn(t, path); got != "run-000000" {
		t.Errorf("it has %s", got)
	}
}

// Whenever a restore is killed, one of the two databases is at the path, whole.
func TestAKilledRestoreLeavesOneOfBothDatabases(t *testing.T) {
	path, backup := two(t)
	seen := make(map[string]int)
	for i := range 12 {
		killedAfter(t, time.Duration(30+11*i)*time.Millisecond, path, backup)
		seen[outcomesIn(t, path)]++
	}
	t.Logf("%v", seen)
	for ids := range seen {
		if ids != "run-000000" && ids != "run-000001" {
			t.Errorf("a database has %q", ids)
		}
	}
	if _, err := store.Restore(t.Context(), backup, path, start, nil); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(path + ".restored*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestAKilledBackupLeavesTheOneThatWasThere(t *testing.T) {
	path, backup := two(t) // backup is where the child writes to
	for i := range 8 {
		killedAfter(t, time.Duration(30+17*i)*time.Millisecond, path, "")
		if ids := outcomesIn(t, backup); ids != "run-000000" && ids != "run-000001" {
			t.Errorf("the backup has %q", ids)
		}
	}
}

// Whoever copies continuously, as litestream or the sqlite3 program, reads the log that epd goes on to
// write and to merge.
func TestAnotherProcessReadsAndCopiesWhileEpdWritesAndMergesItsLog(t *testing.T) {
	program, err := exec.LookPath("sqlite3")
	shareddata.Need(t, err == nil, "another program that copies is sqlite3")
	s, path := openNew(t)
	reader := raw(t, path)
	stop := writing(t, s, 201)
	last := 0
	for i := range 5 {
		var now int
		err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM outcomes").Scan(&now)
		if err != nil || now < last {
			t.Errorf("another process sees %d runs after %d: %v", now, last, err)
		}
		last = now
		copied := fmt.Sprintf("%s/copy%d.db", filepath.Dir(path), i)
		out, err := exec.CommandContext(t.Context(), program, "file:"+(&url.URL{Path: path}).EscapedPath(),
			".timeout 5000", ".backup "+copied, "PRAGMA wal_checkpoint(PASSIVE)").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if ids := strings.Split(outcomesIn(t, copied), ","); len(ids) < last {
			t.Errorf("the copy has %d runs, %d were there before", len(ids), last)
		}
	}
	stop()
	if err := s.WriteProblem(); err != nil {
		t.Error(err)
	}
}
