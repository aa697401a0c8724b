package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// TestMain lets scripts run the program as epplan.
func TestMain(m *testing.M) {
	shareddata.ShortTemp()
	testscript.Main(withEPD{m}, map[string]func(){"epplan": main})
}

// anApp returns the program's commands.
func anApp() *cli.App {
	p := newProgram()
	return p.app(p.newTerminal(strings.NewReader(""), io.Discard, io.Discard))
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ESC", "\x1b")
			env.Setenv("EPPLAN_SOCKET", os.Getenv("EPPLAN_SOCKET"))
			env.Setenv("EPPLAN_SUBMIT_SOCKET", os.Getenv("EPPLAN_SUBMIT_SOCKET"))
			env.Setenv("RLO", "\u202e")
			env.Setenv("ZWSP", "\u200b")
			env.Setenv("STANDINS", standIns())
			return copyExamples(env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status,
			"flood":  flood,
		},
	})
}

// copyExamples puts the files that examples name into a folder.
func copyExamples(dir string) error {
	site := filepath.Join(dir, "site")
	if err := os.MkdirAll(site, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(site, "slurm.conf"),
		[]byte("ClusterName=example\nPrologFlags=Contain\n"), 0o600); err != nil {
		return err
	}
	for _, from := range []string{"testdata", "../../testdata/demo"} {
		names, err := filepath.Glob(filepath.Join(from, "*.[ct][so][vm]*"))
		if err != nil {
			return err
		}
		for _, pattern := range []string{"*.sh", "sacct.txt", "smi.txt", "*.swf", "consolidate.json"} {
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
	return os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples"))
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

// status is the script command
//
//	status CODE PROGRAM ARGUMENTS…
//
// which runs a program and wants its exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
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

// A flood is a gigabyte in one line. It must be refused from its beginning,
// and with little memory.
const (
	floodBytes   = 1 << 30
	floodRead    = 16 << 20
	floodAlloced = 64 << 20
)

// flood is the script command
//
//	flood TEXT ARGUMENTS…
//
// which runs the program with a standard input that is TEXT, with \n for line
// ends, followed by a gigabyte of the letter x. The program must fail, and soon.
func flood(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: flood TEXT ARGUMENTS…")
	}
	start := strings.ReplaceAll(args[0], `\n`, "\n")
	in := &counter{in: io.MultiReader(strings.NewReader(start), io.LimitReader(letters{}, floodBytes))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code := run(context.Background(), append([]string{"epplan"}, args[1:]...), in, ts.Stdout(), ts.Stderr())
	runtime.ReadMemStats(&after)
	if code != exitFailed {
		ts.Fatalf("exit status %d, want %d", code, exitFailed)
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

// inProcess runs the program in the test's own process.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"epplan"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}
