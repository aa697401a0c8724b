package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// Page is a file in Markdown.
type Page struct {
	Name  string // its path in the project, with slashes
	Lines []string
}

// notPages are folders without pages of the project: what is built, and what
// tests read.
var notPages = []string{".git", ".cache", "bin", "node_modules", "book"}

// Pages returns all pages of the project, by name.
func Pages(tb testing.TB) []Page {
	tb.Helper()
	root := shareddata.Root(tb)
	var pages []Page
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(notPages, entry.Name()):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".md"):
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			pages = append(pages, ReadPage(tb, filepath.ToSlash(name)))
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(pages) == 0 {
		tb.Fatalf("no page in %s", root)
	}
	return pages
}

// ReadPage reads a page of the project by its name.
func ReadPage(tb testing.TB, name string) Page {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(shareddata.Root(tb), filepath.FromSlash(name)))
	if err != nil {
		tb.Fatal(err)
	}
	return Page{Name: name, Lines: strings.Split(string(text), "\n")}
}

// BlocksOf returns the fenced blocks of all pages whose first fence has a word; there
// must be some.
func BlocksOf(tb testing.TB, info string) []*Block {
	tb.Helper()
	var found []*Block
	for _, p := range Pages(tb) {
		blocks, _ := p.Blocks()
		for _, b := range blocks {
			if b.Info == info {
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		tb.Errorf("no page has a block of %s", info)
	}
	return found
}
