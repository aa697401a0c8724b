//go:build cgo

package control

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/slurm"
)

// residentEnv makes the test program one controller with so many jobs, which
// says how much memory it has resident.
const residentEnv = "EPPLAN_TEST_RESIDENT_JOBS"

func TestMain(m *testing.M) {
	if jobs, err := strconv.Atoi(os.Getenv(residentEnv)); err == nil {
		os.Exit(residentMain(jobs))
	}
	os.Exit(m.Run())
}

// residentMain is a controller that keeps up with a queue, and prints its
// resident memory now and at most, in kB.
func residentMain(jobs int) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := resident(ctx, jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func resident(ctx context.Context, jobs int) error {
	dir, err := os.MkdirTemp("", "resident")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	s, err := store.Open(ctx, filepath.Join(dir, "epd.db"), nil)
	if err != nil {
		return err
	}
	clock := &hand{now: time.Now()}
	c, err := New(ctx, Options{Store: s, Cluster: "alpha", Clock: clock.read})
	if err != nil {
		return err
	}
	source := longQueue{jobs: jobs, controller: c}
	if err := source.submit(ctx); err != nil {
		return err
	}
	const cycles = 5 // all jobs' priorities change
	for range cycles {
		clock.move(time.Minute)
		if err := c.syncJobs(ctx, &source); err != nil {
			return err
		}
		if err := c.syncNodes(ctx, &source); err != nil {
			return err
		}
	}
	scripted := 0
	for _, j := range c.jobs.all() {
		if j.job.scripted {
			scripted++
		}
	}
	if n := c.Status(ctx); n.Jobs != jobs || n.Tokens != 0 || scripted != source.tokens() {
		return fmt.Errorf("%d jobs, %d tokens and %d scripts are known", n.Jobs, n.Tokens, scripted)
	}
	source.admin = nil
	debug.FreeOSMemory() // the product does it after a long list; here also for the tests' own memory
	now, err := resource("VmRSS:")
	if err != nil {
		return err
	}
	peak, err := resource("VmHWM:")
	if _, err := fmt.Fprintln(os.Stdout, now, peak); err != nil {
		return err
	}
	runtime.KeepAlive(c)
	return err
}

// resource is a line of what the kernel says of this process, in kB.
func resource(name string) (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte(name))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("no %s in /proc/self/status", name)
	}
	return strconv.Atoi(string(fields[0]))
}

// longQueue is a source with many jobs, nearly all of which wait, each with a
// name of its own.
type longQueue struct {
	jobs       int
	controller *Controller
	admin      []string
	cycle      int
}

// tokens is how many of the jobs were submitted through the hook.
func (q *longQueue) tokens() int { return q.jobs / 2 }

func (q *longQueue) submit(ctx context.Context) error {
	for i := range q.tokens() {
		answer, err := q.controller.Submit(ctx, &slurm.Submission{
			Version: 1, Kind: "batch", UID: uint32(1000 + i%300), Name: slurm.Hex(q.name(i)), TRESPerNode: "gres/gpu:1",
			Script: slurm.Hex("#!/bin/sh\nsrun train --seed " + strconv.Itoa(i)),
		})
		if err != nil {
			return err
		}
		q.admin = append(q.admin, string(answer.AdminComment))
		if i%(writeQueue/2) == 0 { // as fast as the store
			if err := q.controller.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return q.controller.Flush(ctx)
}

func (q *longQueue) name(i int) string {
	lot := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // a test's lots
	return fmt.Sprintf("train-resnet50-%06d-%08x", i, lot.Uint32())
}

// Jobs is the queue as slurm reads it.
func (q *longQueue) Jobs(context.Context) (slurm.Jobs, error) {
	q.cycle++
	begin := time.Now().Truncate(time.Hour)
	answer := slurm.Jobs{List: make([]slurm.Job, 0, q.jobs)}
	for i := range q.jobs {
		user := i % 300
		j := slurm.Job{
			ID: slurm.JobID(i + 1), ArrayTask: -1, Name: q.name(i), User: fmt.Sprintf("user%03d", user), UID: uint32(1000 + user),
			Account: fmt.Sprintf("project%02d", user%40), Partition: []string{"gpu", "long", "debug"}[user%3], QOS: "normal",
			State: slurm.JobState{Base: slurm.Pending}, Reason: []string{"Priority", "Resources", "Dependency"}[(i+q.cycle*(i%100/99))%3], // one in a hundred changes
			Priority: small(1_000_000 - i - q.cycle), TimeLimit: slurm.Limit{Set: true, Duration: time.Duration(1+i%48) * time.Hour},
			Submit: begin.Add(-time.Duration(i) * time.Second), NodeCount: 1 + i%4, TRESPerNode: fmt.Sprintf("gres:gpu:%d", 1+i%4),
			Requested: slurm.TRES{"cpu": float64(8 * (1 + i%4)), "mem": float64(64 << 30), "gres/gpu": float64(1 + i%4), "node": 1, "billing": 8},
		}
		if i < len(q.admin) {
			j.AdminComment = q.admin[i]
		}
		if i%10 == 0 {
			j.Comment = fmt.Sprintf("run %d of the sweep; epplan:deadline=2030-01-01T%02d:00:00Z", i, i%24)
		}
		if i%20 == 0 {
			j.State.Base, j.Start, j.NodeList, j.Allocated = slurm.Running, begin, fmt.Sprintf("node%04d", i%2000), j.Requested
			j.Nodes = []string{j.NodeList}
		}
		answer.List = append(answer.List, j)
	}
	return answer, nil
}

// Nodes are two thousand.
func (q *longQueue) Nodes(context.Context) ([]slurm.Node, error) {
	const count = 2000
	nodes := make([]slurm.Node, 0, count)
	for i := range count {
		nodes = append(nodes, slurm.Node{
			Name: fmt.Sprintf("node%04d", i), State: slurm.NodeState{Base: "MIXED"}, Features: []string{"a100", "nvlink"},
			Partitions: []string{"gpu", "long"}, Gres: []slurm.Gres{{Name: "gpu", Type: "a100", Count: 4}}, CPUs: 64,
		})
	}
	return nodes, nil
}

// measureResident is the resident memory of a controller in a process of its
// own, and the most that it had, in MB.
func measureResident(tb testing.TB, jobs int) (now, peak float64) {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	command := exec.CommandContext(tb.Context(), program) //nolint:gosec // this program
	command.Env = append(os.Environ(), residentEnv+"="+strconv.Itoa(jobs))
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		tb.Fatalf("%v: %s", err, complaint.Bytes())
	}
	var nowKB, peakKB float64
	if _, err := fmt.Sscan(string(out), &nowKB, &peakKB); err != nil {
		tb.Fatalf("%q: %v", out, err)
	}
	return nowKB / 1024, peakKB / 1024
}

func BenchmarkResident(b *testing.B) {
	for _, jobs := range []int{0, knownJobs} {
		b.Run(strconv.Itoa(jobs)+" jobs", func(b *testing.B) {
			for range b.N {
				now, peak := measureResident(b, jobs)
				b.ReportMetric(now, "MB-resident")
				b.ReportMetric(peak, "MB-peak")
			}
		})
	}
}

// The goal of the performance page.
func TestAControllerWithAHundredThousandJobsHasLessThanSixtyMegabytesResident(t *testing.T) {
	if now, _ := measureResident(t, knownJobs); now >= 60 {
		t.Errorf("%.1f MB, want less than 60", now)
	}
}
