package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// modulePath is this module's path.
const modulePath = "github.com/epplan/epplan"

// pkg is what the rules need to know of a package, as `go list -json` says it.
type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	Standard   bool
	GoFiles    []string
	CgoFiles   []string
	Imports    []string // direct, without those of tests
	Deps       []string // direct and indirect

	TestImports, XTestImports []string // those of tests
}

// module is a module's own packages, and everything below them by import path.
type module struct {
	path string
	root string
	own  []pkg
	all  map[string]pkg
}

// room returns a package's folder below the module's root, "" for one that isn't
// the module's own.
func (m module) room(importPath string) string {
	room, ok := strings.CutPrefix(importPath, m.path+"/")
	if !ok {
		return ""
	}
	return room
}

// inRoom reports whether a room is the named folder or lies below it.
func inRoom(room, folder string) bool {
	return room == folder || strings.HasPrefix(room, folder+"/")
}

// rootDir is this module's root folder. It reads the folders below it, because
// `go test` repeats a cached result until something changes that the test
// itself has opened, and doesn't notice what the go command opens for it.
func rootDir(t *testing.T) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("no caller information")
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", ".cache", "bin"}, entry.Name()) {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// goCommand runs the go command in a module's root, with cgo on or off.
func goCommand(t *testing.T, root, cgo string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "GOWORK=off")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// listModule lists the packages of the module at root and all they depend on,
// with cgo enabled: only then does the list tell who would use it.
func listModule(t *testing.T, path, root string) module {
	t.Helper()
	out, err := goCommand(t, root, "1", "list", "-deps",
		"-json=ImportPath,Name,Dir,Standard,GoFiles,CgoFiles,Imports,Deps", "./...")
	if err != nil {
		t.Fatal(err)
	}
	var listed []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, p)
	}
	return newModule(path, root, listed)
}

// newModule sorts listed packages into the module's own and the others.
func newModule(path, root string, listed []pkg) module {
	m := module{path: path, root: root, all: make(map[string]pkg, len(listed))}
	for _, p := range listed {
		m.all[p.ImportPath] = p
		if m.room(p.ImportPath) != "" {
			m.own = append(m.own, p)
		}
	}
	return m
}

// thisModule lists this module.
func thisModule(t *testing.T) module {
	t.Helper()
	return listModule(t, modulePath, rootDir(t))
}

// programs lists the rooms that the programs reach.
func (m module) programs() []string {
	rooms := make(map[string]bool)
	for _, p := range m.own {
		if p.Name == "main" {
			for _, dep := range append(p.Deps, p.ImportPath) {
				rooms[m.room(dep)] = true
			}
		}
	}
	delete(rooms, "")
	return slices.Sorted(maps.Keys(rooms))
}

// report fails the test with each violation.
func report(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// wantViolations checks that exactly the wanted violations were found, each
// known by a part of its text.
func wantViolations(t *testing.T, got []string, want ...string) {
	t.Helper()
	for _, part := range want {
		if !slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, part) }) {
			t.Errorf("no violation with %q", part)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d violations, want %d", len(got), len(want))
	}
	if t.Failed() {
		t.Logf("violations:\n%s", strings.Join(got, "\n"))
	}
}

// requireRooms fails the test when the module lacks a room that a rule is
// about, so that no rule holds for want of a subject.
func requireRooms(t *testing.T, m module, rooms ...string) {
	t.Helper()
	for _, room := range rooms {
		if _, ok := m.all[m.path+"/"+room]; !ok {
			t.Fatalf("the module has no package %s", room)
		}
	}
}
