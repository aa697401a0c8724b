package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// How much a newcomer has to hold in mind at once. Tests and generated code are free.
const (
	maxPackageFiles     = 30
	maxPackageLines     = 6500
	maxTypeMethods      = 30 // with those of embedded types
	maxInterfaceMethods = 10 // with those of embedded interfaces
	// References from one file of a package to another that are part of a cycle: such
	// files can only be understood together.
	maxCyclic = 30
)

// largeStill are the packages and types that are beyond a limit, each with the figure
// that it has: it may become smaller, and its entry with it, and not larger.
var largeStill = map[string]int{
	"cmd/epplab files": 35,
	"cmd/epplab lines": 6853,
}

// figure is one number of a package or type.
type figure struct {
	what  string // "internal/control files", "internal/control.Controller methods"
	is    int
	limit int
}

// house is the types of a module's own packages.
type house struct {
	module string // its path
	rooms  map[string]*roomTypes
}

type roomTypes struct {
	source
	lines   int
	types   map[string]ast.Expr        // by name
	files   map[string]*ast.File       // of a type, by its name
	methods map[string][]*ast.FuncDecl // by the name of their type
}

func newHouse(module string, sources []source) *house {
	h := &house{module: module, rooms: make(map[string]*roomTypes)}
	for _, s := range sources {
		r := &roomTypes{
			source: s, types: make(map[string]ast.Expr), files: make(map[string]*ast.File),
			methods: make(map[string][]*ast.FuncDecl),
		}
		for _, file := range s.files {
			r.lines += s.fset.File(file.Package).LineCount()
			r.add(file)
		}
		h.rooms[s.room] = r
	}
	return h
}

// add notes what a file declares.
func (r *roomTypes) add(file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				name := typeName(d.Recv.List[0].Type)
				r.methods[name] = append(r.methods[name], d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					r.types[t.Name.Name], r.files[t.Name.Name] = t.Type, file
				}
			}
		}
	}
}

// typeName returns the name of a type without its package, pointer and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// roomOf returns the room of a type that a file names; nil: it isn't the module's own.
func (h *house) roomOf(r *roomTypes, file *ast.File, e ast.Expr) *roomTypes {
	switch e := e.(type) {
	case *ast.StarExpr:
		return h.roomOf(r, file, e.X)
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		if !ok {
			return nil
		}
		for _, i := range file.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			name := path.Base(imported)
			if i.Name != nil {
				name = i.Name.Name
			}
			if room, own := strings.CutPrefix(imported, h.module+"/"); own && name == pkg.Name {
				return h.rooms[room]
			}
		}
		return nil
	}
	return r
}

// methodsOf returns the names of a type's methods, promoted ones among them.
func (h *house) methodsOf(r *roomTypes, name string, seen map[string]bool) map[string]bool {
	all := make(map[string]bool)
	if r == nil || seen[r.room+"."+name] {
		return all
	}
	seen[r.room+"."+name] = true
	for _, m := range r.methods[name] {
		all[m.Name.Name] = true
	}
	var fields *ast.FieldList
	switch t := r.types[name].(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return all
	}
	for _, f := range fields.List {
		if _, method := f.Type.(*ast.FuncType); method {
			for _, n := range f.Names {
				all[n.Name] = true
			}
		} else if len(f.Names) == 0 {
			maps.Copy(all, h.methodsOf(h.roomOf(r, r.files[name], f.Type), typeName(f.Type), seen))
		}
	}
	return all
}

// figures returns those that have a limit.
func (h *house) figures() []figure {
	var all []figure
	for _, room := range slices.Sorted(maps.Keys(h.rooms)) {
		r := h.rooms[room]
		_, cyclic := r.references()
		all = append(all, figure{room + " files", len(r.source.files), maxPackageFiles},
			figure{room + " lines", r.lines, maxPackageLines},
			figure{room + " cyclic references", cyclic, maxCyclic})
		for _, name := range slices.Sorted(maps.Keys(r.types)) {
			limit := maxTypeMethods
			if _, ok := r.types[name].(*ast.InterfaceType); ok {
				limit = maxInterfaceMethods
			}
			all = append(all, figure{
				room + "." + name + " methods", len(h.methodsOf(r, name, make(map[string]bool))), limit,
			})
		}
	}
	return all
}

// tooLarge names each figure beyond its limit that isn't known to be, or is more than
// is known, and each entry that says too much.
func tooLarge(all []figure, known map[string]int) []string {
	var found []string
	unused := maps.Clone(known)
	for _, f := range all {
		allowed, ok := known[f.what]
		delete(unused, f.what)
		switch {
		case f.is <= f.limit && ok:
			found = append(found,
				fmt.Sprintf("%s: %d, within %d now: take it out of largeStill", f.what, f.is, f.limit))
		case f.is <= f.limit || ok && f.is == allowed:
		case ok && f.is < allowed:
			found = append(found, fmt.Sprintf("%s: %d now: say so in largeStill", f.what, f.is))
		default:
			found = append(found,
				fmt.Sprintf("%s: %d, at most %d are allowed", f.what, f.is, max(f.limit, allowed)))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(unused)) {
		found = append(found, what+" is in largeStill, but isn't there")
	}
	return found
}

// TestPackagesAndTypesAreOfASizeToHoldInMind also says the figures of the house, with -v;
// nothing but those where EPPLAN_HOUSE names another one, as scripts/house.sh does.
func TestPackagesAndTypesAreOfASizeToHoldInMind(t *testing.T) {
	m := thisModule(t)
	other := os.Getenv("EPPLAN_HOUSE")
	if other != "" {
		m = listModule(t, modulePath, other)
	}
	h := newHouse(modulePath, parseModule(t, m))
	all := h.figures()
	product := slices.DeleteFunc(m.programs(), laboratory)
	lab := slices.DeleteFunc(m.programs(), func(room string) bool { return !laboratory(room) })
	t.Log("product: " + h.size(product) + "\nlaboratory: " + h.size(lab) + largest(all))
	if other == "" {
		report(t, tooLarge(all, largeStill))
	}
}

// size says how large some rooms are together.
func (h *house) size(rooms []string) string {
	var lines, tokens, functions, types, references, cyclic int
	words := make(map[string]bool)
	for _, room := range rooms {
		r := h.rooms[room]
		lines += r.lines
		tokens += r.tokens()
		types += len(r.types)
		for _, file := range r.source.files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					functions++
					addWords(words, f.Name.Name)
				}
			}
			for _, name := range namesIn(file) {
				addWords(words, name)
			}
		}
		n, c := r.references()
		references, cyclic = references+n, cyclic+c
	}
	return fmt.Sprintf("%d lines, %d tokens, %d packages, %d types, %d words in names, "+
		"%.1f functions in 1,000 lines,\n  "+
		"%d references between files of a package, %d of them in cycles", lines, tokens, len(rooms),
		types, len(words), 1000*float64(functions)/float64(max(1, lines)), references, cyclic)
}

// largest says the greatest figures of each kind.
func largest(all []figure) string {
	var b strings.Builder
	for _, of := range []string{" files", " lines", " methods", " cyclic references"} {
		kind := slices.DeleteFunc(slices.Clone(all), func(f figure) bool {
			return !strings.HasSuffix(f.what, of)
		})
		slices.SortStableFunc(kind, func(a, b figure) int { return cmp.Compare(b.is, a.is) })
		for _, f := range kind[:min(5, len(kind))] {
			fmt.Fprintf(&b, "\n  %-50s %d", f.what, f.is)
		}
	}
	return b.String()
}

// tokens returns how many tokens of Go there are, whatever the width of lines and the comments.
func (r *roomTypes) tokens() int {
	n := 0
	for _, file := range r.source.files {
		path := r.fset.File(file.Package).Name()
		text, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			panic(err)
		}
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(path, -1, len(text)), text, nil, 0)
		for {
			_, tok, literal := s.Scan()
			if tok == token.EOF {
				break
			}
			if tok != token.SEMICOLON || literal == ";" {
				n++
			}
		}
	}
	return n
}

// addWords adds the words that a name in camel case is made of.
func addWords(words map[string]bool, name string) {
	for _, w := range nameWord.FindAllString(name, -1) {
		words[strings.ToLower(w)] = true
	}
}

var nameWord = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

// references returns how many pairs of files of a package there are of which one names what
// the other declares, and how many of them are part of a cycle.
func (r *roomTypes) references() (all, cyclic int) {
	declared := make(map[string]int) // by name of a function, type or value: its file
	for i, file := range r.source.files {
		for _, name := range namesIn(file) {
			declared[name] = i
		}
	}
	to := make([]map[int]bool, len(r.source.files))
	for i, file := range r.source.files {
		to[i] = named(file, declared)
		delete(to[i], i)
	}
	for i := range to {
		all += len(to[i])
		for k := range to[i] {
			if reaches(to, k, i, make(map[int]bool)) {
				cyclic++
			}
		}
	}
	return all, cyclic
}

// named returns the files that a file names something of. What it declares itself, in a
// function or as a field, is not another's of the same name: the parser has resolved it.
func named(file *ast.File, declared map[string]int) map[int]bool {
	of := make(map[int]bool)
	for _, name := range file.Unresolved {
		if k, known := declared[name.Name]; known {
			of[k] = true
		}
	}
	return of
}

// namesIn returns the names of the functions, types and values that a file declares.
func namesIn(file *ast.File) []string {
	var names []string
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			names = append(names, namesOf(d)...)
		}
	}
	return names
}

func namesOf(d *ast.GenDecl) []string {
	var names []string
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, s.Name.Name)
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.Name != "_" {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

func reaches(to []map[int]bool, from, goal int, seen map[int]bool) bool {
	if from == goal {
		return true
	}
	seen[from] = true
	for next := range to[from] {
		if !seen[next] && reaches(to, next, goal, seen) {
			return true
		}
	}
	return false
}

func TestAReferenceIsToWhatAnotherFileDeclares(t *testing.T) {
	const archive = `
-- main/a.go --
package main
var _ = limit
func main() { work() }
-- main/b.go --
package main
const limit = 3
var _ = limit
type span struct{ work int }
func work() {
	main := span{work: limit}
	_ = main.work
}
-- main/c.go --
package main
var _ = span{}
`
	all, cyclic := newHouse(fixturePath, parseFixture(t, archive)).rooms["main"].references()
	if all != 2 || cyclic != 0 { // of a and c to b
		t.Errorf("%d references, %d of them in cycles; want 2 and none", all, cyclic)
	}
}

func TestALargePackageOrTypeIsFound(t *testing.T) {
	var many, wide strings.Builder
	for i := range maxTypeMethods {
		fmt.Fprintf(&many, "func (b *base) M%d() {}\n", i)
	}
	for i := range maxInterfaceMethods {
		fmt.Fprintf(&wide, "\tM%d()\n", i)
	}
	var archive strings.Builder
	archive.WriteString("-- queue/a.go --\npackage queue\ntype base struct{}\n" + many.String() +
		"type Over struct{ *base }\nfunc (o Over) More() {}\n" +
		"-- slurm/b.go --\npackage slurm\ntype Wide interface {\n" + wide.String() + "}\n" +
		"-- config/c.go --\npackage config\nimport \"" + fixturePath +
		"/slurm\"\ntype Wider interface {\n\tslurm.Wide\n\tMore()\n}\n")
	for i := range maxPackageFiles + 1 {
		fmt.Fprintf(&archive, "-- report/f%d.go --\npackage report\n", i)
	}
	for i := range maxCyclic + 1 { // a ring, where each names the next
		fmt.Fprintf(&archive, "-- internal/ring/r%d.go --\npackage ring\nfunc f%d() { f%d() }\n", i, i,
			(i+1)%(maxCyclic+1))
	}
	archive.WriteString("-- web/w.go --\n" +
		"package web\n" + strings.Repeat("\n", maxPackageLines) + "var _ int\n")
	all := newHouse(fixturePath, parseFixture(t, archive.String())).figures()
	wantViolations(t, tooLarge(all, nil),
		"config.Wider methods: 11, at most 10 are allowed", "internal/ring files: 31, at most 30 are allowed",
		"internal/ring cyclic references: 31, at most 30 are allowed",
		"queue.Over methods: 31, at most 30 are allowed",
		"report files: 31, at most 30 are allowed", "web lines: 6502, at most 6500 are allowed")
	wantViolations(t, tooLarge(all, map[string]int{
		"config.Wider methods": 11, "queue.Over methods": 32, "report files": 30, "slurm.Wide methods": 11,
		"web lines": 6502, "gone files": 40,
		"internal/ring files": 31, "internal/ring cyclic references": 40,
	}), "gone files is in largeStill, but isn't there", "internal/ring cyclic references: 31 now",
		"queue.Over methods: 31 now", "report files: 31, at most 30", "slurm.Wide methods: 10, within 10 now")
}
