package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
)

// hold locks a database for writing as another process would, until release.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	conn, err := raw(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}

func TestALockedDatabaseIsBusyAfterABoundedTimeAndGoesOnLater(t *testing.T) {
	path := filepath.Join(tempDir(t), "epd.db")
	s := open(t, path, &store.Options{BusyTimeout: 20 * time.Millisecond})
	release := hold(t, path)
	begin := time.Now()
	_, err := s.PutOutcome(t.Context(), outcome(1))
	if took := time.Since(begin); !errors.Is(err, store.ErrBusy) || took > 5*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	if _, err := s.OutcomesOfJob(t.Context(), "alpha", 1); err != nil {
		t.Errorf("reading while another process writes: %v", err)
	}
	release()
	put(t, s, outcome(1), store.Stored)
}

func TestANewDatabaseThatAnotherProcessHoldsIsBusy(t *testing.T) {
	path := filepath.Join(tempDir(t), "epd.db")
	execute(t, path, "PRAGMA journal_mode = WAL")
	release := hold(t, path)
	_, err := store.Open(t.Context(), path, &store.Options{BusyTimeout: 20 * time.Millisecond})
	if !errors.Is(err, store.ErrBusy) {
		t.Errorf("got %v", err)
	}
	release()
	put(t, open(t, path, nil), outcome(1), store.Stored)
}

func TestADamagedDatabaseIsRefusedAndNotTouched(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"no database":      func([]byte) []byte { return bytes.Repeat([]byte("rubbish "), 1000) },
		"pages of rubbish": func(data []byte) []byte { return spoil(data, 4096, len(data)) },
		"cut":              func(data []byte) []byte { return data[:len(data)/2] },
		"header only":      func(data []byte) []byte { return spoil(data, 0, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(tempDir(t), "epd.db")
			s := open(t, path, nil)
			for i := range 50 {
				put(t, s, outcome(i), store.Stored)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damaged := damage(contents(t, path))
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Open(t.Context(), path, nil); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("Open: %v", err)
			}
			if !bytes.Equal(contents(t, path), damaged) {
				t.Error("the damaged file was changed")
			}
			if found, err := store.Check(t.Context(), path); err != nil || len(found) == 0 {
				t.Errorf("Check found %q, %v", found, err)
			}
		})
	}
}

// spoil overwrites a part of a file.
func spoil(data []byte, from, to int) []byte {
	copy(data[from:to], bytes.Repeat([]byte("rubbish "), len(data)))
	return data
}

func TestAStoreThatMetDamageWritesNothingMore(t *testing.T) {
	s, _ := openNew(t)
	err := s.Apply(t.Context(), func(context.Context, *sql.Conn) error { return store.ErrCorrupt })
	if !errors.Is(err, store.ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.PutOutcome(t.Context(), outcome(1)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a write afterwards: %v", err)
	}
	if got, err := s.OutcomesOfJob(t.Context(), "alpha", 1001); err != nil || len(got) != 0 {
		t.Errorf("reading afterwards: %d outcomes, %v", len(got), err)
	}
}

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	s, _ := openNew(t)
	if err := s.LimitPages(t.Context(), 80); err != nil {
		t.Fatal(err)
	}
	next := 0
	for ; next < 10_000; next++ {
		_, err := s.PutOutcome(t.Context(), outcome(next))
		if errors.Is(err, store.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if next == 10_000 {
		t.Fatal("the disk was never full")
	}
	if _, err := s.PutOutcome(t.Context(), outcome(next)); !errors.Is(err, store.ErrFull) {
		t.Fatalf("again: %v", err)
	}
	if err := s.LimitPages(t.Context(), 1<<20); err != nil {
		t.Fatal(err)
	}
	for i := range next {
		put(t, s, outcome(i), store.Repeated)
	}
	put(t, s, outcome(next), store.Stored)
}

func TestOneWriteThatFailsDoesNotHarmOthersInItsTransaction(t *testing.T) {
	s, _ := openNew(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // keeps the writer until everybody waits
		err := s.Apply(t.Context(), func(context.Context, *sql.Conn) error {
			close(entered)
			<-leave
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-entered
	wrong := errors.New("wrong")
	for i := range 20 {
		all.Go(func() {
			if i%2 == 0 {
				put(t, s, outcome(i), store.Stored)
				return
			}
			err := s.Apply(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
				_, err := conn.ExecContext(ctx, "INSERT INTO pruned_runs VALUES ('alpha', ?, '', x'')",
					strconv.Itoa(i))
				return errors.Join(wrong, err)
			})
			if !errors.Is(err, wrong) {
				t.Errorf("the write that fails: %v", err)
			}
		})
	}
	close(leave)
	all.Wait()
	if n := len(exported(t, s, "outcomes")); n != 10 {
		t.Errorf("%d outcomes of 10", n)
	}
	if n := len(exported(t, s, "pruned_runs")); n != 0 {
		t.Errorf("%d rows of writes that failed", n)
	}
}

func TestTheWriterSyncsEveryCommit(t *testing.T) {
	s, _ := openNew(t)
	got := make(map[string]string)
	for _, pragma := range []string{
		"journal_mode", "synchronous", "foreign_keys", "locking_mode", "wal_autocheckpoint",
	} {
		err := s.Apply(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
			var value string
			err := conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&value)
			got[pragma] = value
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got["journal_mode"] != "wal" || got["synchronous"] != "2" || got["foreign_keys"] != "1" || // 2 is FULL
		got["locking_mode"] != "normal" || got["wal_autocheckpoint"] != "1000" { // others may read and copy
		t.Errorf("the writer works with %v", got)
	}
}

func TestTheFilesAreForTheirOwnerOnly(t *testing.T) {
	s, path := openNew(t)
	put(t, s, outcome(1), store.Stored)
	copied := path + ".copy"
	if err := store.Backup(t.Context(), path, copied); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, path + "-wal", path + "-shm", copied} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(file), info, err)
		}
	}
}

func TestABackupIsWholeAndOverwritesNothing(t *testing.T) {
	s, path := openNew(t)
	for i := range 30 {
		put(t, s, outcome(i), store.Stored)
	}
	copied := filepath.Join(filepath.Dir(path), "copy.db")
	if err := store.Backup(t.Context(), path, copied); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Check(t.Context(), copied); err != nil || len(found) > 0 {
		t.Errorf("Check found %q, %v", found, err)
	}
	put(t, open(t, copied, nil), outcome(29), store.Repeated)
	before := contents(t, copied)
	if err := store.Backup(t.Context(), path, copied); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if !bytes.Equal(before, contents(t, copied)) {
		t.Error("the backup that was there has changed")
	}
	if err := store.Backup(t.Context(), path, filepath.Join(path, "not-a-folder")); err == nil {
		t.Error("a backup where there is no folder succeeded")
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.part")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if err := store.Backup(t.Context(), path+".none", copied+"2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of what isn't there: %v", err)
	}
}
