package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/slurm/hooks"
)

func TestMain(m *testing.M) {
	shareddata.ShortTemp()
	os.Exit(browsertest.Run(m))
}

// text is a stream that two goroutines use.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// start runs epd until stop is called, which returns the exit status and what
// it wrote.
func start(tb testing.TB, dir string, flags ...string) (client *epdapi.Client, stop func() (int, string)) {
	tb.Helper()
	storetest.NeedSQLite(tb)
	ctx, cancel := context.WithCancel(tb.Context())
	socket := filepath.Join(dir, "epd.sock")
	args := append([]string{
		"epd", "--gpu", "sim:2", "--slurm", "off", "--state", filepath.Join(dir, "state"), "--socket", socket,
	}, flags...)
	var out, log text
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, &out, &log) }()
	client = epdapi.New(socket)
	for {
		if _, err := client.Status(ctx); err == nil {
			break
		}
		select {
		case code := <-done:
			tb.Fatalf("epd ended with status %d: %s", code, &log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return client, func() (int, string) {
		cancel()
		return <-done, log.String()
	}
}

func TestEPDStartsWithoutAConfigurationAndObserves(t *testing.T) {
	dir := t.TempDir()
	client, stop := start(t, dir)
	s, err := client.Status(t.Context())
	if err != nil || len(s.GPUs) != 2 || s.Role != "both" || len(s.Troubles) != 0 {
		t.Errorf("status %+v, error %v", s, err)
	}
	if code, log := stop(); code != exitDone || strings.Contains(log, "level=ERROR") {
		t.Errorf("status %d\n%s", code, log)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "state", "seed"))
	if err != nil {
		t.Fatal(err)
	}
	_, stop = start(t, dir)
	stop()
	if again, err := os.ReadFile(filepath.Join(dir, "state", "seed")); err != nil ||
		!bytes.Equal(again, seed) {
		t.Errorf("the lot changed: %q, then %q (%v)", seed, again, err)
	}
}

// crashed leaves a state folder as an epd does that died while it journalled a
// lock: a GPU is locked, its entry half written.
func crashed(t *testing.T) (state string, locked *gpu.Sim) {
	t.Helper()
	dir := t.TempDir()
	_, stop := start(t, dir)
	stop()
	state = filepath.Join(dir, "state")
	library, err := openSim("sim:2", state, nil)
	if err != nil {
		t.Fatal(err)
	}
	sims, err := library.Sims()
	if err != nil {
		t.Fatal(err)
	}
	if err := sims[0].Set(gpu.CoreClock, 945); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(state, "journal", sims[0].Identity().UUID+".json"), `{"schema":1,"uuid":"`)
	return state, sims[0]
}

func TestARestoreWithoutEPDGivesBackWhatTheJournalNames(t *testing.T) {
	state, sim := crashed(t)
	var out, log text
	args := []string{
		"epd", "restore", "--journal", filepath.Join(state, "journal"), "--gpu", "sim:2", "--state", state,
	}
	if code := run(t.Context(), args, &out, &log); code != exitDone {
		t.Errorf("status %d: %s", code, &log)
	}
	if f, err := sim.Held(gpu.CoreClock); err != nil || f != 0 {
		t.Errorf("locked at %v, error %v: %s", f, err, &log)
	}
}

func TestAnEPDThatCantListenGivesOldClocksBack(t *testing.T) {
	state, sim := crashed(t)
	path := filepath.Join(t.TempDir(), "in-the-way")
	writeFile(t, path, "")
	var out, log text
	args := []string{"epd", "--gpu", "sim:2", "--slurm", "off", "--state", state, "--socket", path}
	if code := run(t.Context(), args, &out, &log); code != exitFailed {
		t.Errorf("status %d: %s", code, &log)
	}
	if f, err := sim.Held(gpu.CoreClock); err != nil || f != 0 {
		t.Errorf("locked at %v, error %v: %s", f, err, &log)
	}
}

func TestWhatCannotBeIsRefusedWithAReason(t *testing.T) {
	storetest.NeedSQLite(t)
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.toml")
	if err := os.WriteFile(wrong, []byte("[live]\nmode = \"off\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown flag": {[]string{"--nonsense"}, exitUsage, "nonsense"},
		"argument":     {[]string{"extra"}, exitUsage, "extra"},
		"role":         {[]string{"--role", "boss"}, exitUsage, "want both, controller or agent"},
		"lone agent":   {[]string{"--role", "agent"}, exitUsage, "--controller HOST:PORT"},
		"deaf boss":    {[]string{"--role", "controller"}, exitUsage, "--listen"},
		"two masters":  {[]string{"--controller", "a:1"}, exitUsage, "is for agents"},
		"agent's port": {
			[]string{"--role", "agent", "--controller", "a:1", "--listen", ":1"}, exitUsage, "no --listen",
		},
		"lowest clock":   {[]string{"--min-core", "-5"}, exitUsage, "--min-core"},
		"port":           {[]string{"--listen", "nowhere"}, exitFailed, "--listen"},
		"GPUs":           {[]string{"--gpu", "voodoo"}, exitUsage, "want auto, nvml, amd or sim"},
		"number of GPUs": {[]string{"--gpu", "sim:-1"}, exitUsage, "--gpu"},
		"faults":         {[]string{"--gpu-faults", "lock:badly"}, exitUsage, "--gpu-faults"},
		"configuration":  {[]string{"--config", wrong}, exitFailed, "wrong.toml:2"},
		"no such file":   {[]string{"--config", filepath.Join(dir, "none.toml")}, exitFailed, "none.toml"},
		"restore's word": {[]string{"restore", "now"}, exitUsage, "no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, log text
			args := []string{"epd"}
			if test.args[0] != "restore" {
				args = append(args, "--gpu", "sim", "--slurm", "off", "--state",
					filepath.Join(t.TempDir(), "s"), "--socket", filepath.Join(t.TempDir(), "x"))
			}
			if code := run(t.Context(), append(args, test.args...), &out, &log); code != test.code ||
				!strings.Contains(log.String(), test.want) || out.String() != "" {
				t.Errorf("status %d, want %d and %q: %s%s", code, test.code, test.want, &log, &out)
			}
		})
	}
}

func TestTheRecordsCanBeCheckedCopiedAndReadWhileEPDRuns(t *testing.T) {
	dir := t.TempDir()
	_, stop := start(t, dir)
	defer stop()
	state := []string{"--state", filepath.Join(dir, "state")}
	db := func(code int, words ...string) string {
		t.Helper()
		var out, log text
		args := append([]string{"epd", "db", words[0]}, state...)
		if got := run(t.Context(), append(args, words[1:]...), &out, &log); got != code {
			t.Errorf("%q: status %d, want %d: %s", words, got, code, &log)
		}
		return out.String()
	}
	if out := db(exitDone, "check"); out != "" {
		t.Errorf("damage: %s", out)
	}
	copied := filepath.Join(dir, "copy.db")
	db(exitDone, "backup", copied)
	if _, err := os.Stat(copied); err != nil {
		t.Error(err)
	}
	db(exitFailed, "backup", copied) // what is there is never overwritten
	db(exitDone, "export", "outcomes")
	db(exitFailed, "export", "nonsense")
	db(exitUsage, "export")
	db(exitUsage, "check", "extra")
	state = []string{"--state", filepath.Join(dir, "none")}
	db(exitFailed, "check")
	db(exitFailed, "export", "outcomes")
}

func TestADamagedDatabaseIsMovedAsideAndANewOneBegun(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(state, "records.db"), strings.Repeat("no database ", 1000))
	_, stop := start(t, dir)
	if code, log := stop(); code != exitDone || !strings.Contains(log, "level=ERROR") ||
		!strings.Contains(log, "moved aside") {
		t.Errorf("status %d\n%s", code, log)
	}
	aside, err := filepath.Glob(filepath.Join(state, "records.db.damaged-*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("aside: %q, %v", aside, err)
	}
	if text, err := os.ReadFile(aside[0]); err != nil || !strings.HasPrefix(string(text), "no database") {
		t.Errorf("%v, %.20q", err, text)
	}
}

func TestPrometheusIsToldOfBothRoles(t *testing.T) {
	at := freePort(t)
	d := launch(t, t.TempDir(), "--metrics", at)
	d.hook(hooks.Prolog, 7)
	<-time.After(300 * time.Millisecond) // a run without time has no energy
	d.hook(hooks.Epilog, 7)
	d.eventually("the outcome is recorded", func() bool { return d.status().Totals.Outcomes == 1 })
	response, err := http.Get("http://" + at + "/metrics") //nolint:noctx // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(response.Body)
	for _, want := range []string{
		"epplan_gpus 2", "epplan_journal_entries 0", "epplan_decisions_total", "epplan_gpu_utilisation_ratio",
		`epplan_run_energy_joules_total{arm="excluded"`,
		`epplan_request_duration_seconds_count{request="prolog"} 1`,
	} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %q: %v\n%s", want, err, text)
		}
	}
}

func TestAStateFolderHasOneEPDAndASecondOneTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	_, stop := start(t, dir)
	defer stop()
	var out, log text
	second := func(flags ...string) int {
		return run(t.Context(), append([]string{
			"epd", "--gpu", "sim:2", "--slurm", "off", "--state", filepath.Join(dir, "state"), "--socket",
			filepath.Join(dir, "other.sock"),
		}, flags...), &out, &log)
	}
	if code := second(); code != exitFailed ||
		!strings.Contains(log.String(), "another epd has the state folder") {
		t.Errorf("status %d\n%s", code, &log)
	}
	if _, err := os.Stat(filepath.Join(dir, "other.sock")); err == nil {
		t.Error("it listened")
	}
	if code := second("--role", "agent", "--controller", "127.0.0.1:1"); code != exitFailed {
		t.Errorf("an agent beside: status %d\n%s", code, &log)
	}
}

func TestAHangupEndsNoEPD(t *testing.T) {
	for name, flags := range map[string][]string{
		"both": nil, "agent": {"--role", "agent", "--controller", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := launch(t, t.TempDir(), flags...)
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			d.eventually("epd was told", func() bool { return strings.Contains(d.log.String(), "reload") })
			d.status()
			if code := d.stop(); code != exitDone {
				t.Errorf("status %d\n%s", code, d.log)
			}
		})
	}
}

func TestOnlyOneEPDOfAClusterSteersSlurm(t *testing.T) {
	commands := t.TempDir() // Slurm's, which all fail
	for _, name := range []string{"scontrol", "squeue", "sinfo", "sacct"} {
		if err := os.WriteFile(filepath.Join(commands, name), []byte("#!/bin/sh\nexit 1\n"),
			0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", commands)
	for _, c := range []struct {
		flags  []string
		steers bool
	}{{[]string{"--slurm", "on"}, true}, {[]string{"--slurm", "on", "--no-levers"}, false}} {
		dir := t.TempDir()
		client, stop := start(t, dir, c.flags...)
		if _, err := client.Levers(t.Context()); (err == nil) != c.steers {
			t.Errorf("%q: levers answer %v", c.flags, err)
		}
		stop()
		if _, err := os.Stat(filepath.Join(dir, "state", "levers")); (err == nil) != c.steers {
			t.Errorf("%q: the levers' folder: %v", c.flags, err)
		}
	}
}

func TestSlurmsUserIsAllowedOnceSlurmSaysWhoThatIs(t *testing.T) {
	commands := t.TempDir()
	scontrol := filepath.Join(commands, "scontrol")
	says := func(script string) {
		if err := os.WriteFile(scontrol, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	says("exit 1") // slurmctld doesn't run yet
	t.Setenv("PATH", commands)
	synctest.Test(t, func(t *testing.T) {
		flags := flag.NewFlagSet("epd", flag.ContinueOnError)
		flags.String("slurm", "on", "")
		p := &program{
			Context: cli.NewContext(nil, flags, nil), log: slog.New(slog.DiscardHandler),
			access: &daemon.Access{},
		}
		p.Context.Context = t.Context()
		p.allowUsers()
		if len(p.loops) != 1 || p.access.IsAdmin(4711) {
			t.Fatalf("%d loops, allowed: %v", len(p.loops), p.access.IsAdmin(4711))
		}
		says("echo 'SlurmUser               = slurmadm(4711)'")
		p.loops[0](t.Context())
		if !p.access.IsAdmin(4711) || p.access.IsAdmin(4712) {
			t.Error("Slurm's user isn't allowed")
		}
	})
}
