package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// source is a package's parsed files, without tests and generated code.
type source struct {
	room  string
	name  string
	fset  *token.FileSet
	files []*ast.File
}

// at returns a position within the module: folder/file.go:line.
func (s source) at(pos token.Pos) string {
	p := s.fset.Position(pos)
	return fmt.Sprintf("%s/%s:%d", s.room, filepath.Base(p.Filename), p.Line)
}

// parseModule parses the code of the module's own packages.
func parseModule(t *testing.T, m module) []source {
	t.Helper()
	sources := make([]source, 0, len(m.own))
	for _, p := range m.own {
		s := source{room: m.room(p.ImportPath), name: p.Name, fset: token.NewFileSet()}
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if !ast.IsGenerated(file) {
				s.files = append(s.files, file)
			}
		}
		sources = append(sources, s)
	}
	return sources
}

// parseFixture parses a txtar archive of packages.
func parseFixture(t *testing.T, archive string) []source {
	t.Helper()
	return parseModule(t, listModule(t, fixturePath, build(t, archive)))
}
