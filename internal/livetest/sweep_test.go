package livetest_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// sweepVariable has the sweep's test play 1,000 streams, which takes minutes.
const sweepVariable = "EPPLAN_SWEEP_STREAMS"

// sweeper is a replay of many streams on a lab.
type sweeper struct {
	*testing.T
	dir, conf, epplab string
	args              []string
	folder            string // of the sweep
	streams           int
	held              []string // tasks, the last one first
}

// command returns a call of epplab by a user of the lab.
func (s *sweeper) command(options ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.Context(), s.epplab, append(append([]string{}, s.args...), options...)...)
	cmd.Dir, cmd.Env = filepath.Join(s.dir, "work"), append(os.Environ(), "SLURM_CONF="+s.conf)
	return cmd
}

// sweepCall is one of epplab that runs.
type sweepCall struct {
	*exec.Cmd
	out, err string // files
}

func (s *sweeper) start(options ...string) *sweepCall {
	s.Helper()
	c := &sweepCall{Cmd: s.command(options...)}
	for name, to := range map[string]*io.Writer{"out": &c.Stdout, "err": &c.Stderr} {
		file, err := os.CreateTemp(s.TempDir(), name)
		if err != nil {
			s.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // the child has its own
		*to = file
		if name == "out" {
			c.out = file.Name()
		} else {
			c.err = file.Name()
		}
	}
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	return c
}

// said returns what it has printed for people.
func (c *sweepCall) said() string {
	text, err := os.ReadFile(c.err)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// done returns how many parts there are.
func (s *sweeper) done() int {
	names, err := filepath.Glob(filepath.Join(s.folder, "parts", "[0-9]*"))
	if err != nil {
		s.Fatal(err)
	}
	return len(names)
}

// until waits for something.
func (s *sweeper) until(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !is(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it never came to it: %s", what)
		}
	}
}

// tasks returns the processes of tasks that run.
func (s *sweeper) tasks() []int {
	links, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		s.Fatal(err)
	}
	var found []int
	for _, link := range links {
		line, err := os.ReadFile(link)
		if err == nil && bytes.HasPrefix(line, []byte(s.epplab)) && bytes.Contains(line, []byte(s.folder)) &&
			bytes.Contains(line, []byte("--slurm-task=")) {
			pid, err := strconv.Atoi(strings.Split(link, "/")[2])
			if err == nil {
				found = append(found, pid)
			}
		}
	}
	return found
}

// killTask kills one of the tasks that run.
func (s *sweeper) killTask() {
	s.Helper()
	const askEvery = 50 // looks: Slurm takes its time to answer
	looks := 0
	s.until("a task is killed", func() bool {
		for _, pid := range s.tasks() {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				return true
			}
		}
		looks++
		last := len(s.held) - 1
		if last > 0 && looks%askEvery == 0 && s.slurm("squeue", "--noheader", "--states=R") == "" {
			_ = s.slurmCommand("scontrol", "release", s.held[last]).Run() // it may have ended
			s.held = s.held[:last]
		}
		return false
	})
}

func (s *sweeper) slurmCommand(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.Context(), name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+s.conf)
	return cmd
}

func (s *sweeper) slurm(name string, args ...string) string {
	s.Helper()
	out, err := s.slurmCommand(name, args...).CombinedOutput()
	if err != nil {
		s.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestASweepByAJobArrayIsTheSameAsOnOneMachine kills tasks and who waits for them, sets a
// node down, and interrupts: with EPPLAN_SWEEP_STREAMS=1000 over so many streams.
func TestASweepByAJobArrayIsTheSameAsOnOneMachine(t *testing.T) {
	slurmlab.AnySlurm(t)
	slurmlab.Script(t) // without a lab nothing is built
	streams := 60
	if text := os.Getenv(sweepVariable); text != "" {
		var err error
		if streams, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSweeper(t, streams)
	began := time.Now()
	want, err := s.command("--csv").Output()
	if err != nil {
		t.Fatal(err)
	}
	alone := time.Since(began)
	began = time.Now()
	// A node has one task at a time, so that others wait.
	array := []string{
		"--csv", "--slurm-array=" + strconv.Itoa(s.tasksOf()), "--slurm-dir=" + s.folder,
		"--sbatch-args=--exclusive --time=10 --no-requeue",
	}
	s.killAll(array)
	s.interrupt(array)
	kept := s.done()
	if kept == 0 || kept >= s.streams {
		t.Fatalf("%d of %d parts are kept", kept, s.streams)
	}
	got := s.finish(array)
	swept := time.Since(began)
	if !bytes.Equal(got, want) {
		t.Errorf("a job array makes\n%.2000s\none machine\n%.2000s", got, want)
	}
	if parts := s.done(); parts != s.streams {
		t.Errorf("%d parts of %d streams", parts, s.streams)
	}
	t.Logf("%d streams: %v on one machine, %v by arrays that were killed three times, interrupted once and "+
		"lost a node; %d parts were kept of the first two", s.streams, alone.Round(time.Millisecond),
		swept.Round(time.Millisecond), kept)

	out, err := s.command(array...).Output()
	if err != nil || !bytes.Equal(out, got) {
		t.Errorf("once more it makes something else: %v", err)
	}
	pods := filepath.Join(s.dir, "work", "it's 1", "pods.csv")
	text, err := os.ReadFile(pods)
	if err == nil {
		err = os.WriteFile(pods, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err = s.command(array...).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("has the parts of another sweep:\n  it's 1/pods.csv has changed")) {
		t.Errorf("another trace was mixed in: %v\n%s", err, out)
	}
}

// tasksOf returns how many tasks the array has.
func (s *sweeper) tasksOf() int { return max(8, s.streams/20) }

// killAll begins a sweep, and kills two of its tasks and who waits for them. Tasks that haven't started are
// held, so that there are some to kill however fast they are, and one is left.
func (s *sweeper) killAll(array []string) {
	s.Helper()
	c := s.start(array...)
	s.until("the array is there", func() bool { return s.slurm("squeue", "--noheader") != "" })
	id, _, _ := strings.Cut(s.slurm("squeue", "--noheader", "--format=%F"), "\n")
	for task := s.tasksOf() - 1; task >= 2; task-- { // the last one surely waits, others may have started
		s.held = append(s.held, fmt.Sprintf("%s_%d", id, task))
	}
	s.slurm("scontrol", "hold", s.held[0])
	for _, task := range s.held[1:] {
		_ = s.slurmCommand("scontrol", "hold", task).Run()
	}
	s.until("some parts are done", func() bool { return s.done() > 0 })
	s.killTask()
	if err := c.Process.Kill(); err != nil { // the tasks go on
		s.Fatal(err)
	}
	_ = c.Wait()
	s.killTask()
}

// interrupt has somebody wait for the tasks that are left, and press Ctrl-C.
func (s *sweeper) interrupt(array []string) {
	s.Helper()
	c := s.start(array...)
	s.until("it waits", func() bool { return strings.Contains(c.said(), "of an earlier call is waited for") })
	if err := c.Process.Signal(os.Interrupt); err != nil {
		s.Fatal(err)
	}
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 130 {
		s.Fatalf("interrupted, it ended with %v: %s", err, c.said())
	}
	if text := c.said(); !strings.Contains(text, "is cancelled") ||
		!strings.Contains(text, "is kept in "+s.folder) {
		s.Errorf("interrupted, it said %s", text)
	}
	s.until("the array is cancelled", func() bool { return s.slurm("squeue", "--noheader") == "" })
	s.held = nil
}

// finish has the rest done, although a task is killed and a node is lost.
func (s *sweeper) finish(array []string) []byte {
	s.Helper()
	kept := s.done()
	c := s.start(array...)
	s.until("the rest is begun", func() bool { return s.done() > kept })
	s.killTask()
	for _, state := range []string{"drain", "down"} { // one that isn't drained may come back before it is resumed
		s.slurm("scontrol", "update", "nodename=n2", "state="+state, "reason=test")
	}
	s.slurm("scontrol", "update", "nodename=n2", "state=resume")
	if err := c.Wait(); err != nil {
		s.Fatalf("%v: %s", err, c.said())
	}
	if text := c.said(); !strings.Contains(text, " parts once more in ") {
		s.Errorf("no part was done once more: %s", text)
	}
	got, err := os.ReadFile(c.out)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// newSweeper starts a Slurm without any epd, and makes a trace that so many streams are drawn from.
func newSweeper(t *testing.T, streams int) *sweeper {
	t.Helper()
	t.Parallel()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	lab := slurmlab.Start(t)
	dir := filepath.Join(t.TempDir(), "it's 100%a shared") // all that a name may have
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, filepath.Join(dir, "swept", "tasks"))
		}
	})
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o750); err != nil {
		t.Fatal(err)
	}
	s := &sweeper{
		T: t, dir: dir, conf: filepath.Join(lab, "etc", "slurm.conf"), epplab: filepath.Join(bin, "epplab"),
		folder: filepath.Join(dir, "swept"), streams: streams,
		args: []string{"generate", "openb", "--nodes", "1200", "it's 1"},
	}
	if out, err := s.command().CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.args = []string{"replay", "it's 1", "--policy", "pwr", "--seeds", strconv.Itoa(streams)}
	return s
}

// showLogs shows what tasks printed.
func showLogs(t *testing.T, folder string) {
	t.Helper()
	names, err := os.ReadDir(folder)
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(folder, name.Name())); err == nil && len(text) < 4<<10 {
			t.Logf("%s: %s", name.Name(), text)
		}
	}
}
