// Package slurmlab starts a real Slurm on this machine for a test, by the
// scripts beside the checkout.
package slurmlab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/shareddata"
)

// Bounds of a start. Labs that start at once may choose the same ports: then
// one of them doesn't come up, and is tried again.
const (
	tries    = 3
	upTime   = 90 * time.Second
	downTime = 60 * time.Second
)

// Start brings a Slurm of two nodes with four GPUs each up, with further options
// of the scripts, and takes it down when the test ends. It returns its folder:
// etc/slurm.conf is below it. It needs root and the packages of
// scripts/test-packages.sh; without, the test is skipped, or fails where the
// shared data are demanded.
func Start(tb testing.TB, options ...string) (dir string) {
	tb.Helper()
	up := shareddata.Path(tb, "../slurm-lab/up.sh")
	_, missing := exec.LookPath("slurmctld")
	if os.Geteuid() != 0 || missing != nil {
		const what = "a real Slurm needs root and scripts/test-packages.sh"
		if os.Getenv(shareddata.RequireEnv) == "1" {
			tb.Fatal(what)
		}
		tb.Skip(what)
	}
	for try := 1; ; try++ {
		dir, out, err := start(tb, up, options)
		switch {
		case err == nil:
			return dir
		case try == tries:
			tb.Fatalf("up.sh: %v: %s", err, out)
		}
		tb.Logf("up.sh, try %d: %v: %s", try, err, out)
	}
}

// start tries it once.
func start(tb testing.TB, up string, options []string) (dir string, out []byte, err error) {
	tb.Helper()
	dir, err = os.MkdirTemp("/tmp", "epplan-slurm-") //nolint:usetesting // the slurm user must reach it, and socket paths are short
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as above
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), downTime)
		defer cancel()
		down := exec.CommandContext(ctx, filepath.Join(filepath.Dir(up), "down.sh"), "--dir", dir, "--purge") //nolint:gosec // the lab's script
		if out, err := down.CombinedOutput(); err != nil {
			tb.Errorf("down.sh: %v: %s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(tb.Context(), upTime)
	defer cancel()
	args := append([]string{"--nodes", "2", "--gpus", "4", "--dir", dir, "--no-install"}, options...)
	out, err = exec.CommandContext(ctx, up, args...).CombinedOutput() //nolint:gosec // the lab's script
	return dir, out, err
}
