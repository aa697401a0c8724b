package main

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// product is the folder in which the tests find epplan.
var product string

// withProduct builds epplan for tests.
type withProduct struct{ m *testing.M }

// Run builds it and runs the tests.
func (w withProduct) Run() int {
	dir, err := os.MkdirTemp("", "epplan")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	product = dir
	build := exec.CommandContext(context.Background(),
		"go",
		"build",
		"-o",
		filepath.Join(dir, "epplan"),
		"../epplan",
	)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	if err := os.Setenv("PATH", dir+":"+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	return w.m.Run()
}

// TestMain lets scripts run the program as epplab, and the product as epplan.
func TestMain(m *testing.M) {
	shareddata.ShortTemp()
	testscript.Main(withProduct{m}, map[string]func(){"epplab": main})
}

// anApp returns the program's commands.
func anApp() *cli.App {
	p := newProgram()
	return p.App(p.NewTerminal(strings.NewReader(""), io.Discard, io.Discard))
}

// underTest returns the program with its book.
func underTest() *commandtest.Program {
	return &commandtest.Program{
		Name: "epplab", App: anApp, Run: newProgram().Run, Page: "lab/docs/cli.md",
		Package: "cmd/epplab", Path: []string{standIns()}, Update: *update, Prepared: map[string][]string{
			"lab/docs/cli.md": {
				`epplab generate openb --nodes 10 --seed 2 stream && mv stream/*.csv . && rm -r stream`,
				`awk -F, 'BEGIN {print "seq,pod_row,name"} NR > 1 && NR < 30 {print NR - 2 "," NR - 2 "," $1}' pods.csv | gzip > arrivals.csv.gz`,
				`awk 'NR == 1 {print "rank," $0} NR > 1 {print NR - 2 "," $0}' nodes.csv > order.csv`,
			},
			"lab/docs/sweep-on-slurm.md": {`epplab generate openb --nodes 6 --tasks 30 demo`},
			"lab/docs/placement.md": {
				`epplab generate openb --nodes 20 --seed 1 openb`,
				`cp openb/pods.csv openb/openb_pod_list_default.csv`,
				`awk -F, -v OFS=, 'NR == 1 {print $0, "energy_weight"} NR > 1 {print $0, 1 + NR % 2}' openb/nodes.csv > two-sites.csv`,
			},
		},
	}
}

// standIns returns the folder of stand-ins of Slurm's commands.
func standIns() string {
	dir, err := filepath.Abs("../epplan/testdata/standin")
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
			env.Setenv("STANDINS", standIns())
			env.Setenv("PATH", product+":"+env.Getenv("PATH"))
			return commandtest.CopyExamples(t, env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": commandtest.Status,
			"flood":  underTest().Flood,
		},
	})
}

func TestTheCommandPageListsEveryCommandWithItsFlags(t *testing.T) { underTest().CommandPage(t) }

func TestEveryExampleOfTheHelpWorksAsTyped(t *testing.T) { underTest().ExamplesWork(t) }

func TestEveryCommandHasItsExampleInAScript(t *testing.T) { underTest().ExamplesInScripts(t) }

func TestConsoleBlocksShowWhatCommandsPrint(t *testing.T) {
	underTest().ConsoleBlocks(t, doctest.Claim(t, "lab"))
}

// inProcess runs the program in the test's own process.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return underTest().InProcess(t, args...)
}

// wantInterrupted runs the program with a context that is done, and returns what was printed.
func wantInterrupted(t *testing.T, args ...string) string {
	t.Helper()
	return underTest().WantInterrupted(commandtest.Cancelled(t), t, strings.NewReader(""), args...)
}
