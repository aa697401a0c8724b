package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/replay"
	"github.com/epplan/epplan/internal/cli/terminal"
)

func TestAnInterruptedImportOrReplayLeavesTheOldTableAlone(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	table := filepath.Join(dir, "table.csv")
	if err := os.WriteFile(table, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"import", "sacct", "testdata/sacct.txt", "--out", table},
		{"import", "swf", "testdata/log.swf", "--out", table},
		{
			"replay", "testdata/history.csv", "--format", "jobs", "--cluster",
			"../../testdata/demo/cluster.toml",
		},
	} {
		if stdout := wantInterrupted(t, args...); stdout != "" {
			t.Errorf("%s printed %q", args[0], stdout)
		}
	}
	text, err := os.ReadFile(table)
	if left, e := os.ReadDir(dir); err != nil || e != nil || string(text) != "old" || len(left) != 1 {
		t.Errorf("table %q, %v; files left: %v, %v", text, err, left, e)
	}
}

func TestAReplayOfAHistoryHasARowOfConstantClocks(t *testing.T) {
	args := []string{
		"replay", "testdata/history.csv", "--format", "jobs", "--cluster", "../../testdata/demo/cluster.toml",
		"--draws", "3", "--runtime-gpu-model", "*",
	}
	code, stdout, stderr := inProcess(t, append(args, "--json", "--policy", "constant,late-binding")...)
	if code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var r replay.HistoryReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(r.Policies))
	for i := range r.Policies {
		p := &r.Policies[i]
		if names = append(names, p.Policy); (p.Policy == "constant") !=
			(p.Clocks["V100"].Core > 0 && p.Clocks["GTX1080Ti"].Mem > 0) {
			t.Errorf("%s: clocks %v", p.Policy, p.Clocks)
		}
	}
	if want := []string{"baseline", "constant", "late-binding"}; !slices.Equal(names, want) {
		t.Errorf("rows %v, want %v", names, want)
	}
	if p := &r.Policies[1]; p.Clocks["V100"].Core >= 1380 {
		t.Errorf("constant clocks are %v, want lower ones", p.Clocks)
	}
	code, _, stderr = inProcess(t, append(args, "--policy", "constant,place=soonest")...)
	if code != terminal.ExitUsage || !strings.Contains(stderr, "want constant alone") {
		t.Errorf("another constant policy: exit status %d, %s", code, stderr)
	}
}
