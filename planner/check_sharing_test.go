package planner_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// noImports leaves every other package out: only what this one declares counts.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("left out") }

// TestCheckCallsNoFunctionOutsideItsFiles guards its independence: it may use
// the types of a plan, but none of the functions that make or price one.
func TestCheckCallsNoFunctionOutsideItsFiles(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	_, _ = conf.Check("planner", fset, files, info) // errors: what was left out
	checks := func(pos token.Pos) bool { return strings.HasPrefix(fset.Position(pos).Filename, "check") }
	inside := 0
	for use, object := range info.Uses {
		function, ok := object.(*types.Func)
		if !ok || function.Pkg() == nil || !checks(use.Pos()) {
			continue
		}
		if inside++; !checks(function.Pos()) {
			t.Errorf("%v uses %s, declared at %v", fset.Position(use.Pos()), function.FullName(),
				fset.Position(function.Pos()))
		}
	}
	if inside < 20 {
		t.Errorf("%d calls seen in the files of Check, want more: the test looks at the wrong thing", inside)
	}
}
