package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store"
)

// overwrite spoils a part of one of a database's files, given as shares of its length, under whoever has it open.
func overwrite(ending string, from, to float64) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		f, err := os.OpenFile(path+ending, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		begin, end := int(from*float64(info.Size())), int(to*float64(info.Size()))
		_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, end-begin), int64(begin))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// cut leaves a share of one of a database's files.
func cut(ending string, share float64) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		size := int64(share * float64(len(contents(t, path+ending))))
		if err := os.Truncate(path+ending, size); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever part of the files is spoiled while epd runs: it says so, or loses nothing that it
// acknowledged. The next start moves the database aside, or copies its log, wherever something is missing.
func TestDamageUnderARunningEPDLosesNothingInSilence(t *testing.T) {
	for name, damage := range map[string]func(*testing.T, string){
		"all of the database":         overwrite("", 0, 1),
		"all but its first page":      overwrite("", .05, 1),
		"the database's middle":       overwrite("", .3, .6),
		"the database is empty":       cut("", 0),
		"half of the database":        cut("", .5),
		"all of the log":              overwrite("-wal", 0, 1),
		"the log's header":            overwrite("-wal", 0, .0001),
		"the log's middle":            overwrite("-wal", .3, .32),
		"the log's last part":         overwrite("-wal", .8, 1),
		"the log is empty":            cut("-wal", 0),
		"half of the log":             cut("-wal", .5),
		"a part of a page of the log": overwrite("-wal", .5, .5001),
	} {
		t.Run(name, func(t *testing.T) {
			damagedWhileOpen(t, damage)
		})
	}
}

func damagedWhileOpen(t *testing.T, damage func(*testing.T, string)) {
	t.Helper()
	path := filepath.Join(tempDir(t), "records.db")
	s, err := store.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := make(map[int]bool)
	try := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := s.PutOutcome(t.Context(), outcome(i)); err == nil {
				acknowledged[i] = true
			} else if !errors.Is(err, store.ErrCorrupt) {
				t.Fatal(err)
			}
		}
	}
	try(0, 60)
	if len(acknowledged) != 60 {
		t.Fatalf("%d of 60 outcomes acknowledged", len(acknowledged))
	}
	damage(t, path)
	try(60, 70)
	for i := range 60 {
		if got, err := s.OutcomesOfJob(t.Context(), "alpha", int64(1000+i)); err != nil || len(got) != 1 {
			if why := s.WriteProblem(); !errors.Is(why, store.ErrCorrupt) {
				t.Fatalf("job %d has %d outcomes, %v, and nothing is said: %v", 1000+i, len(got), err, why)
			}
		}
	}
	killed, closed := filepath.Join(t.TempDir(), "records.db"), filepath.Join(t.TempDir(), "records.db")
	copyDatabase(t, path, killed)
	if err := s.Close(); err != nil {
		t.Log(err)
	}
	copyDatabase(t, path, closed)
	missesNothingInSilence(t, killed, acknowledged)
	missesNothingInSilence(t, closed, acknowledged)
}

// copyDatabase copies a database and its log, as a process that is killed leaves them.
func copyDatabase(t *testing.T, from, to string) {
	t.Helper()
	for _, ending := range []string{"", "-wal"} {
		if data, err := os.ReadFile(from + ending); err == nil {
			if err := os.WriteFile(to+ending, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func missesNothingInSilence(t *testing.T, path string, acknowledged map[int]bool) {
	t.Helper()
	log, _ := os.ReadFile(path + "-wal")
	copied, err := store.SalvageLog(path, start)
	if err != nil {
		t.Fatal(err)
	}
	if copied != "" && !bytes.Equal(contents(t, copied), log) {
		t.Errorf("%s isn't the log", copied)
	}
	if again, err := store.SalvageLog(path, start); again != "" || err != nil {
		t.Errorf("once more: %q, %v", again, err)
	}
	s, err := store.Open(t.Context(), path, nil)
	if errors.Is(err, store.ErrCorrupt) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	missing := 0
	for i := range acknowledged {
		if got, err := s.OutcomesOfJob(t.Context(), "alpha", int64(1000+i)); err != nil || len(got) != 1 {
			missing++
		}
	}
	if missing > 0 && copied == "" {
		t.Errorf("%d of %d outcomes are missing in silence", missing, len(acknowledged))
	}
}

// What a loss of power, or a kill, leaves of a log isn't damage: its last transaction may lack anything.
func TestALogThatEndsAnywhereIsNoDamage(t *testing.T) {
	path := filepath.Join(tempDir(t), "records.db")
	s, err := store.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		put(t, s, outcome(i), store.Stored)
	}
	before := len(contents(t, path+"-wal"))
	put(t, s, outcome(20), store.Stored)
	log, db := contents(t, path+"-wal"), contents(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	looks := func(what string, log []byte) {
		t.Helper()
		one := filepath.Join(t.TempDir(), "records.db")
		for ending, data := range map[string][]byte{"": db, "-wal": log} {
			if err := os.WriteFile(one+ending, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if copied, err := store.SalvageLog(one, start); err != nil || copied != "" {
			t.Errorf("%s: %q, %v", what, copied, err)
		}
	}
	looks("whole", log)
	looks("empty", nil)
	if before == len(log) {
		t.Fatal("the last transaction added nothing to the log")
	}
	for at := before; at < len(log); at += 512 {
		looks("cut", log[:at])
		torn := bytes.Clone(log)
		copy(torn[at:min(at+512, len(torn))], strings.Repeat("\x00", 512))
		looks("torn", torn)
	}
}
