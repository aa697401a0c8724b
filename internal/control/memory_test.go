package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// residentEnv makes the test program one controller with so many jobs, which
// says how much memory it has resident, and sampleEnv is a squeue --json that
// was recorded.
const (
	residentEnv = "EPPLAN_TEST_RESIDENT_JOBS"
	sampleEnv   = "EPPLAN_TEST_SQUEUE_SAMPLE"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "squeue" {
		os.Exit(exitStatus(printQueue(filepath.Dir(os.Args[0]))))
	}
	if jobs, err := strconv.Atoi(os.Getenv(residentEnv)); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		os.Exit(exitStatus(resident(ctx, jobs)))
	}
	os.Exit(m.Run())
}

func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// resident is a controller that keeps up with a queue, and prints its resident
// memory now and at most since the first sync, in kB, and the processor seconds
// of the first and of a later sync.
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
	c, err := New(ctx, Options{Records: RecordsIn(s), Cluster: "alpha", Clock: clock.read})
	if err != nil {
		return err
	}
	source, err := newLongQueue(dir, jobs)
	if err != nil {
		return err
	}
	if err := source.submit(ctx, c); err != nil {
		return err
	}
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the most so far is now
		return err
	}
	const cycles = 5 // all jobs' priorities change
	var seconds [cycles]float64
	for i := range cycles {
		clock.move(time.Minute)
		if err := source.next(i); err != nil {
			return err
		}
		begin := processorSeconds()
		if err := takeList(ctx, c, source); err != nil {
			return err
		}
		seconds[i] = processorSeconds() - begin
		if err := takeNodes(ctx, c, source); err != nil {
			return err
		}
	}
	peak, err := resource("VmHWM:")
	if err != nil {
		return err
	}
	scripted := 0
	for _, job := range c.Jobs.All() {
		if job.Scripted {
			scripted++
		}
	}
	n := c.status()
	if n.Jobs != jobs || n.Tokens != 0 || scripted != source.tokens() {
		return fmt.Errorf("%d jobs, %d tokens and %d scripts are known", n.Jobs, n.Tokens, scripted)
	}
	debug.FreeOSMemory() // the product does it after a long list; here for what the test looked at
	now, err := resource("VmRSS:")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, now, peak, seconds[0], slices.Min(seconds[1:]))
	runtime.KeepAlive(c)
	return err
}

// processorSeconds are this process's.
func processorSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return math.NaN()
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// resource returns a line of what the kernel says of this process, in kB.
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
// name of its own. Its squeue is this program.
type longQueue struct {
	*slurm.Client
	dir  string
	jobs int
}

func newLongQueue(dir string, jobs int) (*longQueue, error) {
	q := &longQueue{slurm.NewClient(slurm.ExecRunner{Dir: dir, Timeout: time.Minute}, time.Minute), dir, jobs}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return q, errors.Join(os.Symlink(program, filepath.Join(dir, "squeue")),
		os.Symlink(os.Getenv(sampleEnv), filepath.Join(dir, "sample.json")))
}

// tokens returns how many of the jobs were submitted through the hook.
func (q *longQueue) tokens() int { return q.jobs / 2 }

func (q *longQueue) submit(ctx context.Context, c *Controller) error {
	var admin bytes.Buffer
	for i := range q.tokens() {
		answer, err := c.Submit(ctx, &hooks.Submission{
			Version: 1, Kind: "batch", UID: uint32(1000 + i%300), Name: hooks.Hex(queuedName(i)),
			TRESPerNode: "gres/gpu:1",
			Script:      hooks.Hex("#!/bin/sh\nsrun train --seed " + strconv.Itoa(i)),
		})
		if err != nil {
			return err
		}
		admin.WriteString(string(answer.AdminComment) + "\n")
		if i%8192 == 0 { // as fast as the store, for which not too many may wait
			if err := c.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(c.Flush(ctx), os.WriteFile(filepath.Join(q.dir, "admin"), admin.Bytes(), 0o600))
}

func queuedName(i int) string {
	lot := rand.New(rand.NewPCG(uint64(i), 1))
	return fmt.Sprintf("train-resnet50-%06d-%08x", i, lot.Uint32())
}

// next sets what squeue prints.
func (q *longQueue) next(cycle int) error {
	return os.WriteFile(filepath.Join(q.dir, "cycle"), fmt.Appendln(nil, q.jobs, cycle), 0o600)
}

// printQueue is squeue --json: the values of a recorded job are replaced.
func printQueue(dir string) error {
	var texts [3][]byte
	for i, name := range []string{"sample.json", "cycle", "admin"} {
		var err error
		if texts[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	sample, text, admin := texts[0], texts[1], texts[2]
	var jobs, cycle int
	if _, err := fmt.Sscan(string(text), &jobs, &cycle); err != nil {
		return err
	}
	head, rest, _ := bytes.Cut(sample, []byte("\"jobs\": [\n"))
	one, _, found := bytes.Cut(rest, []byte("\n    },\n"))
	if !found {
		return errors.New("no job in the sample")
	}
	tokens := strings.Split(string(admin), "\n")
	out := bufio.NewWriterSize(os.Stdout, 1<<18)
	_, _ = fmt.Fprintf(out, "%s\"jobs\": [\n", head)
	record := templateOf(string(one))
	for i := range jobs {
		token := ""
		if i < len(tokens) {
			token = tokens[i]
		}
		if i > 0 {
			_, _ = out.WriteString(",\n")
		}
		record.print(out, longJob(i, cycle, token))
		_, _ = out.WriteString("\n    }") // Flush tells
	}
	_, _ = fmt.Fprint(out, "\n  ]\n}\n")
	return out.Flush()
}

// template is a record by the values in it.
type template struct {
	before, names []string // the text before a value, the value's name
	end           string
}

func templateOf(record string) template {
	var t template
	at := 0
	for _, m := range regexp.MustCompile(`(?m)^      "(\w+)": ([^\[{\n]*?),?$`).FindAllStringSubmatchIndex(
		record, -1,
	) {
		t.before, t.names = append(t.before, record[at:m[4]]), append(t.names, record[m[2]:m[3]])
		at = m[4]
	}
	t.end = record[at:]
	return t
}

// print writes a record with other values; those that aren't given stay.
func (t template) print(out *bufio.Writer, values map[string]any) {
	drop := 0
	text := func(s string) { _, _ = out.WriteString(s[drop:]) }
	for i, name := range t.names {
		text(t.before[i])
		drop = 0
		after := t.end
		if i+1 < len(t.before) {
			after = t.before[i+1]
		}
		if v, ok := values[name]; ok {
			_, _ = fmt.Fprintf(out, "%#v", v)
			drop = strings.IndexAny(after, "\n")
			if drop > 0 && after[drop-1] == ',' {
				drop--
			}
		}
	}
	text(t.end)
}

// longJob returns what is particular about a job.
func longJob(i, cycle int, token string) map[string]any {
	user, begin := i%300, int64(1795000000)
	tres := fmt.Sprintf("cpu=%d,mem=64G,node=1,billing=8,gres/gpu=%d", 8*(1+i%4), 1+i%4)
	j := map[string]any{
		"job_id": i + 1, "array_job_id": 0, "name": queuedName(i), "user_name": fmt.Sprintf("user%03d", user),
		"user_id": 1000 + user,
		"account": fmt.Sprintf("project%02d", user%40), "partition": []string{"gpu", "long", "debug"}[user%3],
		// one in a hundred changes.
		"job_state": "PENDING", "state_reason": []string{
			"Priority", "Resources", "Dependency",
		}[(i+cycle*(i%100/99))%3],
		"priority": 1_000_000 - i - cycle, "time_limit": 60 * (1 + i%48), "submit_time": begin - int64(i),
		"start_time": 0, "end_time": 0,
		"nodes": "", "node_count": 1 + i%4, "tres_per_node": fmt.Sprintf("gres:gpu:%d", 1+i%4),
		"tres_req_str": tres, "tres_alloc_str": "",
		"admin_comment": token, "comment": "",
	}
	if i%10 == 0 {
		j["comment"] = fmt.Sprintf("run %d of the sweep; epplan:deadline=2030-01-01T%02d:00:00Z", i, i%24)
	}
	if i%20 == 0 {
		j["job_state"], j["start_time"], j["nodes"], j["tres_alloc_str"] = "RUNNING", begin,
			fmt.Sprintf("node%04d", i%2000), tres
	}
	return j
}

// Nodes returns two thousand.
func (q *longQueue) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	const count = 2000
	nodes := make([]slurm.Node, 0, count)
	for i := range count {
		nodes = append(nodes, slurm.Node{
			Name: fmt.Sprintf("node%04d", i), State: slurm.NodeState{Base: "MIXED"},
			Features:   []string{"a100", "nvlink"},
			Partitions: []string{"gpu", "long"}, Gres: []slurm.Gres{{Name: "gpu", Type: "a100", Count: 4}},
			CPUs: 64,
		})
	}
	return nodes, slurm.Unread{}, nil
}

// usage is what a controller with many jobs takes.
type usage struct{ resident, peak, first, later float64 } // MB, s

// measureResident returns a controller in a process of its own.
func measureResident(tb testing.TB, jobs int) usage {
	tb.Helper()
	storetest.NeedSQLite(tb)
	sample := shareddata.Path(tb, "../slurm-lab/samples/squeue.json")
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	command := exec.CommandContext(tb.Context(), program)
	command.Env = append(os.Environ(), residentEnv+"="+strconv.Itoa(jobs), sampleEnv+"="+sample)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		tb.Fatalf("%v: %s", err, complaint.Bytes())
	}
	var u usage
	if _, err := fmt.Sscan(string(out), &u.resident, &u.peak, &u.first, &u.later); err != nil {
		tb.Fatalf("%q: %v", out, err)
	}
	u.resident = u.resident/1024 - ofTests
	u.peak = u.peak/1024 - ofTests
	return u
}

// ofTests is what tables take of the library that draws test data, which epd doesn't
// have, MB: pgregory.net/rapid.expandRangeTable in a heap profile has 1.6.
const ofTests = 1.5

func BenchmarkResident(b *testing.B) {
	for _, jobs := range []int{0, knownJobs} {
		b.Run(strconv.Itoa(jobs)+" jobs", func(b *testing.B) {
			for range b.N {
				u := measureResident(b, jobs)
				b.ReportMetric(u.resident, "MB-resident")
				b.ReportMetric(u.peak, "MB-peak")
				b.ReportMetric(u.first, "CPU-s-first")
				b.ReportMetric(u.later, "CPU-s-later")
			}
		})
	}
}

// raced reports whether this program has the race detector in it.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// The goals of the performance page.
func TestAControllerWithAHundredThousandJobsHasLessThanSixtyFourMegabytesResident(t *testing.T) {
	if raced() {
		t.Skip("the race detector takes several times the program's own memory")
	}
	const tries = 3 // what the garbage collector has given back yet differs by a megabyte or two
	for range tries {
		u := measureResident(t, knownJobs)
		if u.resident < 64 && u.peak < 100 {
			return
		}
		t.Logf("%.1f MB, want less than 64; at most %.1f MB, want less than 100", u.resident, u.peak)
	}
	t.Errorf("more than that in each of %d tries", tries)
}
