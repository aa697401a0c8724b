package doctest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

func TestEveryCommandBlockOfEveryPageIsRunByATest(t *testing.T) {
	byRunner := make(map[string]int)
	var left []string
	for _, p := range doctest.Pages(t) {
		blocks, faults := p.Blocks()
		for _, fault := range append(faults, p.Stray()...) {
			t.Error(fault)
		}
		for _, b := range blocks {
			switch {
			case b.Runner != "" && !isRunner(b.Runner):
				t.Errorf("%s: %q runs no blocks; internal/testkit/doctest/runner.go lists who does", b.At(), b.Runner)
			case b.Runner != "":
				byRunner[b.Runner]++
			case b.NotRun != "":
				left = append(left, b.At()+": not run: "+b.NotRun)
			case b.IsCommands():
				t.Errorf("%s: no test runs this block: give its page to a runner in "+
					"internal/testkit/doctest/runner.go, or write <!-- run by NAME --> before it", b.At())
			}
		}
	}
	for _, r := range doctest.Runners {
		t.Logf("%-8s %3d blocks, run by %s of %s: %s", r.Name, byRunner[r.Name], r.Test, r.Package, r.How)
	}
	for _, line := range left {
		t.Log(line)
	}
	if most := 0; len(left) > most {
		t.Errorf("%d blocks aren't run, want %d at most", len(left), most)
	}
}

func isRunner(name string) bool {
	return slices.ContainsFunc(doctest.Runners, func(r doctest.Runner) bool { return r.Name == name })
}

// A runner is a test that claims the blocks by its name; one without blocks
// needn't be there yet.
func TestEveryRunnerIsATestThatClaimsItsBlocks(t *testing.T) {
	claimed := make(map[string]bool)
	for _, p := range doctest.Pages(t) {
		blocks, _ := p.Blocks()
		for _, b := range blocks {
			claimed[b.Runner] = true
		}
	}
	for _, r := range doctest.Runners {
		if !claimed[r.Name] {
			continue
		}
		if err := claims(filepath.Join(shareddata.Root(t), r.Package), r.Test, r.Name); err != nil {
			t.Errorf("runner %s: %v", r.Name, err)
		}
	}
}

// claims finds a test in a folder that calls doctest.Claim with a name.
func claims(dir, test, name string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range tree.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			if !isFunc || f.Name.Name != test {
				continue
			}
			found := false
			ast.Inspect(f, func(n ast.Node) bool {
				call, isCall := n.(*ast.CallExpr)
				if !isCall || len(call.Args) != 2 {
					return true
				}
				to, isSelector := call.Fun.(*ast.SelectorExpr)
				text, isText := call.Args[1].(*ast.BasicLit)
				found = found || isSelector && to.Sel.Name == "Claim" && isText &&
					text.Value == fmt.Sprintf("%q", name)
				return true
			})
			if !found {
				return fmt.Errorf("%s in %s doesn't call doctest.Claim(t, %q)", test,
					filepath.Base(file), name)
			}
			return nil
		}
	}
	return fmt.Errorf("no %s in %s", test, dir)
}

// Each of the books has its contents in SUMMARY.md.
func TestTheBooksContentsHaveEveryPageOnce(t *testing.T) {
	for _, book := range []string{"docs/", "lab/docs/"} {
		checkContents(t, book, book+"SUMMARY.md")
	}
}

func checkContents(t *testing.T, book, summary string) {
	t.Helper()
	page := doctest.ReadPage(t, summary)
	listed := make(map[string]int)
	for _, l := range page.Links() {
		listed[l.File]++
	}
	for _, p := range doctest.Pages(t) {
		if !strings.HasPrefix(p.Name, book) || p.Name == summary {
			continue
		}
		if listed[p.Name] != 1 {
			t.Errorf("%s: %d lines for %s, want 1", summary, listed[p.Name], p.Name)
		}
		delete(listed, p.Name)
	}
	for name := range listed {
		t.Errorf("%s: %s isn't a page", summary, name)
	}
}

func TestEveryLinkLeadsToAFileAndAHeadingThatAreThere(t *testing.T) {
	pages := doctest.Pages(t)
	anchors := make(map[string][]string)
	for i := range pages {
		anchors[pages[i].Name] = pages[i].Anchors()
	}
	for _, p := range pages {
		for _, l := range p.Links() {
			at := fmt.Sprintf("%s:%d", p.Name, l.Line)
			if l.Image && l.Text == "" {
				t.Errorf("%s: the picture %s has no text for those who can't see it", at, l.File)
			}
			if _, err := os.Stat(filepath.Join(shareddata.Root(t), filepath.FromSlash(l.File))); err != nil {
				t.Errorf("%s: %s isn't there", at, l.File)
				continue
			}
			if known, isPage := anchors[l.File]; l.Heading != "" &&
				(!isPage || !slices.Contains(known, l.Heading)) {
				t.Errorf("%s: %s has no heading #%s", at, l.File, l.Heading)
			}
		}
	}
}

func TestHeadingsAreFoundAsBrowsersNameThem(t *testing.T) {
	p := pageOf("p.md", "# A page", "## `epd`, and: what?", "## Twice", "## Twice", "```sh", "# no heading",
		"```", `<a id="x"></a>`, "## Größe & θ-x_y")
	if got, want := p.Anchors(), []string{
		"a-page", "epd-and-what", "twice", "twice-1", "x",
		"größe--θ-x_y",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p = pageOf("docs/a/p.md", "[x](../b.md#c) `[no](no.md)` ![](i.svg) [y](#here) [w](https://x.org/)",
		"```text", "[no](no.md)", "```", "[z](/top.md)")
	links := p.Links()
	got := make([]string, 0, len(links))
	for _, l := range links {
		got = append(got, fmt.Sprint(l.Line, " ", l.File, " ", l.Heading, " ", l.Image))
	}
	if want := []string{
		"1 docs/b.md c false", "1 docs/a/i.svg  true", "1 docs/a/p.md here false",
		"5 top.md  false",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
