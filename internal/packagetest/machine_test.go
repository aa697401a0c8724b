package packagetest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// machine is a folder in which packages are installed as if it were the root of
// a machine with systemd. systemctl is a program that notes what it is told.
type machine struct {
	*testing.T
	dir  string
	said string // what systemctl was told
	env  []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	shareddata.Need(t, os.Getuid() == 0, "packages are installed by root")
	m := &machine{T: t, dir: t.TempDir()}
	tools := t.TempDir()
	m.said = filepath.Join(tools, "said")
	m.env = []string{
		"PATH=" + tools + ":" + os.Getenv("PATH"), "DEBIAN_FRONTEND=noninteractive",
		"SYSTEMCTL_SAID=" + m.said,
		"EPD_GPU=sim:1", "EPD_STATE=" + m.path("/var/lib/epplan"),
	}
	m.write("/run/systemd/system/.keep", "", 0o644)
	if err := os.WriteFile(filepath.Join(tools, "systemctl"),
		[]byte("#!/bin/sh\necho \"$@\" >>\"$SYSTEMCTL_SAID\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

// path returns where a file of the machine lies.
func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

// write writes a file of the machine.
func (m *machine) write(name, text string, mode os.FileMode) {
	m.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(text), mode); err != nil {
		m.Fatal(err)
	}
}

// read returns a file of the machine; "" where there is none.
func (m *machine) read(name string) string {
	m.Helper()
	text, err := os.ReadFile(m.path(name))
	if err != nil && !os.IsNotExist(err) {
		m.Fatal(err)
	}
	return string(text)
}

// there reports whether a file of the machine is there.
func (m *machine) there(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}

// want checks which files are there.
func (m *machine) want(there bool, names ...string) {
	m.Helper()
	for _, name := range names {
		if m.there(name) != there {
			m.Errorf("%s: there is %v, want %v", name, m.there(name), there)
		}
	}
}

// told returns what systemctl was told since this was asked last.
func (m *machine) told() string {
	m.Helper()
	text, err := os.ReadFile(m.said)
	if err != nil && !os.IsNotExist(err) {
		m.Fatal(err)
	}
	_ = os.Remove(m.said) // there may be none
	return string(text)
}

// wantTold wants systemctl to have been told something, or not, and takes what
// it was told away.
func (m *machine) wantTold(words, never []string) {
	m.Helper()
	told := m.told()
	for _, word := range words {
		if !strings.Contains(told, word) {
			m.Errorf("systemctl wasn't told %q: %q", word, told)
		}
	}
	for _, word := range never {
		if strings.Contains(told, word) {
			m.Errorf("systemctl was told %q: %q", word, told)
		}
	}
}

// units returns those of all packages.
func units() []string { return []string{"epd.service", "epd-controller.service", "epd-agent.service"} }

// each puts a word before each unit.
func each(word string) []string {
	found := make([]string, 0, len(units()))
	for _, unit := range units() {
		found = append(found, word+" "+unit)
	}
	return found
}

// serve runs the machine's epd until the function that it returns is called with
// a signal.
func (m *machine) serve(state string, flags ...string) (socket string, stop func(syscall.Signal)) {
	m.Helper()
	socket = filepath.Join(m.TempDir(), "epd.sock")
	args := append([]string{
		"--role", "both", "--gpu", "sim:1", "--slurm", "off", "--node", "n1", "--state", m.path(state),
		"--socket", socket,
	}, flags...)
	log := &strings.Builder{}
	cmd := command(context.WithoutCancel(m.Context()), nil, m.path("/usr/bin/epd"), args...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(m.Context(), 5*time.Minute)
	defer cancel()
	for client := epdapi.New(socket); ; {
		if _, err := client.Status(ctx); err == nil {
			break
		}
		select {
		case err := <-ended:
			m.Fatalf("epd ended: %v\n%s", err, log)
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			m.Fatalf("epd doesn't answer: %v", <-ended)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return socket, func(signal syscall.Signal) {
		_ = cmd.Process.Signal(signal)
		if err := <-ended; err != nil && signal == syscall.SIGTERM {
			m.Errorf("epd: %v\n%s", err, log)
		}
	}
}

// lock leaves a clock of the machine's GPU locked, as an epd that was killed
// does.
func (m *machine) lock() {
	m.Helper()
	config := filepath.Join(m.TempDir(), "enforce.toml")
	if err := os.WriteFile(config, []byte("[live]\nmode = \"enforce\"\n"), 0o600); err != nil {
		m.Fatal(err)
	}
	socket, stop := m.serve("/var/lib/epplan", "--config", config)
	hook := func(kind string, job int) {
		cmd := command(m.Context(), []string{
			fmt.Sprintf("SLURM_JOB_ID=%d", job), "SLURMD_NODENAME=n1", "SLURM_JOB_UID=1000",
			"SLURM_JOB_GPUS=0", "SLURM_JOB_COMMENT=epplan:fixed=1087",
		}, m.path("/usr/bin/epplan"), kind, "--socket", socket)
		if out, err := cmd.CombinedOutput(); err != nil {
			m.Fatalf("%v: %s", err, out)
		}
	}
	const first, last = 7, 16 // on a busy machine one may be decided too late
	for job := first; job <= last && !m.locked(); job++ {
		if job > first {
			hook("epilog", job-1)
		}
		hook("prolog", job)
	}
	stop(syscall.SIGKILL)
	if !m.locked() {
		m.Fatal("no clock is locked")
	}
}

// locked reports whether the journal names a clock.
func (m *machine) locked() bool {
	entries, _ := filepath.Glob(m.path("/var/lib/epplan/journal/*.json"))
	return len(entries) > 0
}

// upgraded starts the epd of a controller on records of the one before, and checks that
// they are there afterwards.
func (m *machine) upgraded(runs []string) {
	m.Helper()
	const state = "/var/lib/epplan-controller"
	_, stop := m.serve(state)
	stop(syscall.SIGTERM)
	if out := do(m.T, nil, m.path("/usr/bin/epd"), "db", "check", "--state", m.path(state)); out != "" {
		m.Errorf("the records are damaged: %s", out)
	}
	got := do(m.T, nil, m.path("/usr/bin/epd"), "db", "export", "--state", m.path(state), "outcomes")
	for _, run := range runs {
		if !strings.Contains(got, strconv.Quote(run)) {
			m.Errorf("run %s is lost, there are: %s", run, got)
		}
	}
	if lines := strings.Count(got, "\n"); lines != len(runs) {
		m.Errorf("%d outcomes, want %d", lines, len(runs))
	}
}

// left returns the files of the machine, without those below some folders.
func (m *machine) left(but ...string) []string {
	m.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(m.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = "/" + name
		if slices.ContainsFunc(but, func(folder string) bool { return strings.HasPrefix(name+"/", folder) }) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() || strings.Contains(name, "epplan") {
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		m.Fatal(err)
	}
	return found
}
