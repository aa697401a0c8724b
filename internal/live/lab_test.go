package live_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// programs builds epplan and epd once for all tests.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "epplan-live")
	if err != nil {
		return "", err
	}
	for name, cgo := range map[string]string{"epplan": "0", "epd": "1"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "../../cmd/"+name) //nolint:gosec // the project's own
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

// need ends a test that can't run here: as a failure where everything must.
func need(t *testing.T, ok bool, what string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("EPPLAN_REQUIRE_SHARED") == "1":
		t.Fatal(what)
	default:
		t.Skip(what)
	}
}

// lab is a real Slurm with an epd for each node.
type lab struct {
	*testing.T
	dir, conf, bin string
	epds           map[string]*exec.Cmd
}

// scripts of the shared lab.
const scripts = "../../../shared/slurm-lab"

// startLab starts a Slurm of two nodes with four GPUs each and epd on both, by
// a configuration, and with further arguments of the lab.
func startLab(t *testing.T, config string, args ...string) *lab {
	t.Helper()
	_, err := exec.LookPath("slurmctld")
	need(t, err == nil && os.Geteuid() == 0, "a real Slurm needs root and scripts/test-packages.sh")
	up, err := filepath.Abs(filepath.Join(scripts, "up.sh"))
	if err == nil {
		_, err = os.Stat(up)
	}
	need(t, err == nil, "there is no ../shared/slurm-lab")
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "epplan-lab") //nolint:usetesting // sockets want short paths
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // jobs run as nobody
		t.Fatal(err)
	}
	l := &lab{T: t, dir: dir, bin: bin, epds: make(map[string]*exec.Cmd)}
	hooks := filepath.Join(dir, "hooks")
	l.write("hooks/prolog.sh", l.hook("prolog"), 0o755)
	l.write("hooks/epilog.sh", l.hook("epilog"), 0o755)
	l.write("config.toml", config, 0o644)
	l.submitHook()
	slurm := filepath.Join(dir, "slurm")
	args = append([]string{"--nodes", "2", "--gpus", "4", "--dir", slurm, "--hooks", hooks, "--no-install"}, args...)
	out, err := exec.CommandContext(t.Context(), up, args...).Output() //nolint:gosec // the lab's own
	t.Cleanup(func() {
		for node := range l.epds {
			l.stopEPD(node, os.Interrupt)
		}
		down := exec.Command(filepath.Join(filepath.Dir(up), "down.sh"), "--dir", slurm, "--purge") //nolint:gosec,noctx // the lab's own
		if text, err := down.CombinedOutput(); err != nil {
			t.Errorf("take the lab down: %v\n%s", err, text)
		}
		_ = os.RemoveAll(dir)
	})
	if err != nil {
		t.Fatalf("start the lab: %v\n%s", err, stderrOf(err))
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	l.conf = strings.TrimPrefix(lines[len(lines)-1], "export SLURM_CONF=")
	for _, node := range []string{"n1", "n2"} {
		l.startEPD(node)
	}
	return l
}

func stderrOf(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as exec returns it
		return exit.Stderr
	}
	return nil
}

func (l *lab) write(name, text string, mode os.FileMode) {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // jobs run as nobody
		l.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		l.Fatal(err)
	}
}

// hook is a site's Prolog or Epilog with our line in it.
func (l *lab) hook(kind string) string {
	fallback := ""
	if kind == "epilog" {
		fallback = fmt.Sprintf(" --journal %s/$SLURMD_NODENAME/journal", l.dir)
	}
	return fmt.Sprintf(`#!/bin/sh
export EPD_GPU=sim:4 EPD_STATE=%[1]s/$SLURMD_NODENAME
%[2]s/epplan %[3]s --socket %[1]s/$SLURMD_NODENAME.sock%[4]s </dev/null >>%[1]s/%[3]s.log 2>&1
exit $?
`, l.dir, l.bin, kind, fallback)
}

// submitHook adds our module to a site's job_submit.lua. The epd of n1 answers it.
func (l *lab) submitHook() {
	l.Helper()
	hooks := filepath.Join(l.dir, "hooks")
	plan, err := slurm.PlanInstall(slurm.Site{
		Dir: hooks, Socket: filepath.Join(l.dir, "submit.sock"), Binary: filepath.Join(l.bin, "epplan"), HasScript: true,
		Script: "function slurm_job_submit(desc, parts, uid)\n\treturn slurm.SUCCESS\nend\n" +
			"function slurm_job_modify(desc, job, parts, uid)\n\treturn slurm.SUCCESS\nend\nreturn slurm.SUCCESS\n",
		CheckLua: func(name, text string) error {
			check := exec.CommandContext(l.Context(), "luac5.1", "-p", "-")
			check.Stdin = strings.NewReader(text)
			if out, err := check.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", name, err, out)
			}
			return nil
		},
	})
	if err != nil {
		l.Fatal(err)
	}
	for _, s := range plan.Steps {
		if strings.HasSuffix(s.File, ".lua") {
			l.write(filepath.Join("hooks", filepath.Base(s.File)), s.Text, 0o644)
		}
	}
}

func (l *lab) socket(node string) string { return filepath.Join(l.dir, node+".sock") }

func (l *lab) startEPD(node string) {
	l.Helper()
	log, err := os.OpenFile(filepath.Join(l.dir, node+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the test's own folder
	if err != nil {
		l.Fatal(err)
	}
	defer log.Close()                                                                                                           //nolint:errcheck // the child has its own
	cmd := exec.Command(filepath.Join(l.bin, "epd"), "--role", "both", "--gpu", "sim:4", "--state", filepath.Join(l.dir, node), //nolint:gosec,noctx // our own, stopped below
		"--socket", l.socket(node), "--node", node, "--slurm", "on", "--config", filepath.Join(l.dir, "config.toml"))
	if node == "n1" {
		cmd.Args = append(cmd.Args, "--submit-socket", filepath.Join(l.dir, "submit.sock"))
	}
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.conf)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.epds[node] = cmd
	l.eventually("epd on "+node+" answers", func() bool { return l.status(node) != nil })
}

// stopEPD stops an epd by a signal and waits for its end.
func (l *lab) stopEPD(node string, sig os.Signal) {
	l.Helper()
	cmd := l.epds[node]
	delete(l.epds, node)
	_ = cmd.Process.Signal(sig)
	_ = cmd.Wait()
}

// status is what the epd of a node says; nil: nothing.
func (l *lab) status(node string) *epdapi.Status {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := epdapi.New(l.socket(node)).Status(ctx)
	if err != nil {
		return nil
	}
	return s
}

// slurm runs one of Slurm's commands.
func (l *lab) slurm(name string, args ...string) string {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), name, args...) //nolint:gosec // Slurm's commands
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.conf)
	cmd.Dir = "/tmp"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		l.Fatalf("%s %q: %v\n%s", name, args, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// pings tells whether slurmctld answers.
func (l *lab) pings() bool {
	cmd := exec.CommandContext(l.Context(), "scontrol", "ping")
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.conf)
	return cmd.Run() == nil
}

// submit runs a script of one line as nobody.
func (l *lab) submit(line string, args ...string) int64 {
	l.Helper()
	all := append([]string{"-u", "nobody", "--", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "--wrap", line}, args...)
	id, err := strconv.ParseInt(l.slurm("runuser", all...), 10, 64)
	if err != nil {
		l.Fatal(err)
	}
	return id
}

// state is a job's state in Slurm's words.
func (l *lab) state(job int64) string {
	l.Helper()
	text := l.slurm("scontrol", "show", "job", strconv.FormatInt(job, 10))
	_, rest, _ := strings.Cut(text, "JobState=")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// locked lists the positions of GPUs whose core clock is locked, by what.
func (l *lab) locked(node string) map[int]float64 {
	l.Helper()
	found := make(map[int]float64)
	s := l.status(node)
	if s == nil {
		l.Fatalf("epd on %s doesn't answer", node)
	}
	for i, g := range s.GPUs {
		if g.LockedCore > 0 {
			found[i] = g.LockedCore
		}
	}
	return found
}

// eventually waits for what others do.
func (l *lab) eventually(what string, done func() bool) {
	l.Helper()
	deadline := time.Now().Add(45 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			l.dump()
			l.Log(l.slurm("scontrol", "show", "job"), l.slurm("sinfo", "-N", "-o", "%N %T %E"))
			l.Fatalf("%s: not within 45 s", what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// dump shows the logs of a test that fails.
func (l *lab) dump() {
	for _, name := range []string{"n1.log", "n2.log", "prolog.log", "epilog.log"} {
		if text, err := os.ReadFile(filepath.Join(l.dir, name)); err == nil { //nolint:gosec // the test's own folder
			l.Logf("%s:\n%s", name, text)
		}
	}
}

// undrained checks that no node was taken out of service.
func (l *lab) undrained() {
	l.Helper()
	if states := l.slurm("sinfo", "-h", "-N", "-p", "main", "-o", "%T"); strings.Contains(states, "drain") || strings.Contains(states, "down") {
		l.Errorf("nodes are %q", states)
	}
}

// outcomes stops the epd of a node and reads what it recorded of a job.
func (l *lab) outcomes(node string, job int64) []record.Outcome {
	l.Helper()
	l.stopEPD(node, os.Interrupt)
	return l.recorded(node, job)
}

// recorded reads what the epd of a node, which was stopped, recorded of a job.
func (l *lab) recorded(node string, job int64) []record.Outcome {
	l.Helper()
	s, err := store.Open(l.Context(), filepath.Join(l.dir, node, "records.db"), nil)
	if err != nil {
		l.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // read only
	list, err := s.OutcomesOfJob(l.Context(), "cluster", job)
	if err != nil {
		l.Fatal(err)
	}
	return list
}
