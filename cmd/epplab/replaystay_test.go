package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/cli/terminal"
)

func TestALongReplayWithDeparturesStopsWithinASecond(t *testing.T) {
	dir := madeTrace(t, "1213")
	underTest().WantStopped(t, 300*time.Millisecond, "replay", dir, "--departures", "--seeds", "100")
}

func TestDeparturesNeedTimeAndNodesWithGPUs(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const columns = "cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
	once := file("once.csv", columns+"1000,1,1,1000,5,15,5\n1000,1,1,1000,5,20,6\n")
	twice := file("twice.csv", columns+"1000,1,1,1000,5,15,5\n1000,1,1,1000,6,20,6\n")
	nodes := file("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,96000,1000,8,T4\n")
	mixed := file("mixed.csv", "sn,cpu_milli,memory_mib,gpu,model\na,96000,1000,8,T4\nb,96000,1000,0,\n")
	flags := []string{"--departures", "-p", "pwr", "--nodes"}
	wantRefused(t, terminal.ExitFailed, "all tasks arrive at the same time",
		append(flags, nodes, "--pods", once, "--raw")...)
	wantRefused(
		t,
		terminal.ExitFailed,
		`mixed.csv: node "b" has no GPU`,
		append(flags, mixed, "--pods", twice)...)
	if code, _, stderr := underTest().InProcess(t,
		append(
			[]string{"replay"},
			append(flags, nodes, "--pods", twice, "--raw")...)...); code != terminal.ExitDone {
		t.Errorf("exit status %d, %q", code, stderr)
	}
}
