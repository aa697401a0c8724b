// Package slurmlab starts a real Slurm on this machine for a test, by the
// scripts beside the checkout.
package slurmlab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/shareddata"
)

// Bounds of a start and an end.
const (
	upTime   = 90 * time.Second
	downTime = 60 * time.Second
)

// Script is the path of the script that brings a Slurm up; down.sh is beside it.
// They need root and the packages of scripts/test-packages.sh; without, the
// test is skipped, or fails where the shared data are demanded.
func Script(tb testing.TB) string {
	tb.Helper()
	up, err := filepath.Abs(shareddata.Path(tb, "../slurm-lab/up.sh"))
	if err != nil {
		tb.Fatal(err)
	}
	_, missing := exec.LookPath("slurmctld")
	Need(tb, missing == nil && os.Geteuid() == 0, "a real Slurm needs root and scripts/test-packages.sh")
	return up
}

// Need ends a test that can't run here: as a failure where everything must.
func Need(tb testing.TB, ok bool, what string) {
	tb.Helper()
	switch {
	case ok:
	case os.Getenv(shareddata.RequireEnv) == "1":
		tb.Fatal(what)
	default:
		tb.Skip(what)
	}
}

// Start brings a Slurm of two nodes with four GPUs each up, with further options
// of the scripts, and takes it down when the test ends. It returns its folder:
// etc/slurm.conf is below it.
func Start(tb testing.TB, options ...string) string {
	tb.Helper()
	up := Script(tb)
	dir, err := os.MkdirTemp("/tmp", "epplan-slurm-") //nolint:usetesting // the slurm user must reach it, and socket paths are short
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
	const nodes = 2
	args := append([]string{
		"--nodes", strconv.Itoa(nodes), "--gpus", "4", "--dir", dir, "--no-install", "--port", strconv.Itoa(Ports(tb, nodes)),
	}, options...)
	if out, err := exec.CommandContext(ctx, up, args...).CombinedOutput(); err != nil { //nolint:gosec // the lab's script
		tb.Fatalf("up.sh: %v: %s", err, out)
	}
	return dir
}
