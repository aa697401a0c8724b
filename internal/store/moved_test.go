package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/store"
)

// removal is how a database that is open goes, and what is at its path then.
type removal struct {
	name string
	do   func(t *testing.T, path, backup string)
	kept int // of the outcomes from before, that whoever opens the path then finds
}

// before is how many outcomes are acknowledged before a database goes, half of them
// before its backup.
const before = 20

func remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func removals() []removal {
	return []removal{
		{"all its files removed", func(t *testing.T, path, _ string) {
			t.Helper()
			remove(t, path, path+"-wal", path+"-shm")
		}, 0},
		{"the database removed", func(t *testing.T, path, _ string) {
			t.Helper()
			remove(t, path)
		}, 0},
		{"its log removed", func(t *testing.T, path, _ string) {
			t.Helper()
			remove(t, path+"-wal")
		}, before},
		{"its log replaced", func(t *testing.T, path, _ string) {
			t.Helper()
			remove(t, path+"-wal")
			if err := os.WriteFile(path+"-wal", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, before},
		{"its shared memory removed", func(t *testing.T, path, _ string) {
			t.Helper()
			remove(t, path+"-shm")
		}, before},
		{"a backup renamed over it", func(t *testing.T, path, backup string) {
			t.Helper()
			rename(t, backup, path)
		}, before / 2},
		{"removed, and a backup put in its place", func(t *testing.T, path, backup string) {
			t.Helper()
			remove(t, path)
			rename(t, backup, path)
		}, before / 2},
		{"its folder moved away", func(t *testing.T, path, _ string) {
			t.Helper()
			rename(t, filepath.Dir(path), filepath.Dir(path)+".away")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
		}, 0},
	}
}

// openIn opens a database in a folder of its own, with outcomes and a backup of half
// of them.
func openIn(t *testing.T) (s *store.Store, path, backup string) {
	t.Helper()
	dir := filepath.Join(tempDir(t), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, backup = filepath.Join(dir, "records.db"), filepath.Join(filepath.Dir(dir), "backup.db")
	s = open(t, path, nil)
	for i := range before {
		if i == before/2 {
			if err := store.Backup(t.Context(), path, backup); err != nil {
				t.Fatal(err)
			}
		}
		put(t, s, outcome(i), store.Stored)
	}
	return s, path, backup
}

func TestNothingIsAcknowledgedIntoADatabaseThatIsNotAtItsPath(t *testing.T) {
	for _, c := range removals() {
		t.Run(c.name, func(t *testing.T) {
			s, path, backup := openIn(t)
			c.do(t, path, backup)
			acknowledgesNothing(t, s)
			if err := s.WriteProblem(); !errors.Is(err, store.ErrMoved) {
				t.Errorf("trouble: %v", err)
			}
			if got, err := s.OutcomesOfJob(t.Context(), "alpha", 1000); err != nil || len(got) != 1 {
				t.Errorf("what was there can't be read any more: %d outcomes, %v", len(got), err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			goesOn(t, path, c.kept)
		})
	}
}

// writers is how many write at once.
const writers = 8

// acknowledgesNothing writes outcomes, side by side, none of which may be acknowledged.
func acknowledgesNothing(t *testing.T, s *store.Store) {
	t.Helper()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if receipt, err := s.PutOutcome(t.Context(), outcome(before+i)); !errors.Is(err, store.ErrMoved) {
				t.Errorf("acknowledged as %s, %v", receipt, err)
			}
		})
	}
	all.Wait()
}

// goesOn opens what is at the path, which has so many outcomes, and stores all again:
// what agents kept comes again, and counts once.
func goesOn(t *testing.T, path string, kept int) {
	t.Helper()
	again := open(t, path, nil)
	for i := range before + writers {
		want := store.Stored
		if i < kept {
			want = store.Repeated
		}
		put(t, again, outcome(i), want)
		put(t, again, outcome(i), store.Repeated)
	}
	if err := again.WriteProblem(); err != nil {
		t.Error(err)
	}
	if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
		t.Errorf("Check found %q, %v", found, err)
	}
}

func TestADatabaseThatGoesWhileAWriteIsMadeIsNoticedBeforeItsAcknowledgement(t *testing.T) {
	s, path, _ := openIn(t)
	err := s.Apply(t.Context(), func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "INSERT INTO pruned_runs VALUES ('alpha', 'r', '', x'')")
		return errors.Join(err, os.Remove(path))
	})
	if !errors.Is(err, store.ErrMoved) {
		t.Errorf("acknowledged: %v", err)
	}
}

// A log that is left beside another database would be taken for that one's.
func TestALogThatIsLeftBesideAnotherDatabaseDoesNotSpoilIt(t *testing.T) {
	s, path, backup := openIn(t)
	want := contents(t, backup)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("there is no log to be left: %v, %v", info, err)
	}
	away := path + ".away"
	rename(t, path, away)
	rename(t, backup, path)
	if _, err := s.PutOutcome(t.Context(), outcome(before)); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("got %v", err)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() != 0 { // as after a kill now
		t.Errorf("its log has %v, %v", info, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if string(contents(t, path)) != string(want) {
		t.Error("the backup that was put in its place was changed")
	}
	moved := open(t, away, nil) // and all that was acknowledged is where the database is
	for i := range before {
		put(t, moved, outcome(i), store.Repeated)
	}
}

func TestADatabaseThatComesBackToItsPathIsWrittenAgain(t *testing.T) {
	s, path, _ := openIn(t)
	rename(t, path, path+".away")
	if _, err := s.PutOutcome(t.Context(), outcome(before)); !errors.Is(err, store.ErrMoved) {
		t.Fatalf("got %v", err)
	}
	rename(t, path+".away", path)
	put(t, s, outcome(before), store.Stored)
	if err := s.WriteProblem(); err != nil {
		t.Errorf("trouble: %v", err)
	}
}

func TestADatabaseThatIsWorkedOnIsNotTakenForAnotherOne(t *testing.T) {
	s, path, _ := openIn(t)
	for i, work := range []func() error{
		func() error { execute(t, path, "VACUUM"); return nil },
		func() error { execute(t, path, "PRAGMA wal_checkpoint(TRUNCATE)"); return nil },
		func() error { return store.Backup(t.Context(), path, path+".copy") },
		func() error { _, err := store.Check(t.Context(), path); return err },
		func() error {
			other, err := store.Open(t.Context(), path, nil)
			if err != nil {
				return err
			}
			return other.Close()
		},
		func() error { return os.Link(path, path+".hard") },
		func() error { _, err := s.Prune(t.Context(), start.Add(time.Hour)); return err },
	} {
		if err := work(); err != nil {
			t.Fatal(err)
		}
		put(t, s, outcome(before+i), store.Stored)
		if err := s.WriteProblem(); err != nil {
			t.Errorf("work %d: %v", i, err)
		}
	}
}

func TestADatabaseThatGoesIsNoticedThoughNobodyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(tempDir(t), "records.db")
		s, err := store.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		<-time.After(time.Minute)
		if err := s.WriteProblem(); err != nil {
			t.Errorf("before: %v", err)
		}
		remove(t, path)
		<-time.After(store.LookEvery + time.Second)
		synctest.Wait()
		if err := s.WriteProblem(); !errors.Is(err, store.ErrMoved) {
			t.Errorf("after: %v", err)
		}
	})
}
