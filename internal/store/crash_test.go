package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/epplan/epplan/internal/store"
)

// crashDB tells the child of the crash test which database to write.
const crashDB = "EPPLAN_TEST_CRASH_DB"

// TestMain runs the tests, or is the child of the crash test.
func TestMain(m *testing.M) {
	if path := os.Getenv(crashDB); path != "" {
		fmt.Fprintln(os.Stderr, storeUntilKilled(path))
		os.Exit(1)
	}
	if path := os.Getenv(copyDB); path != "" {
		fmt.Fprintln(os.Stderr, copyUntilKilled(path, os.Getenv(copySource)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// storeUntilKilled stores outcomes and prints the number of each that was
// acknowledged; it ends only when something fails.
func storeUntilKilled(path string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	failed := make(chan error)
	var next atomic.Int64
	for range 8 {
		go func() {
			for {
				i := int(next.Add(1))
				if _, err := s.PutOutcome(ctx, outcome(i)); err != nil {
					failed <- err
				}
				// One write per line: lines of several goroutines don't mix.
				_, _ = fmt.Fprintf(os.Stdout, "acknowledged %d\n", i)
			}
		}()
	}
	return <-failed
}

// runAndKill runs the child until it has printed so many lines, kills it, and
// adds all that it acknowledged.
func runAndKill(t *testing.T, path string, lines int, acknowledged map[int]bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), crashDB+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	text := bufio.NewScanner(out)
	for n := 0; text.Scan(); n++ { // to the end: what was printed was acknowledged
		if i, ok := nullableNumber(text.Text()); ok {
			acknowledged[i] = true
		}
		if n == lines {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if child.Wait() == nil {
		t.Fatal("the child ended by itself")
	}
}

func TestEverythingAcknowledgedIsThereAfterKill(t *testing.T) {
	path := filepath.Join(tempDir(t), "epd.db")
	acknowledged := map[int]bool{}
	for round := range 8 {
		runAndKill(t, path, 50+73*round, acknowledged)
		s, err := store.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range acknowledged {
			put(t, s, outcome(i), store.Repeated)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
			t.Fatalf("round %d: Check found %q, %v", round, found, err)
		}
	}
	if len(acknowledged) < 500 {
		t.Errorf("only %d outcomes were acknowledged", len(acknowledged))
	}
}

// nullableNumber returns the number of an acknowledged outcome.
func nullableNumber(line string) (int, bool) {
	var digits string
	if _, err := fmt.Sscanf(line, "acknowledged %s", &digits); err != nil {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil
}
