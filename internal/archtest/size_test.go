package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// How long a function and a file may be, in lines, the closing brace included.
// Tests and generated code are free.
const (
	maxFunctionLines = 80
	maxFileLines     = 500
)

// longOnPurpose are the functions ("planner/engine.go Run") and files
// ("planner/engine.go") that may be longer, each with its reason. An entry that
// is no longer needed is a violation.
var longOnPurpose = map[string]string{}

// tooLong names each function and file over its limit that isn't allowed, and
// each allowed one that isn't over it.
func tooLong(sources []source, allowed map[string]string) []string {
	var found []string
	unused := maps.Clone(allowed)
	check := func(at, what string, lines, limit int) {
		if lines <= limit {
			return
		}
		if _, ok := allowed[what]; !ok {
			found = append(found,
				fmt.Sprintf("%s: %s has %d lines, at most %d are allowed", at, what, lines, limit))
		}
		delete(unused, what)
	}
	for _, s := range sources {
		for _, file := range s.files {
			at := s.at(file.Package)
			name := at[:strings.LastIndexByte(at, ':')]
			check(at, name, s.fset.File(file.Package).LineCount(), maxFileLines)
			for _, decl := range file.Decls {
				if d, ok := decl.(*ast.FuncDecl); ok {
					lines := s.fset.Position(d.End()).Line - s.fset.Position(d.Pos()).Line + 1
					check(s.at(d.Pos()), name+" "+d.Name.Name, lines, maxFunctionLines)
				}
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(unused)) {
		found = append(found, what+" is allowed to be long, but isn't there or isn't long")
	}
	return found
}

func TestFunctionsAndFilesAreShort(t *testing.T) {
	for what, reason := range longOnPurpose {
		if reason == "" {
			t.Errorf("%s is allowed to be long without a reason", what)
		}
	}
	report(t, tooLong(parseModule(t, thisModule(t)), longOnPurpose))
}

func TestALongFunctionOrFileIsFound(t *testing.T) {
	body := func(lines int) string {
		return "func f() {\n" + strings.Repeat("\tprintln()\n", lines-2) + "}\n"
	}
	sources := parseFixture(t,
		"-- queue/longest.go --\npackage queue\n\n// Comments don't count.\n"+body(maxFunctionLines)+
			"-- slurm/long.go --\npackage slurm\n"+body(maxFunctionLines+1)+
			"-- config/config.go --\npackage config\n"+strings.Repeat("\n", maxFileLines)+"var _ int\n")
	wantViolations(t, tooLong(sources, nil),
		"slurm/long.go f has 81 lines", "config/config.go has 502 lines")
	wantViolations(t, tooLong(sources, map[string]string{
		"slurm/long.go f":    "a table",
		"config/config.go":   "a table",
		"queue/longest.go f": "stale",
	}), "queue/longest.go f is allowed to be long, but")
}
