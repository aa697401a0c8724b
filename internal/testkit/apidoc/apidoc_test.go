package apidoc_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/testkit/apidoc"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

var update = flag.Bool("update", false, "write docs/reference/openapi.json, api.md and *.schema.json anew")

func document(t *testing.T) *apidoc.Document {
	t.Helper()
	d, err := apidoc.OpenAPI(shareddata.Root(t), apidoc.Operations())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheReferenceIsWhatTheMessagesAre(t *testing.T) {
	d := document(t)
	text, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"openapi.json": string(text), "api.md": d.Markdown()}
	for command, is := range apidoc.Outputs() {
		text, err := apidoc.JSONSchema(shareddata.Root(t), command, is)
		if err != nil {
			t.Fatal(err)
		}
		files[command+".schema.json"] = string(text)
	}
	for name, want := range files {
		path := filepath.Join(shareddata.Root(t), "docs", "reference", name)
		got, err := os.ReadFile(path)
		if err == nil && string(got) == want {
			continue
		}
		if !*update {
			t.Errorf("docs/reference/%s is out of date (%v): go test ./internal/testkit/apidoc -update writes it",
				name, err)
			continue
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// paths returns the values of epdapi's constants whose names begin with Path or
// Suffix.
func paths(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	each(t, "internal/epdapi", func(n ast.Node) {
		s, isValue := n.(*ast.ValueSpec)
		if !isValue {
			return
		}
		for i, name := range s.Names {
			if !strings.HasPrefix(name.Name, "Path") && !strings.HasPrefix(name.Name, "Suffix") ||
				i >= len(s.Values) {
				continue
			}
			if text, isText := s.Values[i].(*ast.BasicLit); isText {
				value, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[name.Name] = value
			}
		}
	})
	return found
}

// each calls a function for each node of a package's source.
func each(t *testing.T, dir string, do func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shareddata.Root(t), filepath.FromSlash(dir), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool { do(n); return true })
	}
}

// pattern returns a method and a path that the source puts together of texts and
// constants of epdapi; "" for anything else.
func pattern(e ast.Expr, paths map[string]string) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil {
			return text
		}
	case *ast.SelectorExpr:
		return paths[x.Sel.Name]
	case *ast.BinaryExpr:
		left, right := pattern(x.X, paths), pattern(x.Y, paths)
		if left != "" && right != "" {
			return left + right
		}
	}
	return ""
}

// Whatever the servers' source puts on a mux is described, and nothing else.
func TestEveryPathThatTheSourceServesIsDescribed(t *testing.T) {
	known := paths(t)
	served := make(map[string]bool)
	for _, dir := range []string{"internal/control", "internal/daemon", "cmd/epd"} {
		each(t, dir, func(n ast.Node) {
			if e, isSum := n.(*ast.BinaryExpr); isSum {
				if p := pattern(e, known); (strings.HasPrefix(p, "GET ") || strings.HasPrefix(p, "POST ")) &&
					len(strings.Fields(p)) == 2 {
					served[p] = true
				}
			}
		})
	}
	described := make(map[string]bool)
	for _, o := range apidoc.Operations() {
		described[o.Pattern()] = true
	}
	for p := range served {
		// "GET /v1/jobs/{id}" is a sum of sums: its left part is none of its own.
		if !described[p] {
			t.Errorf("%s isn't in apidoc.Operations", p)
		}
	}
	for p := range described {
		if !served[p] {
			t.Errorf("%s is described, and nobody serves it", p)
		}
	}
	if len(served) < 20 {
		t.Errorf("only %d paths found in the source", len(served))
	}
}

// An agent's own mux is asked; the controller's is asked in internal/control.
func TestAnAgentServesWhatIsDescribed(t *testing.T) {
	mux := http.NewServeMux()
	new(daemon.AgentServer).Routes(mux)
	for _, o := range apidoc.Operations() {
		request, err := http.NewRequestWithContext(t.Context(), o.Method, "http://epd"+o.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := mux.Handler(request); (found != "") != (o.Server == apidoc.Agent) &&
			o.Path != "/v1/status" {
			t.Errorf("%s: the agent's mux has %q, it is described of the %s", o.Pattern(), found, o.Server)
		}
	}
}

var reference = regexp.MustCompile(`"\$ref": "([^"]*)"`)

// The JSON is what a reader of OpenAPI 3.1 expects: each reference leads
// somewhere, names are unique, each operation has an answer.
func TestTheDocumentIsWellFormed(t *testing.T) {
	d := document(t)
	text, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var again apidoc.Document
	if err := json.Unmarshal(text, &again); err != nil || again.OpenAPI != "3.1.0" ||
		len(again.Paths) != len(d.Paths) {
		t.Errorf("openapi %q, %d paths: %v", again.OpenAPI, len(again.Paths), err)
	}
	for _, part := range reference.FindAllSubmatch(text, -1) {
		name, local := strings.CutPrefix(string(part[1]), "#/components/schemas/")
		if !local || d.Components.Schemas[name] == nil {
			t.Errorf("%s leads nowhere", part[1])
		}
	}
	ids := make(map[string]bool)
	for path, methods := range d.Paths {
		for method, m := range methods {
			if !strings.HasPrefix(path, "/v1/") || ids[m.ID] || m.Responses["200"] == nil || m.Summary == "" {
				t.Errorf("%s %s: %+v", method, path, m)
			}
			ids[m.ID] = true
		}
	}
}

// Every key of a message is explained by a comment, or says it by its name.
func TestMessagesAreExplained(t *testing.T) {
	bare := 0
	for name, s := range document(t).Components.Schemas {
		if s.Description == "" && !slices.Contains([]string{"Receipt"}, name) {
			t.Errorf("%s: its type has no comment", name)
		}
		bare += len(s.Properties)
	}
	if bare < 100 {
		t.Errorf("only %d keys of messages", bare)
	}
}
