package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/mungetest"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// running is an epd under test.
type running struct {
	*testing.T
	client  *epdapi.Client
	address string // of a controller
	log     *text
	stop    func() int
}

// launch runs an epd by its flags until stop is called, or the test ends.
func launch(t *testing.T, dir string, flags ...string) *running {
	t.Helper()
	return launchWith(t, dir, "sim:2", flags...)
}

// launchWith is launch with GPUs of a kind.
func launchWith(t *testing.T, dir, gpus string, flags ...string) *running {
	t.Helper()
	if !slices.Contains(flags, roleAgent) {
		storetest.NeedSQLite(t)
	}
	ctx, cancel := context.WithCancel(context.Background())
	socket := filepath.Join(dir, "epd.sock")
	args := append([]string{
		"epd", "--slurm", "off", "--gpu", gpus, "--state", filepath.Join(dir, "state"), "--socket", socket,
	}, flags...)
	d := &running{T: t, client: epdapi.New(socket), log: &text{}}
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, &text{}, d.log) }()
	code := -1
	d.stop = func() int {
		cancel()
		if code < 0 {
			code = <-done
		}
		return code
	}
	t.Cleanup(func() { d.stop() })
	d.eventually("epd answers", func() bool {
		_, err := d.client.Status(ctx)
		return err == nil
	})
	return d
}

func (d *running) eventually(what string, done func() bool) {
	d.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			d.Fatalf("%s: not within 2 min\n%s", what, d.log)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (d *running) status() *epdapi.Status {
	d.Helper()
	s, err := d.client.Status(context.Background())
	if err != nil {
		d.Fatal(err)
	}
	return s
}

// hook plays a Prolog or an Epilog on one GPU.
func (d *running) hook(kind hooks.Hook, job slurm.JobID) hooks.Answer {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	a, err := d.client.Hook(ctx, &hooks.Event{
		Version: hooks.ProtocolVersion, Kind: kind, Job: job, Node: "n1", GPUs: []int{0}, GPUsKnown: true,
		Comment: hooks.Hex("epplan:fixed=1087"), Partition: "main",
	})
	if err != nil {
		d.Fatal(err)
	}
	return a
}

// freePort returns an address at which nobody listens, and nobody else will.
func freePort(tb testing.TB) string {
	tb.Helper()
	return slurmlab.Address(tb)
}

// pair returns a controller and an agent that asks it.
func pair(t *testing.T, munged *mungetest.Munged, agentFlags ...string) (controller, agent *running) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "epd.toml")
	writeFile(t, config, "[live]\nmode = \"enforce\"\nhold_out = 0\n")
	at := freePort(t)
	controller = launch(t, t.TempDir(), "--role", "controller", "--listen", at, "--munge-socket",
		munged.Socket, "--config", config)
	controller.address = at
	flags := append([]string{
		"--role", "agent", "--controller", at, "--munge-socket", munged.Socket, "--node", "n1",
	}, agentFlags...)
	return controller, launch(t, t.TempDir(), flags...)
}

func TestAnAgentObeysTheControllerOnAnotherMachine(t *testing.T) {
	controller, agent := pair(t, mungetest.Start(t, nil))
	if a := agent.hook(hooks.Prolog, 7); !a.Applied {
		t.Errorf("answer %+v\n%s%s", a, agent.log, controller.log)
	}
	if s := agent.status(); s.Role != roleAgent || s.GPUs[0].LockedCore != 1087 || s.Totals != nil ||
		s.Controller != nil {
		t.Errorf("agent %+v", s)
	}
	agent.hook(hooks.Epilog, 7)
	controller.eventually("the outcome is recorded", func() bool {
		return controller.status().Totals.Outcomes == 1
	})
	agent.eventually("nothing waits", func() bool { return agent.status().Unrecorded == 0 })
	if s := controller.status(); s.Role != roleController || len(s.GPUs) != 0 || s.Totals.Decisions != 1 {
		t.Errorf("controller %+v", s)
	}
	if s := agent.status(); s.GPUs[0].LockedCore != 0 || len(s.Troubles) != 0 {
		t.Errorf("agent %+v", s)
	}
	if code := agent.stop() + controller.stop(); code != exitDone {
		t.Errorf("status %d", code)
	}
}

func TestOutcomesWaitForAControllerThatIsAwayOverARestartToo(t *testing.T) {
	munged := mungetest.Start(t, nil)
	config := filepath.Join(t.TempDir(), "epd.toml")
	writeFile(t, config, "[live]\nmode = \"enforce\"\n")
	at, home := freePort(t), t.TempDir()
	flags := []string{"--role", "agent", "--controller", at, "--munge-socket", munged.Socket, "--node", "n1"}
	agent := launch(t, home, flags...)
	if a := agent.hook(hooks.Prolog, 7); a.Applied {
		t.Errorf("answer %+v", a)
	}
	agent.hook(hooks.Epilog, 7)
	agent.hook(hooks.Epilog, 8) // whose Prolog never came
	agent.eventually("both wait", func() bool { return agent.status().Unrecorded == 2 })
	agent.stop()
	agent = launch(t, home, flags...)
	agent.eventually("both wait still", func() bool { return agent.status().Unrecorded == 2 })
	controller := launch(t, t.TempDir(), "--role", "controller", "--listen", at, "--munge-socket",
		munged.Socket, "--config", config)
	agent.eventually("nothing waits", func() bool { return agent.status().Unrecorded == 0 })
	if got := controller.status().Totals.Outcomes; got != 2 {
		t.Errorf("%d outcomes, want 2", got)
	}
}

func TestWithoutMungeJobsRunAtDefaultClocksAndNothingIsLost(t *testing.T) {
	munged := mungetest.Start(t, nil)
	controller, agent := pair(t, munged)
	munged.Stop(t)
	if a := agent.hook(hooks.Prolog, 1); a.Applied || agent.status().GPUs[0].LockedCore != 0 {
		t.Errorf("answer %+v", a)
	}
	agent.hook(hooks.Epilog, 1)
	agent.eventually("trouble is shown", func() bool {
		s := agent.status()
		return s.Unrecorded == 1 && len(s.Troubles) > 0 && strings.Contains(s.Troubles[0].Message, "munge")
	})
	munged.Again(t)
	controller.eventually("the outcome is recorded", func() bool {
		return controller.status().Totals.Outcomes == 1
	})
}

func TestANodesLowestClockHoldsWhateverTheControllerSays(t *testing.T) {
	_, agent := pair(t, mungetest.Start(t, nil), "--min-core", "1200")
	if a := agent.hook(hooks.Prolog, 1); a.Applied || agent.status().GPUs[0].LockedCore != 0 {
		t.Errorf("answer %+v", a)
	}
}

func TestAnotherMungeKeyIsAnothersCluster(t *testing.T) {
	munged, other := mungetest.Start(t, nil), mungetest.Start(t, nil)
	config := filepath.Join(t.TempDir(), "epd.toml")
	writeFile(t, config, "[live]\nmode = \"enforce\"\n")
	at := freePort(t)
	controller := launch(t, t.TempDir(), "--role", "controller", "--listen", at, "--munge-socket",
		munged.Socket, "--config", config)
	agent := launch(t, t.TempDir(), "--role", "agent", "--controller", at, "--munge-socket", other.Socket,
		"--node", "n1")
	if a := agent.hook(hooks.Prolog, 1); a.Applied {
		t.Errorf("answer %+v", a)
	}
	agent.hook(hooks.Epilog, 1)
	agent.eventually("the outcome waits", func() bool { return agent.status().Unrecorded == 1 })
	if s := controller.status(); s.Totals.Decisions != 0 || s.Totals.Outcomes != 0 ||
		!strings.Contains(controller.log.String(), "refused") {
		t.Errorf("controller %+v\n%s", s, controller.log)
	}
}

func writeFile(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func TestUsersOnOtherMachinesSeeTheirOwnJobsByMunge(t *testing.T) {
	munged := mungetest.Start(t, nil)
	controller, agent := pair(t, munged)
	agent.hook(hooks.Prolog, 7)
	agent.hook(hooks.Epilog, 7)
	controller.eventually("the outcome is recorded", func() bool {
		return controller.status().Totals.Outcomes == 1
	})
	dir, err := os.MkdirTemp("", "epplan") //nolint:usetesting // t.TempDir's folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	epplan := filepath.Join(dir, "epplan")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", epplan, "../epplan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ask := func(uid uint32, words ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), epplan, append(words, "--socket", controller.address)...)
		cmd.Env = append(os.Environ(), "EPPLAN_MUNGE_SOCKET="+munged.Socket)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const nobody = 65534
	if out, err := ask(0, "job", "--json", "7"); err != nil || !strings.Contains(out, `"decisions"`) {
		t.Errorf("root: %v\n%s", err, out)
	}
	if out, err := ask(nobody, "job", "--json", "7"); err == nil || !strings.Contains(out, "isn't known") {
		t.Errorf("nobody: %v\n%s", err, out)
	}
	if out, err := ask(nobody, "savings"); err != nil {
		t.Errorf("nobody: %v\n%s", err, out)
	}
	if out, err := ask(nobody, "reload"); err == nil || !strings.Contains(out, "not allowed") {
		t.Errorf("nobody: %v\n%s", err, out)
	}
}
