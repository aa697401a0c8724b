package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/mungetest"
	"github.com/epplan/epplan/slurm/hooks"
)

// dbCommandOf runs epd db and wants an exit status.
func dbCommandOf(t *testing.T, want int, args ...string) (out, log string) {
	t.Helper()
	var o, l bytes.Buffer
	if code := run(t.Context(), append([]string{"epd", "db"}, args...), &o, &l); code != want {
		t.Errorf("epd db %q: status %d, want %d: %s", args, code, want, &l)
	}
	return o.String(), l.String()
}

// recording returns a controller in a folder with one outcome in its records.
func recording(t *testing.T) (controller *running, state string) {
	t.Helper()
	munged, at := mungetest.Start(t, nil), freePort(t)
	home := t.TempDir()
	controller = launch(t, home, "--role", "controller", "--listen", at, "--munge-socket", munged.Socket)
	agent := launch(t, t.TempDir(), "--role", "agent", "--controller", at, "--munge-socket", munged.Socket,
		"--node", "n1")
	agent.hook(hooks.Prolog, 7)
	agent.hook(hooks.Epilog, 7)
	agent.eventually("the outcome is recorded", func() bool {
		return agent.status().Unrecorded == 0 && controller.status().Totals.Outcomes == 1
	})
	return controller, filepath.Join(home, "state")
}

func TestABackupOfARunningControllerIsRestored(t *testing.T) {
	controller, state := recording(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	out, _ := dbCommandOf(t, exitDone, "backup", "--state", state, "--json", backup)
	var copied store.Copied
	if err := json.Unmarshal([]byte(out), &copied); err != nil || copied.Rows["outcomes"] != 1 ||
		copied.File != backup || copied.Bytes == 0 {
		t.Errorf("%s: %v", out, err)
	}
	dbCommandOf(t, exitFailed, "backup", "--state", state, backup) // it is there
	if out, _ = dbCommandOf(t, exitDone, "backup", "--state", state, "--replace", backup); !strings.Contains(out,
		"1 run") {
		t.Errorf("said is %q", out)
	}
	if _, log := dbCommandOf(t, exitFailed, "restore", "--state", state, backup); !strings.Contains(log,
		"another epd") {
		t.Errorf("while the controller runs: %s", log)
	}
	if code := controller.stop(); code != exitDone {
		t.Fatalf("status %d: %s", code, controller.log)
	}
	out, _ = dbCommandOf(t, exitDone, "restore", "--state", state, "--dry-run", backup)
	if !strings.Contains(out, "would copy") {
		t.Errorf("under --dry-run it says %q", out)
	}
	if left, err := filepath.Glob(filepath.Join(state, "records.db.*")); err != nil || len(left) > 0 {
		t.Errorf("--dry-run left %q, %v", left, err)
	}
	if out, _ = dbCommandOf(t, exitDone, "restore", "--state", state, backup); !strings.Contains(out,
		"what it replaced is "+filepath.Join(state, "records.db.replaced-")) {
		t.Errorf("said is %q", out)
	}
	if n := recorded(t, state); n != 1 {
		t.Errorf("%d outcomes are restored", n)
	}
}

func TestRecordsMoveToAnotherFolder(t *testing.T) {
	controller, state := recording(t)
	next := t.TempDir()
	must(t, os.Chmod(next, 0o700))
	file := filepath.Join(state, "records.db")
	if _, log := dbCommandOf(t, exitFailed, "restore", "--state", next, file); !strings.Contains(log,
		"isn't a backup") {
		t.Errorf("from a controller that runs: %s", log)
	}
	if code := controller.stop(); code != exitDone {
		t.Fatalf("status %d: %s", code, controller.log)
	}
	dbCommandOf(t, exitDone, "restore", "--state", next, file)
	if n, was := recorded(t, next), recorded(t, state); n != 1 || was != 1 {
		t.Errorf("%d outcomes moved, %d stayed where they were", n, was)
	}
	dbCommandOf(t, exitFailed, "restore", "--state", filepath.Join(next, "none"), file)
}
