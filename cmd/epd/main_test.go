package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/slurm"
)

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
func start(t *testing.T, dir string, flags ...string) (client *epdapi.Client, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	socket := filepath.Join(dir, "epd.sock")
	args := append([]string{"epd", "--gpu", "sim:2", "--slurm", "off", "--state", filepath.Join(dir, "state"), "--socket", socket}, flags...)
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
			t.Fatalf("epd ended with status %d: %s", code, &log)
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
	seed, err := os.ReadFile(filepath.Join(dir, "state", "seed")) //nolint:gosec // the test's own folder
	if err != nil {
		t.Fatal(err)
	}
	_, stop = start(t, dir)
	stop()
	if again, err := os.ReadFile(filepath.Join(dir, "state", "seed")); err != nil || !bytes.Equal(again, seed) { //nolint:gosec // as above
		t.Errorf("the lot changed: %q, then %q (%v)", seed, again, err)
	}
}

func TestARestoreWithoutEPDGivesBackWhatTheJournalNames(t *testing.T) {
	dir := t.TempDir()
	_, stop := start(t, dir)
	stop()
	library, err := gpu.OpenSim("sim:2", &gpu.SimOptions{Dir: filepath.Join(dir, "state", "sim")})
	if err != nil {
		t.Fatal(err)
	}
	sims, err := library.Sims()
	if err != nil {
		t.Fatal(err)
	}
	if err := sims[0].Lock(gpu.Core, 945); err != nil {
		t.Fatal(err)
	}
	// An entry as a crash leaves it, if even that: half written.
	entry := filepath.Join(dir, "state", "journal", sims[0].Identity().UUID+".json")
	if err := os.WriteFile(entry, []byte(`{"schema":1,"uuid":"`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log text
	args := []string{"epd", "restore", "--journal", filepath.Dir(entry), "--gpu", "sim:2", "--state", filepath.Join(dir, "state")}
	if code := run(t.Context(), args, &out, &log); code != exitDone {
		t.Errorf("status %d: %s", code, &log)
	}
	if f, err := sims[0].Locked(gpu.Core); err != nil || f != 0 {
		t.Errorf("locked at %v, error %v: %s", f, err, &log)
	}
}

func TestWhatCannotBeIsRefusedWithAReason(t *testing.T) {
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
		"unknown flag":   {[]string{"--nonsense"}, exitUsage, "nonsense"},
		"argument":       {[]string{"extra"}, exitUsage, "extra"},
		"role":           {[]string{"--role", "boss"}, exitUsage, "want both, controller or agent"},
		"lone agent":     {[]string{"--role", "agent"}, exitUsage, "--controller HOST:PORT"},
		"deaf boss":      {[]string{"--role", "controller"}, exitUsage, "--listen"},
		"two masters":    {[]string{"--controller", "a:1"}, exitUsage, "is for agents"},
		"agent's port":   {[]string{"--role", "agent", "--controller", "a:1", "--listen", ":1"}, exitUsage, "no --listen"},
		"lowest clock":   {[]string{"--min-core", "-5"}, exitUsage, "--min-core"},
		"port":           {[]string{"--listen", "nowhere"}, exitFailed, "--listen"},
		"GPUs":           {[]string{"--gpu", "voodoo"}, exitUsage, "want nvml or sim"},
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
				args = append(args, "--gpu", "sim", "--slurm", "off", "--state", filepath.Join(t.TempDir(), "s"), "--socket", filepath.Join(t.TempDir(), "x"))
			}
			if code := run(t.Context(), append(args, test.args...), &out, &log); code != test.code || !strings.Contains(log.String(), test.want) || out.String() != "" {
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
	if code, log := stop(); code != exitDone || !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "moved aside") {
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
	d.hook(slurm.Prolog, 7)
	d.hook(slurm.Epilog, 7)
	d.eventually("the outcome is recorded", func() bool { return d.status().Totals.Outcomes == 1 })
	response, err := http.Get("http://" + at + "/metrics") //nolint:noctx,gosec // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(response.Body)
	for _, want := range []string{"epplan_gpus 2", "epplan_journal_entries 0", "epplan_decisions_total", "epplan_gpu_power_watts", `epplan_run_energy_joules_total{arm="excluded"`,
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
	args := []string{"epd", "--gpu", "sim:2", "--slurm", "off", "--state", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "other.sock")}
	if code := run(t.Context(), args, &out, &log); code != exitFailed || !strings.Contains(log.String(), "another epd has the state folder") {
		t.Errorf("status %d\n%s", code, &log)
	}
	if _, err := os.Stat(filepath.Join(dir, "other.sock")); err == nil {
		t.Error("it listened")
	}
	args = append(args, "--role", "agent", "--controller", "127.0.0.1:1")
	if code := run(t.Context(), args, &out, &log); code != exitFailed {
		t.Errorf("an agent beside: status %d\n%s", code, &log)
	}
}

func TestAHangupEndsNoEPD(t *testing.T) {
	for name, flags := range map[string][]string{
		"both": nil, "agent": {"--role", "agent", "--controller", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			client, stop := start(t, t.TempDir(), flags...)
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			<-time.After(50 * time.Millisecond)
			if _, err := client.Status(t.Context()); err != nil {
				t.Error(err)
			}
			if code, log := stop(); code != exitDone || !strings.Contains(log, "reload") {
				t.Errorf("status %d\n%s", code, log)
			}
		})
	}
}
