package loadtest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/epplan/epplan/internal/testkit/bigslurm"
	"github.com/epplan/epplan/internal/testkit/mungetest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

// loadVariable has the load that this process is to make, as JSON: it runs in a network
// of its own.
const loadVariable = "EPPLAN_TEST_LOAD"

func TestMain(m *testing.M) {
	if text := os.Getenv(loadVariable); text != "" {
		os.Exit(child(text))
	}
	os.Exit(m.Run())
}

// child makes the load and prints what came of it.
func child(text string) int {
	var l load
	err := json.Unmarshal([]byte(text), &l)
	if err == nil {
		var r *result
		if r, err = l.run(); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(r)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// programs builds epd and the stand-in for Slurm's commands.
func programs(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("EPPLAN_LOAD_PROGRAMS"); dir != "" {
		return dir
	}
	dir := tb.TempDir()
	for _, name := range []string{"cmd/epd", "internal/testkit/bigslurm/standin"} {
		build := exec.CommandContext(tb.Context(), "go", "build", "-o", filepath.Join(dir, filepath.Base(name)),
			"../../"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := build.CombinedOutput(); err != nil {
			tb.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return dir
}

// need ends a test on a machine that can't have it.
func need(tb testing.TB) {
	tb.Helper()
	storetest.NeedSQLite(tb)
	for _, program := range []string{"ip", "taskset"} {
		_, err := exec.LookPath(program)
		shareddata.Need(tb, os.Geteuid() == 0 && err == nil,
			"a network and a core of its own need root, and "+program+": run scripts/test-packages.sh")
	}
}

// make runs a load in a process and a network of its own.
func (l load) make(tb testing.TB) *result {
	tb.Helper()
	dir, err := os.MkdirTemp("", "load") //nolint:usetesting // a socket's path has 107 bytes at most
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	l.Dir = dir
	text, err := json.Marshal(l)
	if err != nil {
		tb.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	command := exec.CommandContext(tb.Context(), program)
	command.Env = append(os.Environ(), loadVariable+"="+string(text))
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "epd.log")) // it says more, if it is there
		tb.Fatalf("%v: %s\n%s", err, complaint.Bytes(), last(log, 4000))
	}
	r := new(result)
	if err := json.Unmarshal(out, r); err != nil {
		tb.Fatalf("%q: %v", out, err)
	}
	return r
}

// last returns the last bytes of a text.
func last(text []byte, most int) []byte { return text[max(0, len(text)-most):] }

// faults returns what must not be under any load.
func (r *result) faults() (all []string) {
	note := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	note(r.Decisions == 0 || r.Unknown > 0 || len(r.Failed) > 0,
		"of %d decisions %d were of jobs that weren't known; failed: %q", r.Decisions, r.Unknown, r.Failed)
	note(r.Outcomes != r.Sent || r.Lost != 0 || r.Runs != r.Sent,
		"%d outcomes sent, %d taken, %d in the records, %d lost", r.Sent, r.Outcomes, r.Runs, r.Lost)
	note(r.Reporting != r.Agents, "%d nodes report, want %d", r.Reporting, r.Agents)
	note(r.WantJobs > 0 && r.Jobs != r.WantJobs, "%d jobs known at the end, want %d", r.Jobs, r.WantJobs)
	return all
}

func TestNoJobIsUnknownAndNothingIsLostUnderLoad(t *testing.T) {
	need(t)
	munged := mungetest.Start(t, nil)
	nodes := mungetest.Start(t, munged.Key)
	bin := programs(t)
	for _, release := range []string{bigslurm.Old, bigslurm.New} {
		t.Run(release, func(t *testing.T) {
			l := load{
				Release: release, Jobs: 2000, Agents: 20, Programs: bin, Munge: munged.Socket, NodesMunge: nodes.Socket,
				Rate: 5, For: 5 * time.Second, Brief: true,
			}
			const tries = 10 // a Prolog doesn't wait longer for a busy machine
			for range tries {
				faults := l.make(t).faults()
				if len(faults) == 0 {
					return
				}
				t.Log(strings.Join(faults, "\n"))
			}
			t.Errorf("that in each of %d tries", tries)
		})
	}
}

var (
	release   = flag.String("release", bigslurm.Old, "of the Slurm whose commands there are")
	lasting   = flag.Duration("lasting", 60*time.Second, "how long decisions are asked for, in each part")
	rate      = flag.Float64("rate", 50, "decisions a second")
	only      = flag.Int("jobs", 0, "only a part with so many jobs")
	agents    = flag.Int("agents", 1000, "of that part")
	oneThread = flag.Bool("one-thread", false, "epd runs one goroutine at a time, beside having one core")
)

// BenchmarkLoad says how what a controller takes grows with Slurm's queue and with
// the cluster, all on one core: make load.
func BenchmarkLoad(b *testing.B) {
	need(b)
	munged := mungetest.Start(b, nil)
	nodes := mungetest.Start(b, munged.Key)
	bin := programs(b)
	parts := [][2]int{{1000, 1000}, {10_000, 1000}, {100_000, 10}, {100_000, 100}, {100_000, 1000}, {1000, 10}}
	if *only > 0 {
		parts = [][2]int{{*only, *agents}}
	}
	for b.Loop() {
		var table bytes.Buffer
		w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
		_, _ = fmt.Fprintln(w, "jobs\tagents\tdecisions\tknown p50, p99\tasked p50, p99\tall p50, p99 ms\t"+
			"unknown\t"+
			"age of view mean, max s\tCPU of a core\tRSS mean, max MB\tbytes a run\tMB a day of reports\t")
		for _, part := range parts {
			l := load{
				Release: *release, Jobs: part[0], Agents: part[1], Programs: bin, Munge: munged.Socket,
				NodesMunge: nodes.Socket,
				Rate:       *rate, For: *lasting, OneThread: *oneThread,
			}
			r := l.make(b)
			if faults := r.faults(); len(faults) > 0 {
				b.Errorf("%d jobs, %d agents: %s", part[0], part[1], strings.Join(faults, "\n"))
			}
			_, _ = fmt.Fprintf(w, "%d\t%d\t%d\t%.1f, %.1f\t%.1f, %.1f\t%.1f, %.1f\t%d\t%.0f, %.0f\t%.2f\t%.0f, %.0f\t%.0f\t%.0f\t\n",
				part[0], part[1], r.Decisions, r.Known.P50, r.Known.P99, r.Asked.P50, r.Asked.P99, r.All.P50, r.All.P99,
				r.Unknown, r.AgeMean, r.AgeMax, r.CPU, r.RSSMean, r.RSSMax, r.BytesPerRun, r.ReportsMBPerDay)
			_ = w.Flush()
		}
		b.Logf("%s, %g decisions/s\n%s", *release, *rate, table.String())
	}
}
