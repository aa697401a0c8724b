package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// TestNothingOfALogThatEndsInTheMiddleIsStored is of a log with more jobs than a
// message to epd holds, which breaks off after them.
func TestNothingOfALogThatEndsInTheMiddleIsStored(t *testing.T) {
	const jobs = 1500
	var log strings.Builder
	log.WriteString("{\"jobs\": [\n")
	for id := range jobs {
		fmt.Fprintf(
			&log,
			`{"job_id": %d, "cluster": "halves", "user": "ada", "nodes": "n1", "state": {"current": ["COMPLETED"]}, `+
				`"time": {"submission": 1767225600, "start": 1767225600, "end": 1767229200}},`+"\n",
			id+1,
		)
	}
	socket := os.Getenv("EPPLAN_SOCKET")
	name := filepath.Join(t.TempDir(), "log.json")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(log.String())
	code, _, stderr := inProcess(t, "import", "sacct", name, "--socket", socket)
	if want := fmt.Sprintf("error: %s:%d:1: jobs[%d]: output ends in the middle\n", name, jobs+2,
		jobs); code != terminal.ExitFailed || stderr != want {
		t.Errorf("exit status %d, %q, want %d, %q", code, stderr, terminal.ExitFailed, want)
	}
	put(strings.TrimSuffix(log.String(), ",\n") + "\n]}\n")
	code, stdout, stderr := inProcess(t, "import", "sacct", name, "--socket", socket)
	if want := "1,500 in epd of cluster alpha, 1,500 of them new"; code != terminal.ExitDone ||
		!strings.Contains(stdout, want) {
		t.Errorf("exit status %d, %s%s, want %q", code, stdout, stderr, want)
	}
}
