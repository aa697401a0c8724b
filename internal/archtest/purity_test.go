package archtest

import (
	"fmt"
	"go/types"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// pureRooms are the folders whose packages are pure.
var pureRooms = []string{"dvfsmodel", "queue", "planner", "spelling", "internal/heap", "internal/textfile"}

// impureDirect are the packages that a pure package doesn't import itself,
// each with what lies below it.
var impureDirect = []string{
	"C", "crypto/rand", "database/sql", "io/ioutil", "log", "net", "os", "plugin", "syscall", "testing",
}

// impureBelow are the packages that nothing below a pure package imports
// either. os isn't among them: fmt itself imports it.
var impureBelow = []string{"database/sql", "net", "os/exec", "os/user", "plugin", "runtime/cgo"}

// impureUses are the functions that a pure package doesn't mention, by import
// path. They read the wall clock, draw on a global random source, or use the
// process's own streams.
var impureUses = map[string][]string{
	"context": {
		"WithDeadline", "WithDeadlineCause", "WithTimeout", "WithTimeoutCause",
	},
	"fmt":          {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"hash/maphash": {"Bytes", "Comparable", "MakeSeed", "String"},
	"time": {
		"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
	},
}

// randConstructors are the package-level functions of math/rand and
// math/rand/v2 that don't draw on the global source.
var randConstructors = []string{"New", "NewChaCha8", "NewPCG", "NewSource", "NewZipf"}

func isPure(room string) bool {
	return slices.ContainsFunc(pureRooms, func(folder string) bool { return inRoom(room, folder) })
}

func isBelowAny(importPath string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return inRoom(importPath, p) })
}

// impureImports names each import of a pure package that purity forbids.
func impureImports(m module) []string {
	var found []string
	for _, p := range m.own {
		room := m.room(p.ImportPath)
		if !isPure(room) {
			continue
		}
		for _, imported := range p.Imports {
			if isBelowAny(imported, impureDirect) {
				found = append(found, fmt.Sprintf("%s is pure and imports %s", room, imported))
			}
		}
	}
	return found
}

// impureDeps names each package below a pure one that is impure or uses cgo.
func impureDeps(m module) []string {
	var found []string
	for _, p := range m.own {
		room := m.room(p.ImportPath)
		if !isPure(room) {
			continue
		}
		if len(p.CgoFiles) > 0 {
			found = append(found, room+" is pure and uses cgo")
		}
		for _, dep := range p.Deps {
			switch {
			case isBelowAny(dep, impureBelow):
				found = append(found, fmt.Sprintf("%s is pure and depends on %s", room, dep))
			case len(m.all[dep].CgoFiles) > 0:
				found = append(found, fmt.Sprintf("%s is pure and depends on %s, which uses cgo", room, dep))
			}
		}
	}
	return found
}

// loadTyped type-checks packages of the module at root, without their tests.
func loadTyped(t *testing.T, root, pattern string) []*packages.Package {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(),
		Dir:     root,
		Env:     append(os.Environ(), "GOWORK=off"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		for _, problem := range p.Errors {
			t.Fatalf("%s: %v", p.PkgPath, problem)
		}
	}
	return loaded
}

// impureMentions names each place of a pure package that calls, or takes the
// value of, a function that purity forbids.
func impureMentions(modulePath string, loaded []*packages.Package) []string {
	var found []string
	for _, p := range loaded {
		room := strings.TrimPrefix(p.PkgPath, modulePath+"/")
		if !isPure(room) {
			continue
		}
		for ident, object := range p.TypesInfo.Uses {
			if name, forbidden := forbiddenUse(object); forbidden {
				found = append(found,
					fmt.Sprintf("%s: pure package uses %s", p.Fset.Position(ident.Pos()), name))
			}
		}
	}
	slices.Sort(found)
	return found
}

// forbiddenUse names the object and reports whether pure code must not use it.
func forbiddenUse(object types.Object) (name string, forbidden bool) {
	function, ok := object.(*types.Func)
	if !ok || function.Pkg() == nil || function.Signature().Recv() != nil {
		return "", false
	}
	from := function.Pkg().Path()
	name = path.Base(from) + "." + function.Name()
	if from == "math/rand" || from == "math/rand/v2" {
		return "the global source of " + from + ", by " + name, !slices.Contains(randConstructors,
			function.Name())
	}
	return name, slices.Contains(impureUses[from], function.Name())
}

func TestPurePackagesImportNothingImpure(t *testing.T) {
	m := thisModule(t)
	requireRooms(t, m, pureRooms...)
	report(t, impureImports(m))
}

func TestNothingBelowPurePackagesReachesTheNetworkADatabaseAProcessOrCgo(t *testing.T) {
	m := thisModule(t)
	requireRooms(t, m, pureRooms...)
	report(t, impureDeps(m))
}

func TestPurePackagesUseNeitherTheWallClockNorAGlobalRandomSource(t *testing.T) {
	requireRooms(t, thisModule(t), pureRooms...)
	report(t, impureMentions(modulePath, loadTyped(t, rootDir(t), "./...")))
}

func TestAnImpureImportIsFound(t *testing.T) {
	m := newModule(fixturePath, "", []pkg{
		{
			ImportPath: fixturePath + "/queue", Imports: []string{
				"fmt", "os", "net/url", "log/slog", "osmosis",
			},
		},
		{ImportPath: fixturePath + "/planner/pick", Imports: []string{"os/exec", "math/rand/v2"}},
		{ImportPath: fixturePath + "/config", Imports: []string{"os"}},
	})
	wantViolations(t, impureImports(m),
		"queue is pure and imports os", "imports net/url", "imports log/slog",
		"planner/pick is pure and imports os/exec")
}

func TestAnImpureDependencyIsFound(t *testing.T) {
	m := newModule(fixturePath, "", []pkg{
		{ImportPath: fixturePath + "/queue", Deps: []string{"fmt", "os", "example.org/c", "example.org/sub"}},
		{ImportPath: fixturePath + "/planner", Deps: []string{"net", "database/sql/driver"}},
		{ImportPath: fixturePath + "/dvfsmodel", CgoFiles: []string{"fast.go"}},
		{ImportPath: fixturePath + "/slurm", Deps: []string{"net", "os/exec"}},
		{ImportPath: "example.org/c", CgoFiles: []string{"c.go"}},
		{ImportPath: "example.org/sub"},
	})
	wantViolations(t, impureDeps(m),
		"queue is pure and depends on example.org/c, which uses cgo",
		"planner is pure and depends on net", "depends on database/sql/driver",
		"dvfsmodel is pure and uses cgo")
}

// The go command itself must report cgo and indirect dependencies: with cgo
// disabled, or without -deps, both rules would see nothing.
func TestCgoAndTheNetworkAreSeenThroughAnotherPackage(t *testing.T) {
	m := listModule(t, fixturePath, build(t, `
-- queue/queue.go --
package queue

import _ "example.org/house/internal/deep"
-- internal/deep/deep.go --
package deep

import "C"

import _ "net/http"
`))
	got := impureDeps(m)
	for _, want := range []string{"internal/deep, which uses cgo", "depends on net/http"} {
		if !slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, want) }) {
			t.Errorf("no violation with %q in %q", want, got)
		}
	}
}

func TestAnImpureUseIsFoundWhateverTheImportIsCalled(t *testing.T) {
	root := build(t, `
-- queue/queue.go --
package queue

import (
	"context"
	dice "math/rand/v2"
	clock "time"
)

var now = clock.Now

func age(t clock.Time) clock.Duration { return clock.Since(t) }

func draw() float64 { return dice.Float64() }

func seeded() float64 { return dice.New(dice.NewPCG(1, 2)).Float64() }

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, clock.Second)
}

func later(t clock.Time) clock.Time { return t.Add(clock.Minute) }
-- config/config.go --
package config

import "time"

var now = time.Now
`)
	wantViolations(t, impureMentions(fixturePath, loadTyped(t, root, "./...")),
		"queue.go:9:17: pure package uses time.Now",
		"time.Since",
		"the global source of math/rand/v2, by v2.Float64",
		"context.WithTimeout")
}
