package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"
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
	return p.App(p.NewTerminal(strings.NewReader(""), io.Discard, io.Discard))
}

// underTest returns the program with its book.
func underTest() *commandtest.Program {
	return &commandtest.Program{
		Name: "epplan", App: anApp, Run: run, Page: "docs/cli.md", Package: "cmd/epplan",
		Prepared: prepared, Path: []string{standIns()}, Update: *update,
	}
}

// inProcess runs the program in the test's own process.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return underTest().InProcess(t, args...)
}

// standIns returns the folder of the stand-ins.
func standIns() string {
	dir, err := filepath.Abs("testdata/standin")
	if err != nil {
		panic(err)
	}
	return dir
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
			return commandtest.CopyExamples(t, env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": commandtest.Status,
			"flood":  underTest().Flood,
		},
	})
}

// wantInterrupted runs the program with a context that is done, and returns what was printed.
func wantInterrupted(t *testing.T, args ...string) string {
	t.Helper()
	return underTest().WantInterrupted(commandtest.Cancelled(t), t, strings.NewReader(""), args...)
}
