package install_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/install"
)

// hookOnDisk is our Prolog on a machine of files: its program, its logger, and the file of what it said last.
type hookOnDisk struct {
	*testing.T
	dir, script string
}

func newHookOnDisk(t *testing.T, program, logger string) *hookOnDisk {
	t.Helper()
	h := &hookOnDisk{T: t, dir: t.TempDir()}
	text := (&install.Site{Dir: "/etc/slurm", Binary: filepath.Join(h.dir, "epplan")}).HookScript(hooks.Prolog)
	text = strings.NewReplacer("/usr/bin/logger", filepath.Join(h.dir, "logger"), "/run/", h.dir+"/",
		"timeout -k 0.1 0.3", "timeout -k 0.1 20").Replace(text) // a busy machine
	h.script = filepath.Join(h.dir, "10-epplan")
	h.file("10-epplan", text)
	if program != "" {
		h.file("epplan", "#!/bin/sh\n"+program+"\n")
	}
	if logger != "" {
		h.file("logger", "#!/bin/sh\n"+strings.ReplaceAll(logger, "LOG", filepath.Join(h.dir, "log"))+"\n")
	}
	return h
}

func (h *hookOnDisk) file(name, text string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o700); err != nil {
		h.Fatal(err)
	}
}

// run runs the hook as slurmd does, without a PATH, and returns all that it prints, and its error.
func (h *hookOnDisk) run() (string, error) {
	cmd := exec.CommandContext(h.Context(), h.script)
	cmd.Env = []string{"SLURM_JOB_ID=4711"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// said returns what the logger was told, a line each time.
func (h *hookOnDisk) said() (lines []string) {
	text, err := os.ReadFile(filepath.Join(h.dir, "log"))
	if err == nil {
		lines = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	return lines
}

// quiet runs the hook and wants it to end well and print nothing, whatever happens.
func (h *hookOnDisk) quiet() {
	h.Helper()
	if out, err := h.run(); err != nil || out != "" {
		h.Errorf("the hook prints %q and ends with %v", out, err)
	}
}

const logs = `echo "$*" >>LOG`

func TestAHookThatCantBeRunSaysSoInSyslogAndDrainsNoNode(t *testing.T) {
	for name, c := range map[string]struct{ program, status string }{
		"it works":                     {"exit 0", ""},
		"it is missing":                {"", "127"},
		"another can't start":          {"exit 126", "126"},
		"it fails":                     {"echo noise; echo noise >&2; exit 3", "3"},
		"it is killed":                 {"kill -9 $$", "137"},
		"it hangs":                     {"exec sleep 600", "124"},
		"it hangs and ignores the end": {`trap "" TERM; while :; do sleep 600; done`, "137"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHookOnDisk(t, c.program, logs)
			h.quiet()
			said := h.said()
			if c.status == "" {
				if said != nil {
					t.Errorf("it said %q", said)
				}
				return
			}
			want := "-t epplan -p daemon.err Prolog of job 4711 didn't reach epd: " + h.dir + "/epplan prolog ended with status " +
				c.status + " "
			if len(said) != 1 || !strings.HasPrefix(said[0], want) {
				t.Errorf("it said %q, want %q…", said, want)
			}
		})
	}
}

func TestAProgramThatMustNotBeRunIsSaid(t *testing.T) {
	h := newHookOnDisk(t, "exit 0", logs)
	if err := os.Chmod(filepath.Join(h.dir, "epplan"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.quiet()
	if said := h.said(); len(said) != 1 || !strings.Contains(said[0], "ended with status 126 ") {
		t.Errorf("it said %q", said)
	}
}

// TestAHookSpeaksOnceAMinute, however many jobs start, also at once.
func TestAHookSpeaksOnceAMinute(t *testing.T) {
	h := newHookOnDisk(t, "exit 126", logs)
	last := filepath.Join(h.dir, "epplan-Prolog-failed")
	for round := 1; round <= 4; round++ {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { h.quiet() })
		}
		all.Wait()
		if said := h.said(); len(said) != round {
			t.Fatalf("round %d: it spoke %d times: %q", round, len(said), said)
		}
		// A minute goes by, the clock was set back by hours, or to nonsense.
		ago := strconv.FormatInt(time.Now().Add(-time.Minute).Unix()-int64(round), 10)
		ahead := strconv.FormatInt(time.Now().Add(3*time.Hour).Unix(), 10)
		h.file("epplan-Prolog-failed", []string{ago, ahead, "nonsense", ""}[round-1])
	}
	if files, err := filepath.Glob(last + "*"); err != nil || len(files) > 2 {
		t.Errorf("%q, %v", files, err)
	}
}

func TestWithoutALoggerAHookGoesOn(t *testing.T) {
	for name, logger := range map[string]string{
		"missing": "", "fails": "exit 1",
		"noisy": "echo noise; echo noise >&2",
	} {
		t.Run(name, func(t *testing.T) { newHookOnDisk(t, "exit 126", logger).quiet() })
	}
	t.Run("hangs", func(t *testing.T) {
		h := newHookOnDisk(t, "exit 126", "exec sleep 600")
		text, err := os.ReadFile(h.script)
		if err != nil {
			t.Fatal(err)
		}
		h.file("10-epplan", strings.ReplaceAll(string(text), "timeout -k 0.1 20", "timeout -k 0.1 0.3"))
		h.quiet()
	})
	t.Run("nowhere to write", func(t *testing.T) {
		h := newHookOnDisk(t, "exit 126", logs)
		text, err := os.ReadFile(h.script)
		if err != nil {
			t.Fatal(err)
		}
		h.file("10-epplan", strings.ReplaceAll(string(text), "said="+h.dir, fmt.Sprintf("said=%s/missing", h.dir)))
		h.quiet()
	})
}
