package apidoc

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

const module = "github.com/epplan/epplan/"

// comments are what the source says of types and their fields, by package path
// and name: "path.Type" and "path.Type.Field".
type comments struct {
	root  string
	known map[string]bool // packages that were read
	of    map[string]string
}

func newComments(root string) *comments {
	return &comments{root: root, known: make(map[string]bool), of: make(map[string]string)}
}

// read reads the source of a type's package, once.
func (c *comments) read(pkg string) error {
	dir, own := strings.CutPrefix(pkg, module)
	if !own || c.known[pkg] {
		return nil
	}
	c.known[pkg] = true
	files, err := filepath.Glob(filepath.Join(c.root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("comments of the API: %w", err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if d, isDecl := n.(*ast.GenDecl); isDecl {
				c.types(pkg, d)
			}
			return true
		})
	}
	return nil
}

// types notes the comments of a declaration's types.
func (c *comments) types(pkg string, d *ast.GenDecl) {
	for _, s := range d.Specs {
		t, isType := s.(*ast.TypeSpec)
		if !isType {
			continue
		}
		doc := t.Doc
		if doc == nil && len(d.Specs) == 1 {
			doc = d.Doc
		}
		name := pkg + "." + t.Name.Name
		c.of[name] = plain(doc.Text())
		fields, isStruct := t.Type.(*ast.StructType)
		if !isStruct {
			continue
		}
		for _, f := range fields.Fields.List {
			text := plain(f.Doc.Text())
			if text == "" {
				text = plain(f.Comment.Text())
			}
			for _, n := range f.Names {
				c.of[name+"."+n.Name] = text
			}
		}
	}
}

// plain returns a comment as one line.
func plain(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("[", "", "]", "").Replace(text)
}

// typeOf returns what the source says of a type.
func (c *comments) typeOf(t reflect.Type) (string, error) {
	if err := c.read(t.PkgPath()); err != nil {
		return "", err
	}
	return c.of[t.PkgPath()+"."+t.Name()], nil
}

// field returns what it says of a field.
func (c *comments) field(of reflect.Type, name string) (string, error) {
	if err := c.read(of.PkgPath()); err != nil {
		return "", err
	}
	return c.of[of.PkgPath()+"."+of.Name()+"."+name], nil
}
