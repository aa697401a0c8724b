package consolidate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/internal/shareddata"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/planner/sharing/jsonfile"
)

// instances are those of data/cats.
func instances(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(shareddata.Path(tb, "cats/instances"), "*.json"))
	if err != nil || len(files) != 25 {
		tb.Fatalf("%d instances, want 25 (%v)", len(files), err)
	}
	return files
}

// read reads an instance.
func read(tb testing.TB, file string) *sharing.Instance {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	in, err := jsonfile.ReadInstance(f, filepath.Base(file))
	if err != nil {
		tb.Fatal(err)
	}
	return in
}
