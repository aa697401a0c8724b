package agent_test

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// victimDir names the folder of the process that is to be killed.
const victimDir = "EPPLAN_TEST_VICTIM_DIR"

// machine returns a real folder with simulated GPUs that outlive processes.
func machine(t *testing.T, dir string) (*agent.Agent, *gpu.SimLibrary) {
	t.Helper()
	library, err := gpu.OpenSim(twoGPUs, profiles().Board, &gpu.SimOptions{
		Dir: filepath.Join(dir, "gpus"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var folders [2]*statedir.Folder
	for i, name := range []string{"journal", "runs"} {
		if folders[i], err = statedir.OpenFolder(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = folders[i].Close() })
	}
	return agent.New(agent.Options{
		Journal: folders[0], Runs: folders[1], Library: library, Boot: "boot", Driver: "driver", Grace: 1,
	}), library
}

// This is no test of its own: TestAProcessKilledAtAnyMomentLeavesNoGPULocked
// starts it as another process, and kills it.
func TestVictim(t *testing.T) {
	dir := os.Getenv(victimDir)
	if dir == "" {
		return
	}
	a, library := machine(t, dir)
	if _, err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	devices, err := library.Devices()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("started\n")
	for job := uint32(1); ; job++ {
		r := live.Run{ID: agent.NewRunID(), Job: job, Node: "n1", Setting: slow}
		if job%2 == 0 {
			r.Setting = quick
		}
		for _, dev := range devices {
			r.GPUs = append(r.GPUs, dev.Identity().UUID)
		}
		if _, err := a.Apply(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if job > 1 { // overlaps with the one before
			if _, err := a.End(t.Context(), job-1, "n1"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAProcessKilledAtAnyMomentLeavesNoGPULocked(t *testing.T) {
	const kills = 25
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	found := 0
	for i := range kills {
		killVictim(t, dir, time.Duration(random.IntN(int(60*time.Millisecond))))
		a, library := machine(t, dir)
		report, err := a.Start(t.Context())
		if err != nil || !report.Clean() {
			t.Fatalf("kill %d: start: %v, %+v", i, err, report)
		}
		found += len(report.GPUs)
		wantAllFree(t, library)
		if _, err := a.Sweep(t.Context(), ignoreMissing, ignoreMissing); err != nil {
			t.Fatalf("kill %d: sweep: %v", i, err)
		}
		for _, c := range a.Runs().Ended() {
			if err := a.Runs().Forget(c.Run.ID); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"journal", "runs"} {
			left, err := os.ReadDir(filepath.Join(dir, name))
			left = slices.DeleteFunc(left, func(f os.DirEntry) bool {
				return strings.HasSuffix(f.Name(), ".baseline")
			})
			if err != nil || len(left) > 0 {
				t.Fatalf("kill %d: left in %s: %v, %v", i, name, left, err)
			}
		}
	}
	t.Logf("%d kills, %d GPUs found locked", kills, found)
	if found == 0 {
		t.Error("no process was killed while a GPU was locked")
	}
}

// killVictim starts another process that locks and frees GPUs, and kills it
// some time after it began.
func killVictim(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "started\n" {
		t.Errorf("the other process said %q, %v", line, err)
	}
	<-time.After(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Errorf("the other process ended by itself: %v", err)
	}
}

func wantAllFree(t *testing.T, library *gpu.SimLibrary) {
	t.Helper()
	sims, err := library.Sims()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sims {
		for c := range gpu.NumControls {
			if v, err := s.Held(c); err != nil || v != 0 {
				t.Fatalf("the %s of GPU %d is left at %v, %v", c, i, float64(v), err)
			}
		}
	}
}
