package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// smallDisk puts a small file system of its own in the place of a state folder; what the hardware
// remembers is on another.
func smallDisk(t *testing.T, state string) {
	t.Helper()
	sim := filepath.Join(state, "sim")
	must(t, os.MkdirAll(state, 0o700))
	shareddata.Need(t, syscall.Mount("none", state, "tmpfs", 0, "size=4m,mode=0700") == nil,
		"a small disk needs the right to mount one")
	t.Cleanup(func() { _ = syscall.Unmount(state, syscall.MNT_DETACH) })
	must(t, os.Mkdir(sim, 0o700))
	must(t, syscall.Mount("none", sim, "tmpfs", 0, "size=4m,mode=0700"))
	t.Cleanup(func() { _ = syscall.Unmount(sim, syscall.MNT_DETACH) })
}

// setSchema gives the records in a state folder another schema's number, and returns the one that they had.
func setSchema(t *testing.T, state string, version int) (before int) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(state, "records.db"))
	must(t, err)
	must(t, db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&before))
	_, err = db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", version))
	must(t, errors.Join(err, db.Close()))
	return before
}

// mended undoes what a test did to a disk.
type mended func(t *testing.T)

// On a disk that is full or read-only when epd starts, or with records of another schema, it is an agent
// alone, whose runs are recorded once
// the records can be opened, those that began meanwhile and those of before.
func TestAStateFolderThatCannotBeWrittenAtTheStartLosesNoRun(t *testing.T) {
	remount := func(t *testing.T, state string, flags uintptr) {
		t.Helper()
		must(t, syscall.Mount("", state, "", syscall.MS_REMOUNT|flags, ""))
	}
	for name, spoil := range map[string]func(t *testing.T, state string) mended{
		"full": func(t *testing.T, state string) mended {
			t.Helper()
			filler := filepath.Join(state, "filler")
			spooltest.Fill(t, filler)
			return func(t *testing.T) {
				t.Helper()
				must(t, os.Remove(filler))
			}
		},
		"read-only": func(t *testing.T, state string) mended {
			t.Helper()
			remount(t, state, syscall.MS_RDONLY)
			return func(t *testing.T) {
				t.Helper()
				remount(t, state, 0)
			}
		},
		"another schema": func(t *testing.T, state string) mended {
			t.Helper()
			before := setSchema(t, state, 7)
			return func(t *testing.T) {
				t.Helper()
				setSchema(t, state, before)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			state := filepath.Join(dir, "state")
			smallDisk(t, state)
			d := launch(t, dir)
			d.hook(hooks.Prolog, 1)
			if code := d.stop(); code != exitDone {
				t.Fatal(d.log)
			}
			mend := spoil(t, state)

			recordsRetry = 100 * time.Millisecond
			defer func() { recordsRetry = 15 * time.Second }()
			d = launch(t, dir)
			for _, job := range []slurm.JobID{2, 3} {
				if a := d.hook(hooks.Prolog, job); a.Applied {
					t.Errorf("locked without records: %+v", a)
				}
			}
			d.hook(hooks.Epilog, 1) // of before
			d.hook(hooks.Epilog, 2)
			s := d.status()
			if s.Role != roleAgent || len(s.Troubles) == 0 || !strings.Contains(s.Troubles[0].Message,
				"no controller: jobs run at default clocks, and outcomes wait: ") {
				t.Errorf("%+v", s)
			}
			mend(t)
			d.eventually("epd ends", func() bool {
				return strings.Contains(d.log.String(), "can be opened again: epd ends")
			})
			if code := d.stop(); code != exitFailed {
				t.Errorf("status %d: %s", code, d.log)
			}

			d = launch(t, dir)
			d.hook(hooks.Epilog, 3)
			d.eventually("all is recorded", func() bool {
				s := d.status()
				return len(s.Runs) == 0 && s.Unrecorded == 0
			})
			if code := d.stop(); code != exitDone {
				t.Error(d.log)
			}
			exported(t, state, 3)
		})
	}
}
