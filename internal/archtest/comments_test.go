package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// undocumented names each package without a package comment, and each exported
// top-level name or method of an exported type without a doc comment. A
// constant or variable may be documented by its line or its group. Package
// main exports nothing, but needs its package comment.
func undocumented(sources []source) []string {
	var found []string
	for _, s := range sources {
		if !slices.ContainsFunc(s.files, func(f *ast.File) bool { return documented(f.Doc) }) {
			found = append(found, fmt.Sprintf("%s: package %s has no package comment", s.room, s.name))
		}
		if s.name == "main" {
			continue
		}
		for _, file := range s.files {
			for _, decl := range file.Decls {
				for _, name := range bareNames(decl) {
					found = append(found,
						fmt.Sprintf("%s: %s has no doc comment", s.at(name.Pos()), name.Name))
				}
			}
		}
	}
	return found
}

// documented reports whether one of the comments has text. Directives such as
// //go:embed aren't text.
func documented(comments ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool {
		return strings.TrimSpace(c.Text()) != ""
	})
}

// bareNames returns the exported names that a declaration leaves undocumented.
func bareNames(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverIsExported(d) && !documented(d.Doc) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		return bareSpecs(d)
	}
	return nil
}

// bareSpecs returns the undocumented exported names of a const, var or type
// declaration.
func bareSpecs(d *ast.GenDecl) []*ast.Ident {
	var bare []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			comments := []*ast.CommentGroup{s.Doc, s.Comment}
			if d.Lparen == token.NoPos { // a group's comment documents none of its types
				comments = append(comments, d.Doc)
			}
			if s.Name.IsExported() && !documented(comments...) {
				bare = append(bare, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && !documented(d.Doc, s.Doc, s.Comment) {
					bare = append(bare, name)
				}
			}
		}
	}
	return bare
}

// receiverIsExported reports whether a function has no receiver, or one of an
// exported type.
func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	kind := d.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr:
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.IsExported()
		default:
			return false
		}
	}
}

func TestEveryPackageAndExportedNameIsDocumented(t *testing.T) {
	report(t, undocumented(parseModule(t, thisModule(t))))
}

func TestAMissingDocCommentIsFound(t *testing.T) {
	sources := parseFixture(t, `
-- queue/queue.go --
package queue

type Job struct{}

func (j *Job) Start() {}

func (Job) end() {}

//go:noinline
func New() *Job { return nil }

const Limit = 1

var first, Second int

type (
	Batch[T any] struct{}
	// Stream is documented.
	Stream struct{}
)

func (b *Batch[T]) Len() int { return 0 }

type hidden struct{}

func (hidden) Shown() {}

// Kinds of things.
const (
	KindA = iota
	KindB
)

var (
	Inline = 1 // Inline is documented here.
)
-- cmd/epplan/main.go --
package main

func Exported() {}

func main() {}
`)
	wantViolations(t, undocumented(sources),
		"queue: package queue has no package comment",
		"queue/queue.go:3: Job", "queue.go:5: Start", "queue.go:10: New", "queue.go:12: Limit",
		"queue.go:14: Second", "queue.go:17: Batch", "queue.go:22: Len",
		"cmd/epplan: package main has no package comment")
}
