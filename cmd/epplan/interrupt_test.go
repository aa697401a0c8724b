package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

func TestAnInterruptedPlanLeavesTheOldPictureAlone(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	picture := filepath.Join(dir, "plan.svg")
	if err := os.WriteFile(picture, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout := wantInterrupted(t, "plan", "testdata/tasks.csv",
		"--cluster", "paper", "--svg", picture)
	text, err := os.ReadFile(picture)
	if stdout != "" || err != nil || string(text) != "old" {
		t.Errorf("printed %q, picture %q, %v", stdout, text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestAnInterruptedComparisonPrintsNothing(t *testing.T) {
	if stdout := wantInterrupted(t, "compare", "testdata/tasks.csv",
		"--cluster", "paper"); stdout != "" {
		t.Errorf("printed %q", stdout)
	}
}

func TestInputThatNeverComesCanBeInterrupted(t *testing.T) {
	in, silent := io.Pipe()
	t.Cleanup(func() { _ = silent.Close() })
	underTest().WantInterrupted(commandtest.Cancelled(t), t, in, "plan", "-", "--cluster", "paper")
}

// unread is more than a pipe holds: once it is written, somebody reads it.
const unread = 1 << 20

func TestCtrlCEndsTheProgramWithinASecond(t *testing.T) {
	const tries = 10
	for i := range tries {
		took := interrupted(t)
		if took <= commandtest.Soon {
			return
		}
		t.Logf("attempt %d: ended after %v", i, took) // the machine may be busy with something else
	}
	t.Errorf("ended after more than %v at each of %d attempts", commandtest.Soon, tries)
}

// interrupted starts the program, interrupts it while it reads, and returns how long
// it took to end.
func interrupted(t *testing.T) (took time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "epplan", "plan", "-", "--cluster", "paper")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "id,runtime_s\n"); err != nil {
		t.Fatal(err)
	}
	for i := range unread / len("100000,1\n") {
		if _, err := fmt.Fprintf(in, "%d,1\n", 100000+i); err != nil {
			t.Fatal(err)
		}
	}
	started := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	took = time.Since(started)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != terminal.ExitInterrupted {
		t.Errorf("ended after %v with %v: %s", took, err, &stderr)
	}
	if stdout.Len() > 0 {
		t.Errorf("printed %q", &stdout)
	}
	return took
}

func TestWorkInProgressStopsWithinASecond(t *testing.T) {
	tasks := filepath.Join(t.TempDir(), "tasks.csv")
	header, rows, _ := strings.Cut(commandtest.ReadPage(t, "testdata/tasks.csv"), "\n")
	var text strings.Builder
	text.WriteString(header + "\n")
	for i := range 200 {
		for row := range strings.Lines(rows) {
			text.WriteString(strconv.Itoa(1000+i) + row)
		}
	}
	if err := os.WriteFile(tasks, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	commandtest.Stops(t.Context(), t, 50*time.Millisecond, func(ctx context.Context) {
		var out, errs bytes.Buffer
		code := run(ctx,
			[]string{"epplan", "compare", tasks, "--cluster", "paper", "--gpus-per-node", "1,2,4,8,16"},
			strings.NewReader(""), &out, &errs)
		nothing := code == terminal.ExitInterrupted && out.Len() == 0
		if some := code == terminal.ExitDone &&
			strings.Contains(out.String(), unfinishedRow); !nothing &&
			!some {
			t.Errorf("exit status %d, %q, %q", code, &out, &errs)
		}
	})
}
