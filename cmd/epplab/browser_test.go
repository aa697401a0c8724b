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
	epplab := func(t *testing.T, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "epplab", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("epplab %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	epplab(t, "generate", "openb", "--nodes", "40", "--seed", "1", "demo")
	for _, c := range []struct {
		name, command string
		says          []string
	}{
		{"replay", "replay demo -p fgd,pwr --loads 0.2,0.4", []string{"Replay of demo", "Power saved"}},
		{
			"stays", "replay demo --departures -p fgd,pwr --loads 0.5,0.9 --horizon 5m",
			[]string{"Nodes never sleep"},
		},
		{"papers", "reproduce --quick", []string{"EDL", "deviation", "not comparable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, c.name+".html")
			epplab(t, append(strings.Fields(c.command), "--html", file)...)
			browsertest.Inspect(t, "report-"+c.name, "file://"+file, c.says...)
		})
	}
}
