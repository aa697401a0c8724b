package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// storeys ranks the rooms: a package imports only what is on its own storey or
// below. A room is ranked by the nearest folder above it that is in this list;
// without one it is a violation: docs/architecture.md and this table say
// together what the rooms are.
var storeys = map[string]int{
	"cmd":               4,
	"packaging":         4,
	"lab":               3,
	"internal":          3,
	"slurm":             3,
	"gpu":               3,
	"config":            3,
	"planner":           2,
	"queue":             1,
	"dvfsmodel":         1,
	"live":              1,
	"spelling":          0,
	"statedir":          0,
	"internal/heap":     0,
	"internal/textfile": 0,
}

// ban says who must not import what, beyond the order of the storeys. The room
// of an import that isn't the module's own is "".
type ban struct {
	what   string
	from   func(room string) bool
	target func(importPath, room string) bool
}

// physics reports whether a room is the one that the planner itself stands on:
// power, time and who is on a GPU that tasks share are the same for the engine
// and for the problem of one moment.
func physics(room string) bool { return inRoom(room, "planner/sharing") }

// apart reports whether a room has algorithms that know GPUs that tasks share,
// but not the planner.
func apart(room string) bool {
	return inRoom(room, "planner/share")
}

// laboratory reports whether a room is of the laboratory, which no site needs.
func laboratory(room string) bool { return inRoom(room, "lab") || inRoom(room, "cmd/epplab") }

// stage reports whether a room has stages of policies, or what they stand on.
func stage(room string) bool {
	return strings.HasPrefix(room, "planner/") && !inRoom(room, "planner/policy")
}

// libraries lists what each library imports of this module beside its own rooms: it has no use for
// the rest of the house.
var libraries = map[string][]string{
	"slurm": {"live", "spelling"},
	"gpu":   {"dvfsmodel", "live", "statedir"},
}

// beyondTheWall names the library that a room is in and that may not import another room.
func beyondTheWall(from, to string) (library string, beyond bool) {
	library, _, _ = strings.Cut(from, "/")
	allowed, is := libraries[library]
	return library, is && to != "" && !inRoom(to, library) && !slices.Contains(allowed, to)
}

// bans are the rules of direction between rooms and about libraries.
var bans = []ban{
	{
		"a job knows its model's coefficients, and dvfsmodel no jobs",
		func(room string) bool { return inRoom(room, "dvfsmodel") },
		func(_, room string) bool { return inRoom(room, "queue") },
	},
	{
		"live knows dvfsmodel at most, and planning doesn't know live",
		func(room string) bool { return inRoom(room, "live") },
		func(_, room string) bool { return inRoom(room, "queue") },
	},
	{
		"live knows dvfsmodel at most, and planning doesn't know live",
		func(room string) bool {
			return inRoom(room, "queue") || inRoom(room, "dvfsmodel") || inRoom(room, "planner")
		},
		func(_, room string) bool { return inRoom(room, "live") },
	},
	{
		"the planner names no algorithm: of what is below planner/ it imports planner/sharing only",
		func(room string) bool { return room == "planner" },
		func(_, room string) bool { return strings.HasPrefix(room, "planner/") && !physics(room) },
	},
	{
		"the planner knows no batches: planner/join makes tasks of jobs",
		func(room string) bool { return room == "planner" },
		func(_, room string) bool { return inRoom(room, "queue") },
	},
	{
		"the physics of shared GPUs are below the planner and all its algorithms",
		physics,
		func(_, room string) bool { return inRoom(room, "planner") && !physics(room) },
	},
	{
		"rules of sharing and correlation don't know the planner",
		apart,
		func(_, room string) bool { return inRoom(room, "planner") && !apart(room) && !physics(room) },
	},
	{
		"the check of plans knows what a plan is, and nothing of what makes one",
		func(room string) bool { return inRoom(room, "planner/check") },
		func(_, room string) bool { return room != "" && room != "planner" && room != "dvfsmodel" },
	},
	{
		"what is proved of all plans knows nothing of what makes one",
		func(room string) bool { return inRoom(room, "planner/bound") },
		func(_, room string) bool {
			return strings.HasPrefix(room, "planner/") && !inRoom(room, "planner/bound") && !physics(room) &&
				!inRoom(room, "planner/steps") // values over time, of nobody's plan
		},
	},
	{
		"who makes plans, or a part of them, doesn't ask the check",
		stage,
		func(_, room string) bool { return inRoom(room, "planner/check") },
	},
	{
		"the registry knows the stages, not they it",
		func(room string) bool {
			return strings.HasPrefix(room, "planner/") && !inRoom(room, "planner/policy")
		},
		func(_, room string) bool { return inRoom(room, "planner/policy") },
	},
	{
		"slurm and config are below internal/, of which they know how names are spelt and text is opened",
		func(room string) bool { return inRoom(room, "slurm") || inRoom(room, "config") },
		func(_, room string) bool {
			return inRoom(room, "internal") && !inRoom(room, "internal/textfile")
		},
	},
	{
		"the product knows nothing of the laboratory: what both need is the product's",
		func(room string) bool { return !laboratory(room) },
		func(_, room string) bool { return laboratory(room) },
	},
	{
		"TOML is parsed in config only",
		func(room string) bool { return !inRoom(room, "config") },
		func(importPath, room string) bool {
			return room == "" && strings.Contains(strings.ToLower(importPath), "toml")
		},
	},
	{
		"the command line is parsed in cmd and in what its programs share only",
		func(room string) bool {
			return !inRoom(room, "cmd") && !inRoom(room, "internal/cli") && !inRoom(room, "lab/jobarray") &&
				!inRoom(room, testkit+"/commandtest")
		},
		func(importPath, _ string) bool {
			return strings.HasPrefix(importPath, "github.com/urfave/cli") || importPath == "flag"
		},
	},
	{
		"what helps tests is for tests only",
		func(room string) bool { return !inRoom(room, testkit) && !inRoom(room, "lab/catstest") },
		func(_, room string) bool { return inRoom(room, testkit) },
	},
}

// testkit has the packages that tests share. They are no part of the product.
const testkit = "internal/testkit"

// wrongImports names each import that goes up a storey, lies in no known room,
// or is banned.
func wrongImports(m module) []string {
	var found []string
	for _, p := range m.own {
		from := m.room(p.ImportPath)
		storey, known := storeyOf(from)
		if !known {
			found = append(found, from+" is in no known room: add it to docs/architecture.md and to storeys")
			continue
		}
		for _, imported := range p.Imports {
			to := m.room(imported)
			if target, ok := storeyOf(to); ok && target > storey {
				found = append(found, fmt.Sprintf("%s imports %s, which is above it", from, to))
			}
			if library, beyond := beyondTheWall(from, to); beyond {
				found = append(found, fmt.Sprintf("%s imports %s: %s is a library, and knows %s of this module",
					from, to, library, strings.Join(libraries[library], ", ")))
			}
			for _, b := range bans {
				if b.from(from) && b.target(imported, to) {
					found = append(found, fmt.Sprintf("%s imports %s: %s", from, imported, b.what))
				}
			}
		}
	}
	return found
}

// laboratoryInTests names each test of the product that imports the laboratory.
func laboratoryInTests(m module) []string {
	var found []string
	for _, p := range m.own {
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if from, to := m.room(p.ImportPath), m.room(imported); laboratory(to) && !laboratory(from) {
				found = append(found, fmt.Sprintf("a test of %s imports %s: it belongs in the laboratory", from, to))
			}
		}
	}
	return found
}

// storeyOf returns a room's storey, and whether it has one.
func storeyOf(room string) (storey int, known bool) {
	for folder := room; folder != "." && folder != ""; folder = path.Dir(folder) {
		if storey, known = storeys[folder]; known {
			return storey, true
		}
	}
	return 0, false
}

// heavyDeps names what cmd/epplan must not reach: SQLite, NVML, OpenID Connect, and anything
// outside the standard library that uses cgo.
func heavyDeps(m module) []string {
	var found []string
	for _, dep := range m.all[m.path+"/cmd/epplan"].Deps {
		lower := strings.ToLower(dep)
		switch p := m.all[dep]; {
		case strings.Contains(lower, "sqlite"), strings.Contains(lower, "go-nvml"), dep == "database/sql",
			strings.Contains(lower, "oidc"):
			found = append(found, "cmd/epplan reaches "+dep)
		case !p.Standard && len(p.CgoFiles) > 0:
			found = append(found, fmt.Sprintf("cmd/epplan reaches %s, which uses cgo", dep))
		}
	}
	return found
}

func TestImportsPointOneWay(t *testing.T) {
	m := thisModule(t)
	requireRooms(t, m, "cmd/epplan", "config", "slurm", "gpu", "planner", "planner/policy", "queue", "dvfsmodel")
	report(t, wrongImports(m))
	report(t, laboratoryInTests(m))
}

func TestATestOfTheProductThatNeedsTheLaboratoryIsFound(t *testing.T) {
	m := newModule(fixturePath, "", []pkg{
		{
			ImportPath:  fixturePath + "/planner/pick",
			TestImports: own("lab/trace"), XTestImports: own("lab/taskset"),
		},
		{ImportPath: fixturePath + "/lab/replay", XTestImports: own("lab/trace", "planner")},
		{ImportPath: fixturePath + "/cmd/epplab", TestImports: own("lab/trace")},
	})
	wantViolations(t, laboratoryInTests(m), "planner/pick imports lab/trace", "planner/pick imports lab/taskset")
}

func TestNothingReachableFromTheCLIIsHeavy(t *testing.T) {
	m := thisModule(t)
	requireRooms(t, m, "cmd/epplan")
	report(t, heavyDeps(m))
}

func TestAnImportInTheWrongDirectionIsFound(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"planner", "config", "which is above it"},
		{"queue", "planner", "which is above it"},
		{"dvfsmodel", "internal/report", "which is above it"},
		{"internal/report", "cmd/epplan", "which is above it"},
		{"dvfsmodel", "queue", "dvfsmodel no jobs"},
		{"planner", "planner/pick", "names no algorithm"},
		{"planner", "queue", "knows no batches"},
		{"planner", "planner/share", "names no algorithm"},
		{"planner/sharing", "planner", "below the planner"},
		{"planner/sharing", "planner/share", "below the planner"},
		{"planner/share", "planner", "don't know the planner"},
		{"cmd/epplan", "lab/trace", "nothing of the laboratory"},
		{"internal/report", "lab/replay", "nothing of the laboratory"},
		{"cmd/epd", "cmd/epplab", "nothing of the laboratory"},
		{"lab/trace", "cmd/epplab", "which is above it"},
		{"planner/tune", "planner/policy", "not they it"},
		{"planner/check", "planner/sharing", "nothing of what makes one"},
		{"planner/check", "planner/improve", "nothing of what makes one"},
		{"planner/improve", "planner/check", "doesn't ask the check"},
		{"planner/bound", "planner/place", "nothing of what makes one"},
		{"cmd/epplan", "internal/testkit/shareddata", "tests only"},
		{"internal/web", "internal/testkit/browsertest", "tests only"},
		{"internal/store", "internal/testkit/storetest", "tests only"},
		{"attic", "queue", "no known room"},
		{"spelling", "queue", "which is above it"},
		{"queue", "internal/report", "which is above it"},
		{"slurm", "queue", "slurm is a library"},
		{"slurm/lever", "internal/textfile", "slurm is a library"},
		{"gpu/gpucheck", "config", "gpu is a library"},
		{"gpu", "slurm", "gpu is a library"},
		{"gpu/amdgpu", "dvfsmodel/pooled", "gpu is a library"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			m := newModule(fixturePath, "", []pkg{{
				ImportPath: fixturePath + "/" + c.from,
				Imports:    []string{fixturePath + "/" + c.to},
			}})
			wantViolations(t, wrongImports(m), c.want)
		})
	}
}

func TestALibraryInTheWrongRoomIsFound(t *testing.T) {
	m := newModule(fixturePath, "", []pkg{
		{ImportPath: fixturePath + "/config", Imports: []string{"github.com/BurntSushi/toml"}},
		{ImportPath: fixturePath + "/queue", Imports: []string{"github.com/BurntSushi/toml"}},
		{ImportPath: fixturePath + "/cmd/epplan", Imports: []string{"github.com/urfave/cli/v2"}},
		{ImportPath: fixturePath + "/config", Imports: []string{"github.com/urfave/cli/v2"}},
		{ImportPath: fixturePath + "/planner", Imports: []string{"flag"}},
	})
	wantViolations(t, wrongImports(m),
		"queue imports github.com/BurntSushi/toml: TOML is parsed in config only",
		"config imports github.com/urfave/cli/v2: the command line",
		"planner imports flag: the command line")
}

func TestImportsInTheRightDirectionPass(t *testing.T) {
	m := newModule(fixturePath, "", []pkg{
		{
			ImportPath: fixturePath + "/cmd/epplan", Imports: own("config", "internal/report",
				"planner/policy", "queue"),
		},
		{ImportPath: fixturePath + "/config", Imports: own("planner", "planner/policy", "dvfsmodel")},
		{ImportPath: fixturePath + "/internal/report", Imports: own("planner", "slurm")},
		{
			ImportPath: fixturePath + "/planner/policy",
			Imports:    own("planner", "planner/check", "planner/pick", "planner/tune"),
		},
		{ImportPath: fixturePath + "/planner/pick", Imports: own("planner", "queue", "dvfsmodel")},
		{ImportPath: fixturePath + "/planner/check", Imports: own("planner", "dvfsmodel")},
		{ImportPath: fixturePath + "/planner/bound", Imports: own("planner", "planner/sharing", "dvfsmodel")},
		{ImportPath: fixturePath + "/planner/improve", Imports: own("planner", "planner/bound")},
		{ImportPath: fixturePath + "/planner", Imports: own("dvfsmodel", "planner/sharing")},
		{ImportPath: fixturePath + "/planner/share", Imports: own("planner/sharing")},
		{ImportPath: fixturePath + "/queue", Imports: own("spelling")},
		{ImportPath: fixturePath + "/cmd/epplab", Imports: own("lab/trace", "internal/report")},
		{ImportPath: fixturePath + "/lab/replay", Imports: own("lab/trace", "planner", "internal/report")},
		{ImportPath: fixturePath + "/slurm/lever", Imports: own("slurm", "live", "spelling")},
		{ImportPath: fixturePath + "/gpu/gpucheck", Imports: own("gpu", "dvfsmodel", "live", "statedir")},
	})
	wantViolations(t, wrongImports(m))
}

// own makes import paths of the fixture's rooms.
func own(rooms ...string) []string {
	paths := slices.Clone(rooms)
	for i, room := range paths {
		paths[i] = fixturePath + "/" + room
	}
	return paths
}

func TestAHeavyDependencyOfTheCLIIsFound(t *testing.T) {
	m := newModule(fixturePath, "", []pkg{
		{
			ImportPath: fixturePath + "/cmd/epplan",
			Deps: []string{
				"net", "fmt", "github.com/mattn/go-sqlite3", "github.com/NVIDIA/go-nvml/pkg/nvml",
				"database/sql", "example.org/c", "github.com/coreos/go-oidc/v3/oidc",
			},
		},
		{ImportPath: fixturePath + "/cmd/epd", Deps: []string{"github.com/mattn/go-sqlite3"}},
		{ImportPath: "net", Standard: true, CgoFiles: []string{"cgo_linux.go"}},
		{ImportPath: "example.org/c", CgoFiles: []string{"c.go"}},
	})
	wantViolations(t, heavyDeps(m), "go-sqlite3", "go-nvml", "database/sql", "example.org/c, which uses cgo",
		"go-oidc")
}
