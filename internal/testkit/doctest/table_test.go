package doctest_test

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/testkit/doctest"
)

func TestEveryTableHasRowsAsWideAsItsHead(t *testing.T) {
	for _, p := range doctest.Pages(t) {
		for _, fault := range p.Tables() {
			t.Error(fault)
		}
	}
}

func TestFaultsOfTablesAreNamedWithTheirLine(t *testing.T) {
	p := pageOf("p.md", "| a | b |", "|---|---:|", "| 1 | `x \\| y` |", "| 1 |", "", "```text", "|---|",
		"```", "| a |", "|---|", "")
	want := []string{"p.md:4: a row of 1 cells, want 2", "p.md:10: a table without a row"}
	if got := p.Tables(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
