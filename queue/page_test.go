package queue_test

import (
	"flag"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/reference/files.md")

const page = "../docs/reference/files.md"

var batchTable = regexp.MustCompile(`(?s)(<!-- columns of a batch -->\n).*?(<!-- end of columns -->)`)

// nameAndText divides a line of the list; one that goes on has no name.
var nameAndText = regexp.MustCompile(`^(|\S.*?)\s{2,}(\S.*)$`)

// columns returns the list of the package's comment as a table in Markdown.
func columns(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	const indent = "\t"
	var b strings.Builder
	b.WriteString("\n| name | meaning (default) |\n|---|---|\n")
	rows := 0
	for line := range strings.Lines(file.Doc.Text()) {
		line, listed := strings.CutPrefix(strings.TrimRight(line, "\n"), indent)
		if !listed {
			if rows > 0 {
				break
			}
			continue
		}
		name, text := line, ""
		if part := nameAndText.FindStringSubmatch(line); part != nil {
			name, text = part[1], part[2]
		}
		switch name {
		case "": // goes on
			b.WriteString(" " + text)
		default:
			if rows > 0 {
				b.WriteString(" |\n")
			}
			b.WriteString("| `" + strings.ReplaceAll(name, ", ", "`, `") + "` | " + text)
		}
		rows++
	}
	if rows < 15 {
		t.Fatalf("the package's comment lists %d names", rows)
	}
	return strings.ReplaceAll(b.String(), "|  ", "| ") + " |\n\n"
}

func TestThePageOfFilesListsTheColumnsOfABatch(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := columns(t)
	got := batchTable.FindSubmatch(text)
	if got == nil {
		t.Fatalf("%s has no <!-- columns of a batch -->", page)
	}
	whole := batchTable.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(want, "$", "$$")+"${2}"))
	if string(whole) == string(text) {
		return
	}
	if !*update {
		t.Fatalf("docs/reference/files.md is out of date: go test ./queue -update rewrites its table")
	}
	if err := os.WriteFile(page, whole, 0o644); err != nil {
		t.Fatal(err)
	}
}
