package slurmlab

import (
	"os"
	"os/exec"
	"testing"
)

// RootEnv names the environment variable by which scripts/slurm.sh tells tests that they
// run in a root of another Slurm than this machine's: it is the suite that is there.
const RootEnv = "EPPLAN_SLURM_ROOT"

// AnySlurm begins a test that goes the same whatever Slurm's release is. In a root of another
// Slurm it is skipped where -short asks for less, and where a program that it needs isn't there:
// nothing but Slurm is laid out in a root.
func AnySlurm(tb testing.TB, programs ...string) {
	tb.Helper()
	if os.Getenv(RootEnv) == "" {
		return
	}
	if testing.Short() {
		tb.Skip("it goes the same on any Slurm")
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			tb.Skip(name + " isn't there beside another Slurm")
		}
	}
}
