package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/mungetest"
	"github.com/epplan/epplan/slurm/hooks"
)

// recorded returns how many outcomes an epd's records have.
func recorded(t *testing.T, state string) int {
	t.Helper()
	var out, log bytes.Buffer
	if code := run(t.Context(), []string{"epd", "db", "export", "--state", state, "outcomes"}, &out,
		&log); code != exitDone {
		t.Fatalf("status %d: %s", code, log.String())
	}
	return strings.Count(out.String(), "\n")
}

// Whoever cleans up, or puts a backup in place, while the controller runs: nothing is
// acknowledged that would be gone, and a restart goes on.
func TestRecordsThatAreRemovedWhileTheControllerRunsLoseNoOutcome(t *testing.T) {
	munged, at := mungetest.Start(t, nil), freePort(t)
	home, config := t.TempDir(), filepath.Join(t.TempDir(), "epd.toml")
	writeFile(t, config, "[live]\nmode = \"enforce\"\nhold_out = 0\n")
	flags := []string{
		"--role", "controller", "--listen", at, "--munge-socket", munged.Socket, "--config", config,
	}
	controller := launch(t, home, flags...)
	agent := launch(t, t.TempDir(), "--role", "agent", "--controller", at, "--munge-socket", munged.Socket,
		"--node", "n1")
	for _, ending := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(home, "state", "records.db"+ending)); err != nil {
			t.Fatal(err)
		}
	}
	agent.hook(hooks.Prolog, 7)
	agent.hook(hooks.Epilog, 7)
	agent.eventually("the outcome waits, and its node says why", func() bool {
		s := agent.status()
		return s.Unrecorded == 1 && len(s.Troubles) > 0 &&
			strings.Contains(s.Troubles[len(s.Troubles)-1].Message, "restart epd")
	})
	if s := controller.status().Controller; !s.Moved ||
		!strings.Contains(s.Trouble, "records.db was removed") {
		t.Errorf("the controller's status: %+v", s)
	}
	if a := agent.hook(hooks.Prolog, 8); a.Applied || agent.status().GPUs[0].LockedCore != 0 {
		t.Errorf("clocks that nobody can record: %+v", a)
	}
	if code := controller.stop(); code != exitFailed ||
		!strings.Contains(controller.log.String(), "records still to be written") {
		t.Errorf("status %d: decisions are lost without a word\n%s", code, controller.log)
	}
	controller = launch(t, home, flags...)
	agent.eventually("nothing waits", func() bool { return agent.status().Unrecorded == 0 })
	if s := controller.status(); s.Totals.Outcomes != 1 || s.Controller.Trouble != "" {
		t.Errorf("after a restart: %+v, %+v", s.Totals, s.Controller)
	}
	if n := recorded(t, filepath.Join(home, "state")); n != 1 {
		t.Errorf("recorded %d times", n)
	}
}
