package doctest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// TestBlocksOfGoAreFromExamplesThatRun: what a page shows stands in a file of
// examples line by line, but for how far it is indented.
func TestBlocksOfGoAreFromExamplesThatRun(t *testing.T) {
	var examples []string
	eachFile(t, "example_test.go", func(text string) { examples = append(examples, unindented(text)) })
	for _, b := range doctest.BlocksOf(t, "go") {
		block := unindented(b.Text)
		if !slices.ContainsFunc(examples, func(text string) bool { return strings.Contains(text, block) }) {
			t.Errorf("%s: no example_test.go has this block", b.At())
		}
	}
}

// eachFile reads the checkout's files whose names end in something, but for .cache, where others come and go.
func eachFile(t *testing.T, suffix string, read func(text string)) {
	t.Helper()
	err := filepath.WalkDir(shareddata.Root(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case d != nil && d.IsDir() && d.Name() == ".cache":
			return fs.SkipDir
		case err != nil || !strings.HasSuffix(path, suffix):
			return err
		}
		text, err := os.ReadFile(path)
		read(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// unindented returns a text without what its lines begin with, each behind a line end.
func unindented(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		b.WriteString("\n" + strings.TrimSpace(line))
	}
	return b.String() + "\n"
}
