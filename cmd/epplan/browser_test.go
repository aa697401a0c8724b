package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

// TestReportsOfCommandsAreReadableInABrowser looks at the reports that are put
// together here; those of plans and comparisons are looked at in internal/report.
func TestReportsOfCommandsAreReadableInABrowser(t *testing.T) {
	dir := t.TempDir()
	if err := commandtest.CopyExamples(t, dir); err != nil {
		t.Fatal(err)
	}
	epplan := func(t *testing.T, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "epplan", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("epplan %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, c := range []struct {
		name, command string
		says          []string
	}{
		{
			"history", "replay history.csv --format jobs --cluster cluster.toml --runtime-gpu-model V100 --draws 5",
			[]string{"What history.csv would have cost", "By user", "90 % of the draws"},
		},
		{"savings", "savings", []string{"18.0 %", "between 13.89 kWh and 26.11 kWh", "<b>evil"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, c.name+".html")
			epplan(t, append(strings.Fields(c.command), "--html", file)...)
			browsertest.Inspect(t, "report-"+c.name, "file://"+file, c.says...)
		})
	}
}
