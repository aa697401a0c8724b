package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

// touching are the commands that touch Slurm, a GPU, or what epd knows, each with
// arguments by which it would, and what it says then.
var touching = map[string]struct{ args, says []string }{
	"epplan restore": {
		nil, []string{
			"would give the clocks of GPU-374708ff-f771-9dd5-979e-c875d56cd228 back, now core 1087 " +
				"locked at 1087 MHz",
		},
	},
	"epplan prolog": {
		nil, []string{"would tell epd at ", "of the prolog of job 7 on n1 with 2 GPUs (0, 1)"},
	},
	"epplan epilog": {
		nil, []string{"would tell epd at ", "of the epilog of job 7 on n1 with 2 GPUs (0, 1)"},
	},
	"epplan levers": {[]string{"--undo"}, []string{"would take back 1 job behind others by its Nice"}},
	"epplan reload": {
		nil, []string{"would have epd read its configuration again, now 5f1c09d2a7b3 is in force"},
	},
	"epplan budget set": {
		[]string{"4kW", "--until", "+2h"}, []string{"would set a budget: 4000 W for cluster from "},
	},
	"epplan budget cancel": {[]string{"4f7k2m9q"}, []string{"would cancel event 4f7k2m9q"}},
	"epplan suspend": {
		[]string{"n[1-2]", "--run", "DIR/run"}, []string{
			"would run DIR/run n1", "would run DIR/run n2", "would tell epd of the suspend of n1, n2",
		},
	},
	"epplan resume": {
		[]string{"n1", "--run", "DIR/run"}, []string{
			"would run DIR/run n1", "would tell epd of the resume of n1",
		},
	},
	"epplan submit": {
		[]string{"DIR/job.sh", "--", "--gres=gpu:1"}, []string{
			"would tell epd at ", "what the code in 1 file looks like",
			"would run DIR/sbatch --gres=gpu:1 DIR/job.sh",
		},
	},
	"epplan import sacct": {[]string{"DIR/sacct.txt"}, []string{"would store ", " in epd at "}},
	"epplan import swf":   {[]string{"DIR/log.swf"}, []string{"would store ", " in epd at "}},
	"epplan install slurm": {
		[]string{"--dir", "DIR/site", "--no-lua-check"}, []string{"epplan.lua: the hook"},
	},
}

// withoutSocket are those of them that ask no epd.
var withoutSocket = []string{"epplan install slurm"}

func hasDryRun(f cli.Flag) bool { return slices.Contains(f.Names(), "dry-run") }

func TestEveryCommandThatTouchesSomethingHasADryRun(t *testing.T) {
	commands := commandtest.Leaves(anApp().Commands, "epplan")
	for name := range touching {
		if c, ok := commands[name]; !ok || !slices.ContainsFunc(c.Flags, hasDryRun) {
			t.Errorf("%s has no --dry-run", name)
		}
	}
	for name, c := range commands {
		if _, touches := touching[name]; !touches && slices.ContainsFunc(c.Flags, hasDryRun) {
			t.Errorf("%s has a --dry-run, and isn't among the commands that touch anything", name)
		}
	}
}

// touchers are the files with calls that change something elsewhere, and whose
// commands have a dry run for it. Reading the site's scripts by Lua changes
// nothing.
var touchers = map[string][]string{
	"hooks.go":    {"Hook", "Restore", "CommandContext"},
	"install.go":  {"CommandContext", "WriteSteps", "TouchScript"},
	"levers.go":   {"UndoLevers"},
	"reload.go":   {"Reload"},
	"budget.go":   {"Post"},
	"power.go":    {"Power", "CommandContext"},
	"submit.go":   {"Submit", "Announce", "CommandContext"},
	"import.go":   {"AddHistory"},
	"estimate.go": {"Announce"}, // a question, with what it is about
}

// changing are functions that change something elsewhere: of epdapi's client, of
// package slurm, and os/exec's.
var changing = []string{
	"Hook", "Restore", "Submit", "Announce", "Power", "UndoLevers", "Reload", "AddHistory",
	"UseModel", "Post",
	"WriteSteps", "TouchScript", "Command", "CommandContext", "StartProcess",
}

func TestNothingElseInTheProgramTouchesAnything(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && changes(f, call.Args) &&
				!slices.Contains(touchers[file], f.Sel.Name) {
				t.Errorf("%s calls %s: has its command a --dry-run, and is it in these tables?",
					file, f.Sel.Name)
			}
			return true
		})
	}
}

// changes reports whether a call is one of those that change something. Others
// have such names too, but no context.
func changes(f *ast.SelectorExpr, args []ast.Expr) bool {
	if !slices.Contains(changing, f.Sel.Name) || len(args) == 0 {
		return false
	}
	ctx, named := args[0].(*ast.Ident)
	field, selected := args[0].(*ast.SelectorExpr)
	return named && ctx.Name == "ctx" || selected && field.Sel.Name == "Context" ||
		strings.HasPrefix(f.Sel.Name, "Command") ||
		slices.Contains([]string{"WriteSteps", "TouchScript"}, f.Sel.Name)
}

// watchedEPD returns an epd that says what the fake does, and notes what was more
// than a question.
func watchedEPD(t *testing.T) (socket string, told func() []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "epd") //nolint:usetesting // socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var posted []string
	inner := sayings()
	server := &http.Server{
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				mu.Lock()
				posted = append(posted, r.Method+" "+r.URL.Path)
				mu.Unlock()
			}
			inner.ServeHTTP(w, r)
		}),
	}
	go server.Serve(l) //nolint:errcheck // ends with the test
	t.Cleanup(func() { _ = server.Close() })
	return socket, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(posted)
	}
}

// dryFolder returns a folder with what commands read, and programs that note that
// they ran.
func dryFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := commandtest.CopyExamples(t, dir); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"job.sh": "#!/bin/sh\n#SBATCH --time=5\npython3 train.py\n", "train.py": "print(1)\n",
		"run": "#!/bin/sh\ntouch " + dir + "/ran\n", "sbatch": "#!/bin/sh\ntouch " + dir + "/ran\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Chdir(dir)
	for key, value := range map[string]string{
		"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1",
		"SLURM_JOB_GPUS": "0,1", "SLURM_JOB_UID": "1000",
	} {
		t.Setenv(key, value)
	}
	return dir
}

func TestADryRunSaysWhatItWouldDoAndDoesNothing(t *testing.T) {
	socket, told := watchedEPD(t)
	dir := dryFolder(t)
	before := listing(t, dir)
	for _, name := range slices.Sorted(maps.Keys(touching)) {
		c := touching[name]
		args := strings.Fields(strings.TrimPrefix(name, "epplan "))
		if !slices.Contains(withoutSocket, name) {
			args = append(args, "--socket", socket)
		}
		args = append(args, "--dry-run")
		for _, a := range c.args {
			args = append(args, strings.ReplaceAll(a, "DIR", dir))
		}
		code, out, complaint := inProcess(t, args...)
		if code != terminal.ExitDone {
			t.Errorf("%s: exit status %d: %s", name, code, complaint)
		}
		for _, say := range c.says {
			if say = strings.ReplaceAll(say, "DIR", dir); !strings.Contains(out, say) {
				t.Errorf("%s --dry-run doesn't say %q:\n%s%s", name, say, out, complaint)
			}
		}
		if posted := told(); len(posted) > 0 {
			t.Fatalf("%s --dry-run: epd was told %v", name, posted)
		}
	}
	if after := listing(t, dir); !maps.Equal(before, after) {
		t.Errorf("files were %v and are %v", before, after)
	}
	// Without it the same line does something.
	if code, _, complaint := inProcess(t, "levers", "--undo", "--socket",
		socket); code != terminal.ExitDone ||
		!slices.Equal(told(), []string{"POST /v1/levers/undo"}) {
		t.Errorf("%d %s: told %v", code, complaint, told())
	}
}

// listing returns the files below a folder with their sizes.
func listing(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	found := make(map[string]int64)
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			found[path] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
