package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/mungetest"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// heads are two machines with a slurmctld and a controller each, and one state folder.
type heads struct {
	*testing.T
	dir, ping string
	munged    *mungetest.Munged
	at        [2]string // where each controller listens
}

func openHeads(t *testing.T) *heads {
	t.Helper()
	storetest.NeedSQLite(t)
	h := &heads{T: t, dir: t.TempDir(), munged: mungetest.Start(t, nil)}
	h.ping = filepath.Join(h.dir, "ping")
	bin := filepath.Join(h.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	// It fails when one of them is down, as Slurm's does; nothing else is answered, until Slurm has forgotten
	// all jobs, and that isn't waited for then.
	script := "#!/bin/sh\n[ \"$1\" = ping ] && cat '" + h.ping + "' && exit 1\n" +
		"[ -e '" + h.forgotten() + "' ] || exit 1\n" +
		"case \"$*\" in *--version*) echo slurm-wlm 22.05.8; exit 0;; esac\n" +
		"case \"$0\" in */sacct) echo Slurm accounting storage is disabled >&2;;\n" +
		"*) echo slurm_load_jobs error: Invalid job id specified >&2;; esac\nexit 1\n"
	for _, name := range []string{"scontrol", "squeue", "sacct"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	writeFile(t, filepath.Join(h.dir, "c.toml"), "[live]\nmode = \"enforce\"\nhold_out = 0\n")
	h.at = [2]string{freePort(t), freePort(t)}
	return h
}

// first says whether the first slurmctld answers; the other one does.
func (h *heads) first(is string) {
	h.Helper()
	text := fmt.Sprintf("Slurmctld(primary) at head1 is %s\nSlurmctld(backup) at head2 is UP\n", is)
	next := h.ping + ".new"
	writeFile(h, next, text)
	if err := os.Rename(next, h.ping); err != nil {
		h.Fatal(err)
	}
}

// forgotten returns a file that is there once Slurm has forgotten all jobs.
func (h *heads) forgotten() string { return filepath.Join(h.dir, "forgotten") }

func (h *heads) state() string { return filepath.Join(h.dir, "state") }

// start starts the controller of a machine, 0 or 1.
func (h *heads) start(i int) *exec.Cmd {
	h.Helper()
	cmd := ownChild(h.args(i)[1:]...)
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// kill ends the controller of a machine as a machine that dies does.
func (h *heads) kill(controller *exec.Cmd) {
	h.Helper()
	if err := controller.Process.Kill(); err != nil {
		h.Fatal(err)
	}
	_ = controller.Wait()
}

// args returns the arguments of the controller of a machine.
func (h *heads) args(i int) []string {
	return []string{
		"epd", "--role", "controller", "--standby", "--node", fmt.Sprintf("head%d.site", i+1), "--listen", h.at[i],
		"--slurm", "on", "--state", h.state(), "--socket", h.socket(i), "--munge-socket", h.munged.Socket,
		"--config", filepath.Join(h.dir, "c.toml"), "--no-levers",
	}
}

func (h *heads) socket(i int) string { return filepath.Join(h.dir, fmt.Sprintf("head%d.sock", i+1)) }

// answers waits until the controller of a machine does.
func (h *heads) answers(i int) {
	h.Helper()
	client := epdapi.New(h.socket(i))
	for until := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		if _, err := client.Status(h.Context()); err == nil {
			return
		}
		if time.Now().After(until) {
			h.Fatalf("the controller of head%d doesn't answer", i+1)
		}
	}
}

// TestABackupGoesOnWhereAKilledControllerWas, under load: no outcome is lost or doubled, no run is decided
// twice, decisions come again soon, and the first one takes over again once its slurmctld is back.
func TestABackupGoesOnWhereAKilledControllerWas(t *testing.T) {
	h := openHeads(t)
	h.first("UP")
	second, first := h.start(1), h.start(0)
	h.answers(0)
	agent := launch(t, t.TempDir(), "--role", "agent", "--controller", h.at[0]+","+h.at[1], "--munge-socket",
		h.munged.Socket, "--node", "n1")
	job, applied := slurm.JobID(0), 0
	play := func() bool {
		job++
		a := agent.hook(hooks.Prolog, job)
		agent.hook(hooks.Epilog, job)
		if a.Applied {
			applied++
		}
		return a.Applied
	}
	const jobs = 40
	for range jobs {
		play()
	}
	if applied == 0 { // a busy machine may miss some
		t.Errorf("no clocks were set\n%s", agent.log)
	}
	if _, err := epdapi.New(h.socket(1)).Status(t.Context()); err == nil {
		t.Error("the one that stands by answers")
	}
	long := func(kind hooks.Hook) { // a job that runs meanwhile, on the other GPU
		if _, err := agent.client.Hook(t.Context(), &hooks.Event{
			Version: hooks.ProtocolVersion, Kind: kind, Job: longJob, Node: "n1", GPUs: []int{1}, GPUsKnown: true,
			Comment: hooks.Hex("epplan:fixed=1087"), Partition: "main",
		}); err != nil {
			t.Fatal(err)
		}
	}
	long(hooks.Prolog)
	h.first("DOWN")
	h.kill(first)
	killed := time.Now()
	missed := 0
	for !play() {
		if missed++; time.Since(killed) > time.Minute {
			t.Fatalf("no decision a minute after the first controller was killed\n%s", agent.log)
		}
	}
	t.Logf("decisions come again after %v, %d jobs at default clocks", time.Since(killed), missed)
	for range jobs {
		play()
	}
	long(hooks.Epilog)
	first = h.start(0)
	h.first("UP")
	_ = second.Wait()
	if code := second.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("the second one ended with %d", code)
	}
	h.answers(0)
	for range jobs {
		play()
	}
	writeFile(t, h.forgotten(), "")
	agent.eventually("every outcome is recorded", func() bool { return agent.status().Unrecorded == 0 })
	h.kill(first)
	h.recordedOnce(job, applied)
}

const longJob = 1000

// recordedOnce wants each job's outcome once, and no run decided twice.
func (h *heads) recordedOnce(jobs slurm.JobID, applied int) {
	h.Helper()
	records, err := store.Open(h.Context(), filepath.Join(h.state(), "records.db"), nil)
	if err != nil {
		h.Fatal(err)
	}
	defer records.Close() //nolint:errcheck // it was read only
	decided := 0
	for job := range jobs + 1 {
		if job == 0 {
			job = longJob
		}
		outcomes, err := records.OutcomesOfJob(h.Context(), "cluster", int64(job))
		if err != nil || len(outcomes) != 1 {
			h.Errorf("job %d: %d outcomes, want 1 (%v)", job, len(outcomes), err)
		}
		decisions, err := records.DecisionsOfJob(h.Context(), "cluster", int64(job))
		if err != nil || len(decisions) > 1 {
			h.Errorf("job %d: %d decisions (%v)", job, len(decisions), err)
		}
		decided += len(decisions)
	}
	if decided < applied+1 {
		h.Errorf("%d decisions of %d jobs whose clocks were set", decided, applied+1)
	}
}

// TestAControllerThatStandsByEndsWhenItIsTold, and refuses what it can't do.
func TestAControllerThatStandsByEndsWhenItIsTold(t *testing.T) {
	h := openHeads(t)
	h.first("UP")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() { done <- run(ctx, h.args(1), new(text), new(text)) }()
	<-time.After(3 * chargeEvery / 2)
	cancel()
	if code := <-done; code != exitDone {
		t.Errorf("it ended with %d", code)
	}
	for _, flags := range [][]string{
		{"--role", "agent", "--controller", "x:1", "--standby"},
		{"--role", "controller", "--listen", "127.0.0.1:0", "--standby", "--slurm", "off"},
	} {
		log := new(text)
		args := append([]string{"epd", "--gpu", "sim:1", "--state", t.TempDir()}, flags...)
		if code := run(context.Background(), args, new(text), log); code != exitUsage ||
			!strings.Contains(log.String(), "--standby") {
			t.Errorf("%q: status %d\n%s", flags, code, log)
		}
	}
}
