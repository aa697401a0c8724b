package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

// slurmd is a machine whose epd is killed again and again.
type slurmd struct {
	*testing.T
	dir    string
	epplan string // the program
	epd    string // a program that is epd, for epplan epilog
	env    []string
}

func openNode(t *testing.T) *slurmd {
	t.Helper()
	storetest.NeedSQLite(t)
	n := &slurmd{T: t, dir: t.TempDir()}
	n.epplan, n.epd = filepath.Join(n.dir, "epplan"), filepath.Join(n.dir, "epd")
	args := []string{"build", "-o", n.epplan, "../epplan"}
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	writeFile(t, filepath.Join(n.dir, "c.toml"), "[live]\nmode = \"enforce\"\nhold_out = 0\n")
	script := "#!/bin/sh\n" +
		asChild + "=$(printf '%s\\n' epd \"$@\" --gpu sim:2 --state '" + n.state() + "')\n" +
		"export " + asChild + "\nexec '" + os.Args[0] + "' -test.run='^TestEPDAsAChild$'\n"
	if err := os.WriteFile(n.epd, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	n.env = append(os.Environ(), "SLURM_JOB_ID=7", "SLURMD_NODENAME=n1", "SLURM_JOB_UID=1000",
		"SLURM_JOB_GPUS=0",
		"SLURM_JOB_COMMENT=epplan:fixed=1087", "SLURM_JOB_PARTITION=gpu")
	return n
}

func (n *slurmd) state() string  { return filepath.Join(n.dir, "state") }
func (n *slurmd) socket() string { return filepath.Join(n.dir, "epd.sock") }

// start starts an epd as a process of its own, and waits until it answers.
func (n *slurmd) start() *exec.Cmd {
	n.Helper()
	const child = "-test.run=^TestEPDAsAChild$"
	cmd := exec.CommandContext(n.Context(), os.Args[0], child)
	cmd.Env = append(os.Environ(), asChild+"="+strings.Join([]string{
		"epd", "--gpu", "sim:2", "--slurm", "off", "--node", "n1", "--state", n.state(), "--socket",
		n.socket(),
		"--config", filepath.Join(n.dir, "c.toml"),
	}, "\n"))
	if err := cmd.Start(); err != nil {
		n.Fatal(err)
	}
	client := epdapi.New(n.socket())
	for until := time.Now().Add(time.Minute); ; {
		if _, err := client.Status(n.Context()); err == nil {
			return cmd
		}
		if time.Now().After(until) {
			n.Fatal("epd doesn't answer")
		}
		<-time.After(5 * time.Millisecond)
	}
}

// kill ends an epd at once.
func (n *slurmd) kill(epd *exec.Cmd) {
	n.Helper()
	var exit *exec.ExitError
	if err := errors.Join(epd.Process.Kill(), epd.Wait()); !errors.As(err, &exit) || exit.Exited() {
		n.Errorf("epd ended by itself: %v", err)
	}
}

// hook runs a hook as slurmd does, which drains the node if it fails or takes long.
func (n *slurmd) hook(kind, script string) {
	n.Helper()
	const bound = 20 * time.Second // of a machine that is busy with tests; the hook's own is 1.9 s
	ctx, cancel := context.WithTimeout(n.Context(), bound)
	defer cancel()
	args := []string{kind, "--socket", n.socket()}
	if kind == "epilog" {
		args = append(args, "--epd", n.epd, "--journal", filepath.Join(n.state(), "journal"))
	}
	cmd := exec.CommandContext(ctx, n.epplan, args...)
	cmd.Env = append(n.env, "SLURM_SCRIPT_CONTEXT="+script)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.Errorf("%s: %v\n%s", kind, err, out)
	}
}

// locked returns what the first GPU is locked at; 0: it isn't.
func (n *slurmd) locked() float64 {
	n.Helper()
	library, err := openSim("sim:2", n.state(), nil)
	if err != nil {
		n.Fatal(err)
	}
	sims, err := library.Sims()
	if err != nil {
		n.Fatal(err)
	}
	f, err := sims[0].Held(gpu.CoreClock)
	if err != nil {
		n.Fatal(err)
	}
	return float64(f)
}

// Whenever an epd is killed under a job's Prolog or Epilog, the hooks end with status
// 0, and no clock stays locked: the Epilog gives it back itself, or the next epd does.
func TestHooksEndWellWheneverTheirEPDIsKilled(t *testing.T) {
	const kills = 16
	n := openNode(t)
	random := rand.New(rand.NewPCG(3, 4))
	locked, freed := 0, 0
	for i := range kills {
		epd := n.start()
		if f := n.locked(); f != 0 {
			t.Fatalf("kill %d: after the start the GPU is locked at %v MHz", i, f)
		}
		killed := make(chan struct{})
		killSoon := func() {
			<-time.After(time.Duration(random.IntN(int(40 * time.Millisecond))))
			n.kill(epd)
			close(killed)
		}
		if i%2 == 0 {
			go killSoon()
		}
		n.hook("prolog", "prolog_slurmd")
		if i%2 == 0 {
			<-killed
		}
		if n.locked() != 0 {
			locked++
		}
		if i%2 == 1 {
			go killSoon()
		}
		n.hook("epilog", "epilog_slurmd")
		<-killed
		if n.locked() == 0 {
			freed++
		}
		if t.Failed() {
			t.Fatalf("kill %d", i)
		}
	}
	n.kill(n.start())
	if f := n.locked(); f != 0 {
		t.Errorf("in the end the GPU is locked at %v MHz", f)
	}
	t.Logf("%d kills, locked after %d Prologs, free after %d Epilogs", kills, locked, freed)
	if locked == 0 || freed == 0 {
		t.Error("nothing was tried")
	}
}
