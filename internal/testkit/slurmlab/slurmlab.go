// Package slurmlab starts a real Slurm on this machine for a test, by the
// scripts beside the checkout.
package slurmlab

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// Bounds of a start and an end: on a machine that is busy with tests only a hang
// takes so long.
const (
	upTime   = 4 * time.Minute
	downTime = 4 * time.Minute
)

// Script returns the path of the script that brings a Slurm up; down.sh is beside it.
// They need root and the packages of scripts/test-packages.sh; without, the
// test is skipped, or fails where the shared data are demanded.
func Script(tb testing.TB) string {
	tb.Helper()
	up, err := filepath.Abs(shareddata.Path(tb, "../slurm-lab/up.sh"))
	if err != nil {
		tb.Fatal(err)
	}
	_, missing := exec.LookPath("slurmctld")
	shareddata.Need(tb, missing == nil && os.Geteuid() == 0,
		"a real Slurm needs root and scripts/test-packages.sh")
	return up
}

// patient are lines of slurm.conf for a machine that is busy with tests: a node
// whose slurmd is slow for a moment isn't down, a job that is slow to begin isn't
// lost, and a hook that a test holds isn't taken for one that hangs.
var patient = []string{"SlurmdTimeout=180", "BatchStartTimeout=180", "PrologEpilogTimeout=300"}

// niceness is that of what a lab runs, where it is allowed.
const niceness = "-10"

var mayPrefer = sync.OnceValue(func() bool {
	said, err := exec.Command("nice", "-n", niceness, "true").CombinedOutput()
	return err == nil && len(said) == 0
})

// Preferred returns a command that goes before the machine's other work, where that is
// allowed. A cluster's machines have their daemons to themselves, which in a lab run
// beside other tests; what they promise to do in time they must be let do.
func Preferred(command ...string) []string {
	if !mayPrefer() {
		return command
	}
	return append([]string{"nice", "-n", niceness}, command...)
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
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	const nodes = 2
	port := Ports(tb, nodes) // given back after the Slurm is down
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), downTime)
		defer cancel()
		down := exec.CommandContext(ctx, filepath.Join(filepath.Dir(up), "down.sh"), "--dir", dir, "--purge")
		if out, err := down.CombinedOutput(); err != nil {
			tb.Errorf("down.sh: %v: %s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	Up(tb, dir, append([]string{"--nodes", strconv.Itoa(nodes), "--gpus", "4", "--port", strconv.Itoa(port)},
		options...)...)
	tb.Cleanup(func() {
		if tb.Failed() {
			Show(tb, dir)
		}
	})
	return dir
}

// Up has a Slurm in a folder brought up with options of the script, and a
// busy machine's patience unless they say otherwise. A start that the script takes
// for one that hangs goes on, until it's up or a bound is reached.
func Up(tb testing.TB, dir string, options ...string) {
	tb.Helper()
	UpBehind(tb, nil, dir, options...)
}

// UpBehind is [Up] with a command before the script, such as one that gives it another host name.
func UpBehind(tb testing.TB, before []string, dir string, options ...string) {
	tb.Helper()
	args := append(slices.Clone(before), Preferred(Script(tb), "--dir", dir, "--no-install")...)
	for _, line := range patient {
		args = append(args, "--conf", line)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), upTime)
	defer cancel()
	args = append(args, options...)
	for {
		out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
		if err == nil {
			return
		}
		if ctx.Err() != nil || !bytes.Contains(out, []byte("not ready in time")) {
			Show(tb, dir)
			tb.Fatalf("up.sh: %v: %s", err, out)
		}
		tb.Logf("up.sh goes on: %s", out)
	}
}

// shown is how much of the end of a file is shown.
const shown = 8 << 10

// Show logs what tells why a test with the Slurm of a folder failed: its jobs, its
// nodes, and the ends of its logs.
func Show(tb testing.TB, dir string) {
	tb.Helper()
	for _, question := range [][]string{
		{"squeue", "--states=all"},
		{"sinfo", "-N", "-o", "%N %T %E"},
		{"scontrol", "show", "node"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		ask := exec.CommandContext(ctx, question[0], question[1:]...)
		ask.Env = append(os.Environ(), "SLURM_CONF="+filepath.Join(dir, "etc", "slurm.conf"))
		out, err := ask.CombinedOutput()
		cancel()
		tb.Logf("%s: %v\n%s", strings.Join(question, " "), err, out)
	}
	for _, pattern := range []string{"slurmctld.log", "slurmctld.out", "slurmd.*", "power.log", "epd.log"} {
		files, _ := filepath.Glob(filepath.Join(dir, "log", pattern))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil && len(text) > 0 {
				tb.Logf("the end of %s:\n%s", filepath.Base(file), text[max(0, len(text)-shown):])
			}
		}
	}
}
