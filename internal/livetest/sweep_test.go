package livetest_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// sweepVariable has the sweep's test make 1,000 plans, which takes a minute.
const sweepVariable = "EPPLAN_SWEEP_PLANS"

// planning is how long planning took, which no two runs agree on.
var planning = regexp.MustCompile(`,[^,\n]*\n`)

// sweeper is a comparison of many plans on a lab.
type sweeper struct {
	*testing.T
	dir, conf, epplan string
	args              []string
	folder            string // of the sweep
	plans             int
	held              []string // tasks, the last one first
}

// command returns a call of epplan by a user of the lab.
func (s *sweeper) command(options ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.Context(), s.epplan, append(append([]string{}, s.args...), options...)...)
	cmd.Dir, cmd.Env = filepath.Join(s.dir, "work"), append(os.Environ(), "SLURM_CONF="+s.conf)
	return cmd
}

// sweepCall is one of epplan that runs.
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
		if err == nil && bytes.HasPrefix(line, []byte(s.epplan)) && bytes.Contains(line, []byte(s.folder)) &&
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
// node down, and interrupts: with EPPLAN_SWEEP_PLANS=1000 over so many plans.
func TestASweepByAJobArrayIsTheSameAsOnOneMachine(t *testing.T) {
	slurmlab.AnySlurm(t)
	slurmlab.Script(t) // without a lab nothing is built
	plans := 60
	if text := os.Getenv(sweepVariable); text != "" {
		var err error
		if plans, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSweeper(t, plans)
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
	if kept == 0 || kept >= s.plans {
		t.Fatalf("%d of %d parts are kept", kept, s.plans)
	}
	got := s.finish(array)
	swept := time.Since(began)
	if mask := []byte(",T\n"); !bytes.Equal(planning.ReplaceAll(got, mask), planning.ReplaceAll(want, mask)) {
		t.Errorf("a job array makes\n%.2000s\none machine\n%.2000s", got, want)
	}
	if rows := bytes.Count(got, []byte("\n")) - 1; rows != s.plans {
		t.Errorf("%d rows of %d plans", rows, s.plans)
	}
	t.Logf("%d plans: %v on one machine, %v by arrays that were killed three times, interrupted once and lost "+
		"a node; %d parts were kept of the first two", s.plans, alone.Round(time.Millisecond),
		swept.Round(time.Millisecond), kept)

	out, err := s.command(array...).Output()
	if err != nil || !bytes.Equal(out, got) {
		t.Errorf("once more it makes something else: %v", err)
	}
	batch := filepath.Join(s.dir, "work", "it's 1.csv")
	text, err := os.ReadFile(batch)
	if err == nil {
		err = os.WriteFile(batch, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err = s.command(array...).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("has the parts of another sweep:\n  it's 1.csv has changed")) {
		t.Errorf("another batch was mixed in: %v\n%s", err, out)
	}
}

// tasksOf returns how many tasks the array has.
func (s *sweeper) tasksOf() int { return max(8, s.plans/20) }

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

// newSweeper starts a Slurm without any epd, and draws batches that so many plans are made of.
func newSweeper(t *testing.T, plans int) *sweeper {
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
	demo := filepath.Join(shareddata.Root(t), "testdata", "demo")
	for from, to := range map[string]string{
		"batch.csv": "it's 1.csv", "cluster.toml": "cluster.toml", "models.toml": "models.toml",
	} {
		text, err := os.ReadFile(filepath.Join(demo, from))
		if from == "batch.csv" {
			text = fourTimes(text)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(work, to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &sweeper{
		T: t, dir: dir, conf: filepath.Join(lab, "etc", "slurm.conf"), epplan: filepath.Join(bin, "epplan"),
		folder: filepath.Join(dir, "swept"), plans: plans,
		args: []string{
			"compare", "it's 1.csv", "--cluster", "cluster.toml", "--models", "models.toml", "--policy", "edl",
			"--policy=replan", "--theta",
		},
	}
	thetas := make([]string, plans-1)
	for i := range thetas {
		thetas[i] = fmt.Sprintf("%.4f", 1-float64(i)/float64(2*plans))
	}
	s.args = append(s.args, strings.Join(thetas, ","))
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

// fourTimes returns a batch with each job four times, so that tasks take a moment.
func fourTimes(batch []byte) []byte {
	header, jobs, _ := strings.Cut(string(batch), "\n")
	var out strings.Builder
	out.WriteString(header + "\n")
	for i := range 4 {
		for line := range strings.Lines(jobs) {
			fmt.Fprintf(&out, "%d-%s", i, line)
		}
	}
	return []byte(out.String())
}
