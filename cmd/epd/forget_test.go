package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// db runs an epd db command.
func db(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	code = run(t.Context(), append([]string{"epd", "db"}, args...), &out, &log)
	return code, out.String(), log.String()
}

func TestRunsAreTakenOutOfARunningEPDsRecordsAndPutBack(t *testing.T) { //nolint:funlen // most of it is a table
	dir := t.TempDir()
	d := launch(t, dir, "--node", "n1")
	socket, state, file := filepath.Join(dir, "epd.sock"), filepath.Join(dir, "state"),
		filepath.Join(dir, "forgotten.jsonl")
	for job := slurm.JobID(7); job < 10; job++ {
		d.hook(hooks.Prolog, job)
		d.hook(hooks.Epilog, job)
	}
	d.eventually("all are recorded", func() bool { return d.status().Totals.Outcomes == 3 })

	code, stdout, _ := db(t, "forget", "--socket", socket, "--dry-run", "--job", "7")
	if code != exitDone || !strings.HasPrefix(stdout, "would take out of the records run ") ||
		!strings.Contains(stdout, " of job 7 on n1, ended ") || recorded(t, state) != 3 {
		t.Errorf("a dry run: status %d, %q", code, stdout)
	}
	code, stdout, stderr := db(t, "forget", "--socket", socket, "--job", "7", "--out", file)
	if code != exitDone || stdout != "taken out of the records: 1 run of 1 job\n" || stderr != "" ||
		recorded(t, state) != 2 {
		t.Errorf("status %d, %q, %q", code, stdout, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"job_id":7`) {
		t.Errorf("what went is written as %s, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"again": {
			[]string{"forget", "--socket", socket, "--job", "7", "--out", file + "2"},
			exitFailed,
			"no such run is recorded",
		},
		"over a file": {
			[]string{"forget", "--socket", socket, "--job", "8", "--out", file}, exitFailed, "file exists",
		},
		"without a word": {[]string{"forget", "--socket", socket}, exitUsage, "which runs are meant?"},
		"since nonsense": {
			[]string{"forget", "--socket", socket, "--job", "8", "--since", "x"},
			exitUsage,
			"--since x, want a time",
		},
		"nobody answers": {
			[]string{"forget", "--socket", socket + "none", "--job", "8"}, exitUnreachable, "can't reach epd",
		},
		"no file": {[]string{"remember", "--socket", socket}, exitUsage, "takes a file"},
		"another file": {
			[]string{"remember", "--socket", socket, "forget_test.go"},
			exitFailed,
			"forget_test.go:1: want a run as epd db forget writes it",
		},
		"before they began": {
			[]string{"forget", "--socket", socket, "--node", "n1", "--until", "2020-01-01"},
			exitFailed,
			"no such run is recorded",
		},
	} {
		if code, _, stderr := db(t, c.args...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: status %d, %q", name, code, stderr)
		}
	}
	if _, err := os.Stat(file + "2"); err == nil {
		t.Error("an empty file was left")
	}
	if recorded(t, state) != 2 {
		t.Error("something else went")
	}
	code, stdout, _ = db(t, "remember", "--socket", socket, "--dry-run", file)
	if code != exitDone || !strings.HasPrefix(stdout, "would put back into the records run ") {
		t.Errorf("a dry run: status %d, %q", code, stdout)
	}
	for _, want := range []string{"1 run", "0 runs"} {
		if code, stdout, stderr = db(t, "remember", "--socket", socket, file); code != exitDone ||
			stdout != "put back into the records: "+want+"\n" || recorded(t, state) != 3 {
			t.Errorf("status %d, %q, %q", code, stdout, stderr)
		}
	}
	code, stdout, stderr = db(t, "forget", "--socket", socket, "--node", "n1")
	if code != exitDone || strings.Count(stdout, "\n") != 3 ||
		stderr != "taken out of the records: 3 runs of 3 jobs\n" || recorded(t, state) != 0 {
		t.Errorf("status %d, %q, %q", code, stdout, stderr)
	}
}
