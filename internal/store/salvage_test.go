package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// damaged makes a database with records that Open refuses, and returns what
// lies beside it, by name.
func damaged(t *testing.T) (path string, files map[string][]byte) {
	t.Helper()
	path = filepath.Join(tempDir(t), "epd.db")
	s := open(t, path, nil)
	for i := range 50 {
		put(t, s, outcome(i), store.Stored)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	put(t, s, outcome(50), store.Stored)
	files = map[string][]byte{"-wal": contents(t, path+"-wal")} // not merged, as after a kill
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data := contents(t, path)
	files[""] = spoil(data, 4096, len(data))
	for ending, data := range files {
		if err := os.WriteFile(path+ending, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Open(t.Context(), path, nil); !errors.Is(err, store.ErrCorrupt) {
		t.Fatalf("Open: %v", err)
	}
	return path, files
}

func TestADamagedDatabaseIsMovedAsideWholeAndANewOneBegins(t *testing.T) {
	path, files := damaged(t)
	moved, err := store.Salvage(path, start)
	if err != nil || moved != path+".damaged-20260314T150926Z" {
		t.Fatalf("%s, %v", moved, err)
	}
	for ending, want := range files {
		if !bytes.Equal(contents(t, moved+ending), want) {
			t.Errorf("%s has changed", moved+ending)
		}
		if _, err := os.Lstat(path + ending); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path+ending, err)
		}
	}
	s := open(t, path, nil)
	put(t, s, outcome(1), store.Stored)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Salvage(path, start) // the same second
	if err != nil || again == moved {
		t.Errorf("a second time: %s, %v", again, err)
	}
	if !bytes.Equal(contents(t, moved), files[""]) {
		t.Error("the first one was overwritten")
	}
}

func TestThereIsNothingToSalvageWithoutADatabase(t *testing.T) {
	path := filepath.Join(tempDir(t), "epd.db")
	if _, err := store.Salvage(path, start); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	path, _ = damaged(t)
	if err := os.Rename(path, path+".elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Salvage(path, start); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the database itself: %v", err)
	}
	if _, err := os.Lstat(path + "-wal"); err != nil {
		t.Error("its log was moved all the same")
	}
}

func TestWhyAWorkloadHasNoModelIsRememberedUntilItHasOne(t *testing.T) {
	s, path := openNew(t)
	key := workload(0)
	if _, err := s.Learning.PutModel(t.Context(), model("first", true)); err != nil {
		t.Fatal(err)
	}
	want := func(s *store.Store, note string) {
		t.Helper()
		out, err := s.Learning.RetiredModels(t.Context(), key.Cluster)
		switch {
		case err != nil:
			t.Fatal(err)
		case note == "" && len(out) == 0:
		case len(out) != 1 || out[0].Note != note || out[0].WorkloadKey != key ||
			!out[0].Since.Equal(record.StoredTime(start)):
			t.Errorf("got %+v, want %q", out, note)
		}
	}
	use := func(version int64, note string) {
		t.Helper()
		if err := s.Learning.UseModel(t.Context(), key, version, note); err != nil {
			t.Fatal(err)
		}
	}
	want(s, "")
	use(0, "too slow")
	use(0, "far too slow")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, nil)
	want(s, "far too slow")
	if _, err := s.Learning.PutModel(t.Context(), model("not in use", false)); err != nil {
		t.Fatal(err)
	}
	want(s, "far too slow")
	if err := s.Learning.UseModel(t.Context(), key, 99, ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a version that isn't there: %v", err)
	}
	want(s, "far too slow")
	use(1, "good after all")
	want(s, "")
	use(0, "no")
	use(0, "")
	want(s, "")
	use(0, "no")
	if _, err := s.Learning.PutModel(t.Context(), model("in use", true)); err != nil {
		t.Fatal(err)
	}
	want(s, "")
}

func TestTheSameRunSaidToHaveEndedOtherwiseIsARepeat(t *testing.T) {
	s, _ := openNew(t)
	put(t, s, outcome(1), store.Stored)
	late := outcome(1) // Slurm has forgotten the job
	late.ExitState, late.Restart, late.DecisionID, late.Workload, late.Arm = "", 0, 0, "", live.ArmExcluded
	late.Submitted, late.Slowdown = record.StoredTime(start.AddDate(0, 0, -1)), live.Number{}
	put(t, s, late, store.Repeated)
	all, err := s.OutcomesOfJob(t.Context(), "alpha", outcome(1).JobID)
	if err != nil || len(all) != 1 || all[0].ExitState != record.Completed {
		t.Errorf("%+v, %v", all, err)
	}
}
