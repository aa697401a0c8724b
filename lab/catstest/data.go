// Package catstest reads the instances of data/cats for tests.
package catstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/lab/jsonfile"
	"github.com/epplan/epplan/planner/sharing"
)

// Files returns the instances of data/cats.
func Files(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(shareddata.Path(tb, "cats/instances"), "*.json"))
	if err != nil || len(files) != 25 {
		tb.Fatalf("%d instances, want 25 (%v)", len(files), err)
	}
	return files
}

// Read reads an instance.
func Read(tb testing.TB, file string) *sharing.Instance {
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

// BestW returns the least power, watts, that is known for an instance of the data.
func BestW(tb testing.TB, file string) float64 {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var of struct {
		Reference struct {
			B struct {
				BestW float64 `json:"best_w"`
			} `json:"problem_b_with_utilisation_limit"`
		} `json:"reference"`
	}
	if err := json.Unmarshal(data, &of); err != nil {
		tb.Fatal(err)
	}
	return of.Reference.B.BestW
}
