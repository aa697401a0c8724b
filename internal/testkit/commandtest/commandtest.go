// Package commandtest tests a program of commands: its scripts, its page of commands, the examples of its
// help and the console blocks of its book.
package commandtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/cputime"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"
)

// Program is the program under test, and its book.
type Program struct {
	Name    string
	App     func() *cli.App
	Run     func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int
	Page    string // of commands, by its path in the project
	Package string // the folder of its tests, by its path in the project
	// Prepared are command lines that make what a page takes for granted, beside the files of every page.
	Prepared map[string][]string
	// Path is the folders that are before PATH for examples and console blocks.
	Path   []string
	Update bool // rewrite what is expected
}

// InProcess runs the program in the test's own process.
func (p *Program) InProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = p.Run(t.Context(), append([]string{p.Name}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// CopyExamples puts the files that examples name into a folder.
func CopyExamples(tb testing.TB, dir string) error {
	tb.Helper()
	root := shareddata.Root(tb)
	site := filepath.Join(dir, "site")
	if err := os.MkdirAll(site, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(site, "slurm.conf"),
		[]byte("ClusterName=example\nPrologFlags=Contain\n"), 0o600); err != nil {
		return err
	}
	for _, from := range []string{
		filepath.Join(root, "cmd/epplan/testdata"), filepath.Join(root, "cmd/epplab/testdata"),
		filepath.Join(root, "testdata/demo"),
	} {
		names, err := filepath.Glob(filepath.Join(from, "*.[ct][so][vm]*"))
		if err != nil {
			return err
		}
		for _, pattern := range []string{
			"*.sh", "sacct.txt", "change.txt", "smi.txt", "nodes.txt", "*.swf", "consolidate.json", "profiles.json",
		} {
			others, err := filepath.Glob(filepath.Join(from, pattern))
			if err != nil {
				return err
			}
			names = append(names, others...)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if err := writeNew(filepath.Join(dir, filepath.Base(name)), text); err != nil {
				return err
			}
		}
	}
	code := os.DirFS(filepath.Join(root, "cmd/epplab/testdata/code"))
	if err := os.CopyFS(filepath.Join(dir, "code"), code); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples")))
}

// writeNew writes a file that isn't there yet: a script's own file of that name
// would never be read.
func writeNew(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// Status is the script command
//
//	status CODE PROGRAM ARGUMENTS…
//
// which runs a program and wants its exit status.
func Status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE PROGRAM ARGUMENTS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// Soon is how fast an interrupted command must have stopped.
const Soon = time.Second

// InTime tries until one attempt takes no longer than it may: a machine that is busy
// with something else may slow any of them down, a program that is too slow is so at
// each. What else an attempt checks must be right each time.
func InTime(t *testing.T, most time.Duration, attempt func()) {
	t.Helper()
	const tries = 10
	for range tries {
		began := time.Now()
		attempt()
		took := time.Since(began)
		if took <= most || t.Failed() {
			return
		}
		t.Logf("it took %v", took)
	}
	t.Errorf("it took more than %v at each of %d attempts", most, tries)
}

// Stops wants an attempt to end soon after its context does, which it has for a while. What counts is the
// processor's time: on a machine that is busy with something else each attempt takes long by the clock.
func Stops(
	ctx context.Context, t *testing.T, before time.Duration, attempt func(ctx context.Context),
) {
	t.Helper()
	const waits = 30 * time.Second // rather than works
	ctx, cancel := context.WithTimeout(ctx, before)
	defer cancel()
	began, used := time.Now(), cputime.Used(t)
	attempt(ctx)
	took := time.Since(began) - before
	if used = cputime.Used(t) - used; took > Soon && used > before+Soon || took > waits {
		t.Errorf("ended %v after it was to stop, of which it worked for at most %v", took, used)
	}
}

// WantInterrupted runs the program with a context that is done, and wants it to stop soon. It returns what
// was printed.
func (p *Program) WantInterrupted(
	ctx context.Context,
	t *testing.T,
	stdin io.Reader,
	args ...string,
) (stdout string) {
	t.Helper()
	<-ctx.Done()
	Stops(ctx, t, 0, func(ctx context.Context) {
		var out, errs bytes.Buffer
		code := p.Run(ctx, append([]string{p.Name}, args...), stdin, &out, &errs)
		if code != terminal.ExitInterrupted || errs.String() != "error: interrupted\n" {
			t.Errorf("exit status %d, %q, want %d and that it was interrupted", code, errs.String(),
				terminal.ExitInterrupted)
		}
		stdout += out.String()
	})
	return stdout
}

// Cancelled returns a context that is done.
func Cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// WantKeys wants an object of JSON to have keys.
func WantKeys(t *testing.T, what string, object map[string]any, keys []string) {
	t.Helper()
	for _, key := range keys {
		if _, ok := object[key]; !ok {
			t.Errorf("%s has no %q, only %q", what, key, slices.Sorted(maps.Keys(object)))
		}
	}
}

// WantStopped has a command run for a while, and wants it to stop soon after.
func (p *Program) WantStopped(t *testing.T, before time.Duration, args ...string) {
	t.Helper()
	Stops(t.Context(), t, before, func(ctx context.Context) {
		var out, errs bytes.Buffer
		if code := p.Run(ctx, append([]string{p.Name}, args...), strings.NewReader(""), &out,
			&errs); code != terminal.ExitInterrupted || out.Len() > 0 {
			t.Errorf("exit status %d, %q, %q", code, &out, &errs)
		}
	})
}

// A flood is a gigabyte in one line. It must be refused from its beginning,
// and with little memory.
const (
	floodBytes   = 1 << 30
	floodRead    = 16 << 20
	floodAlloced = 64 << 20
)

// Flood is the script command
//
//	flood TEXT ARGUMENTS…
//
// which runs the program with a standard input that is TEXT, with \n for line
// ends, followed by a gigabyte of the letter x. The program must fail, and soon.
func (p *Program) Flood(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: flood TEXT ARGUMENTS…")
	}
	start := strings.ReplaceAll(args[0], `\n`, "\n")
	in := &counter{in: io.MultiReader(strings.NewReader(start), io.LimitReader(letters{}, floodBytes))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code := p.Run(context.Background(), append([]string{p.Name}, args[1:]...), in, ts.Stdout(), ts.Stderr())
	runtime.ReadMemStats(&after)
	if code != terminal.ExitFailed {
		ts.Fatalf("exit status %d, want %d", code, terminal.ExitFailed)
	}
	if in.read > floodRead {
		ts.Fatalf("%d bytes were read, want at most %d", in.read, floodRead)
	}
	if alloced := after.TotalAlloc - before.TotalAlloc; alloced > floodAlloced {
		ts.Fatalf("%d bytes were allocated, want at most %d", alloced, floodAlloced)
	}
}

// letters is an endless line.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{'x'}, min(len(p), 1<<16))), nil
}

// counter counts what is read.
type counter struct {
	in   io.Reader
	read int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.read += n
	return n, err
}
