package loadtest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/bigslurm"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// load is what a controller is to bear.
type load struct {
	Dir, Programs, Munge string
	NodesMunge           string // another munged with the same key: the controller's serves it alone
	Release              string
	Jobs, Agents         int
	Rate                 float64 // decisions a second
	For                  time.Duration
	Brief                bool // agents report at once, instead of over a quarter of a minute
	OneThread            bool // epd runs one goroutine at a time
}

// spread is of times in milliseconds.
type spread struct{ P50, P99, Max float64 }

// result is what came of a load.
type result struct {
	Agents, Decisions, Unknown         int
	Known, Asked, All                  spread // of decisions: of jobs that are as in Slurm's last list, of others
	Failed                             []string
	Sent, Outcomes, Runs, Lost         int64
	Jobs, WantJobs, Reporting          int
	AgeMean, AgeMax                    float64 // s
	CPU                                float64 // of a core, without Slurm's commands
	RSSMean, RSSMax                    float64 // MB
	BytesPerRun                        float64
	ReportsMBPerDay, SlowestMS, SyncsS float64
}

const port = "7878"

// world is a load under way.
type world struct {
	*load
	cluster *bigslurm.Cluster
	epd     *exec.Cmd
	client  *epdapi.Client
	agents  []*daemon.RemoteController

	mu           sync.Mutex
	known, asked []float64
	out          result
	next         int // the job that is submitted next
	waiting      int // the one that waited and begins next
}

// run makes the load.
func (l *load) run() (*result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"link", "set", "lo", "up"}, {"route", "add", "local", bigslurm.Network, "dev", "lo"},
	} {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	w := &world{load: l, cluster: &bigslurm.Cluster{
		Dir: filepath.Join(l.Dir, "bin"), Release: l.Release, Jobs: l.Jobs, Nodes: l.Agents,
		Began: time.Now().Unix(),
	}}
	w.next, w.waiting = l.Jobs+1, w.cluster.Running()+1
	if err := w.cluster.Create(filepath.Join(l.Programs, "standin")); err != nil {
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	err := w.measure(ctx)
	_ = w.epd.Process.Signal(syscall.SIGTERM) // Wait tells
	if ended := w.epd.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("epd: %w", ended)
	}
	if err == nil {
		w.out.Runs, err = w.recorded(ctx)
	}
	return &w.out, err
}

// start starts the controller and waits until it knows the queue and the nodes.
func (w *world) start(ctx context.Context) error {
	config := filepath.Join(w.Dir, "epd.toml")
	err := os.WriteFile(config, []byte("[objective]\nwait_weight = 20\n\n[live]\nmode = \"enforce\"\n"), 0o600)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(w.Dir, "epd.log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has it
	socket := filepath.Join(w.Dir, "socket")
	w.epd = exec.CommandContext(ctx, "taskset", "--cpu-list", "0", filepath.Join(w.Programs, "epd"),
		"--role", "controller", "--slurm", "on",
		"--listen", "0.0.0.0:"+port, "--munge-socket", w.Munge, "--socket", socket, "--config", config,
		"--state", filepath.Join(w.Dir, "state"))
	w.epd.Env = append(os.Environ(), "PATH="+w.cluster.Dir+":"+os.Getenv("PATH"))
	if w.OneThread {
		w.epd.Env = append(w.epd.Env, "GOMAXPROCS=1")
	}
	w.epd.Stdout, w.epd.Stderr = log, log
	w.epd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := w.epd.Start(); err != nil {
		return err
	}
	w.client = epdapi.New(socket)
	for i := range w.Agents {
		w.agents = append(w.agents, daemon.NewRemoteController(
			[]string{bigslurm.NodeAddress(i) + ":" + port}, munge.NewTransport(munge.New(w.NodesMunge))))
	}
	return within(ctx, 3*time.Minute, "the controller knows the queue and the nodes", func() bool {
		s, err := w.client.Status(ctx)
		return err == nil && !s.Controller.Queue.At.IsZero() && !s.Controller.Nodes.At.IsZero()
	})
}

// within waits until something holds.
func within(ctx context.Context, most time.Duration, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s", what, most)
		}
	}
	return nil
}

// fail notes what went wrong.
func (w *world) fail(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const most = 5
	if len(w.out.Failed) < most {
		w.out.Failed = append(w.out.Failed, fmt.Sprintf("%s: %v", what, err))
	}
}

// measure has agents report and ask, and says what that took.
func (w *world) measure(ctx context.Context) error {
	reporting, stop := context.WithCancel(ctx)
	var reports, work sync.WaitGroup
	defer reports.Wait()
	defer stop()
	for i := range w.agents {
		reports.Go(func() { w.report(reporting, i) })
	}
	err := within(ctx, time.Minute, "all nodes report", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.out.Reporting == w.Agents
	})
	if err != nil {
		return fmt.Errorf("%w: %q", err, w.out.Failed)
	}
	before := recordsSize(w.Dir)
	stopSampling := w.sample(ctx)
	tick := time.NewTicker(time.Duration(float64(time.Second) / w.Rate))
	defer tick.Stop()
	for i := range int(w.Rate * w.For.Seconds()) {
		<-tick.C
		work.Go(func() { w.job(ctx, i) })
	}
	if err := stopSampling(); err != nil {
		return err
	}
	work.Wait()
	if err := w.settle(ctx); err != nil {
		return err
	}
	w.out.BytesPerRun = float64(recordsSize(w.Dir)-before) / float64(max(1, w.out.Sent))
	w.out.Agents, w.out.Decisions = w.Agents, len(w.known)+len(w.asked)
	w.out.Known, w.out.Asked = spreadOf(w.known), spreadOf(w.asked)
	w.out.All = spreadOf(slices.Concat(w.known, w.asked))
	return nil
}

// settle asks how the controller fares: of a short queue once it has a list from after the last job.
func (w *world) settle(ctx context.Context) error {
	end := time.Now()
	var s *epdapi.Status
	err := within(ctx, time.Minute, "a later list of Slurm's", func() (done bool) {
		var err error
		s, err = w.client.Status(ctx)
		return err == nil && (!w.Brief || s.Controller.Queue.At.After(end))
	})
	if err != nil {
		return err
	}
	c := s.Controller
	w.out.Outcomes, w.out.Lost, w.out.Jobs, w.out.SlowestMS = c.Outcomes, c.Lost, c.Jobs, c.SlowestDecideS*1e3
	if w.Brief {
		w.out.WantJobs = w.next - 1 - int(w.out.Sent) // those that ended are kept apart
	}
	return nil
}

// recorded returns how many runs the records have, each once.
func (w *world) recorded(ctx context.Context) (runs int64, err error) {
	db, err := sql.Open("sqlite3", filepath.Join(w.Dir, "state", "records.db"))
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // read only
	err = db.QueryRowContext(ctx, "SELECT count(DISTINCT run_id) FROM outcomes").Scan(&runs)
	return runs, err
}

// report is an agent that tells how its node fares, until the context ends.
func (w *world) report(ctx context.Context, i int) {
	node, told := nodeReport(i), false
	text, err := json.Marshal(node)
	if err != nil {
		w.fail("report", err)
		return
	}
	rest := time.Duration(rand.Float64() * float64(15*time.Second))
	if w.Brief {
		rest /= 10
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		node.At = time.Now()
		bound, cancel := context.WithTimeout(ctx, 5*time.Second)
		answer, err := w.agents[i].Report(bound, node)
		cancel()
		rest = 15 * time.Second
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.fail("report", err)
			rest = time.Second
			continue
		case answer.EveryS > 0:
			rest = live.Known(answer.EveryS).Duration()
		}
		if !told {
			told = true
			w.mu.Lock()
			w.out.Reporting++
			w.out.ReportsMBPerDay += float64(len(text)) / 1e6 * 24 * 3600 / rest.Seconds()
			w.mu.Unlock()
		}
	}
}

// gpus returns a node's first ones.
func gpus(node, count int) []string {
	all := make([]string, 0, count)
	for k := range count {
		all = append(all, fmt.Sprintf("GPU-%08x-4f50-6172-8394-a5b6c7d8e9f%d", node, k))
	}
	return all
}

const gpuModel = "NVIDIA A100-SXM4-80GB"

// nodeReport is that of a node of eight GPUs with a run on two of them.
func nodeReport(i int) *epdapi.NodeReport {
	r := &epdapi.NodeReport{
		Node: bigslurm.NodeName(i), Version: "test", Started: time.Now(), GPUs: []epdapi.NodeGPU{},
		Troubles: []epdapi.Problem{},
	}
	s := record.NewReadingsSampler(1, time.Second)
	for at := range 3600 {
		s.Add(time.Duration(at)*time.Second, time.Duration(at+1)*time.Second, 250+float64(at%60), 1200)
	}
	for k, uuid := range gpus(i, bigslurm.GPUsPerNode) {
		r.GPUs = append(r.GPUs, epdapi.NodeGPU{
			GPU: epdapi.GPU{
				UUID: uuid, Bus: fmt.Sprintf("00000000:%02x:00.0", k), Model: gpuModel, Minor: k, Power: 312.5,
				Setting: dvfsmodel.Setting{Core: 1200, Mem: 1593}, LockedCore: 1200,
			},
			Read: true, Utilisation: live.Known(0.93), MinCore: 210, MaxCore: 1410,
		})
		r.Runs = append(r.Runs, epdapi.NodeRun{
			Run: epdapi.Run{
				ID: fmt.Sprintf("old-%d-%d", i, k), Job: uint32(i + 1), GPUs: []string{uuid},
				Setting: dvfsmodel.Setting{Core: 1200}, Started: time.Now(),
			}, Partition: "gpu", Readings: s.Readings(),
		})
	}
	return r
}

// clocks are those of an A100.
var clocks = func() []epdapi.ClockGroup {
	g := epdapi.ClockGroup{Mem: 1593}
	for core := dvfsmodel.MHz(1410); core >= 210; core -= 15 {
		g.Core = append(g.Core, core)
	}
	return []epdapi.ClockGroup{g}
}()

// job is a job from its start to its outcome. Of five, two are submitted within the last
// second before they are decided, two waited in the queue, and one is on its node as Slurm's list
// has it.
func (w *world) job(ctx context.Context, i int) {
	id, r, listed := w.draw(i)
	if !listed {
		if err := w.cluster.Run(id, r); err != nil {
			w.fail("start", err)
			return
		}
		<-time.After(time.Duration(rand.Float64() * float64(time.Second)))
	}
	run := fmt.Sprintf("run-%d-%d", id, i)
	bound, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	begin := time.Now()
	d, err := w.agents[r.Node].Decide(bound, &epdapi.DecideRequest{
		Job: slurm.JobID(id), Node: bigslurm.NodeName(r.Node), RunID: run, GPUModel: gpuModel, GPUs: r.GPUs,
		Clocks: clocks, UID: 1000, Partition: hooks.Hex(bigslurm.Partition(id)),
	})
	took := float64(time.Since(begin)) / float64(time.Millisecond)
	if err != nil {
		w.fail("decide", err)
		return
	}
	w.mu.Lock()
	if listed {
		w.known = append(w.known, took)
	} else {
		w.asked = append(w.asked, took)
	}
	if d.Workload == "" || strings.Contains(d.Reason, "known") && strings.Contains(d.Reason, "job") {
		w.out.Unknown++
		if w.out.Unknown < 5 {
			w.out.Failed = append(w.out.Failed, fmt.Sprintf("job %d: %q", id, d.Reason))
		}
	}
	w.mu.Unlock()
	if !listed {
		w.end(ctx, id, r, run, &d, begin)
	}
}

// draw chooses a job: its number, where it is, and whether Slurm's list has it there.
func (w *world) draw(i int) (id int, r bigslurm.Run, listed bool) {
	now := time.Now().Unix()
	r = bigslurm.Run{Node: rand.IntN(w.Agents), GPUs: 1 + i%2, Submitted: now, Start: now}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case i%5 == 0:
		id = 1 + i/5%w.cluster.Running()
		return id, bigslurm.Run{Node: (id - 1) % w.Agents, GPUs: 2}, true
	case i%5 < 3 && w.waiting <= w.Jobs:
		id, r.Submitted = w.waiting, now-3600
		if w.waiting++; (w.waiting-1)%20 == 7 { // an array: each task gets a number of its own
			w.waiting++
		}
		return id, r, false
	}
	w.next++
	return w.next - 1, r, false
}

// end has a job end, and hands its outcome over.
func (w *world) end(
	ctx context.Context, id int, r bigslurm.Run, run string, d *live.Decision, began time.Time,
) {
	<-time.After(2 * time.Second)
	ended := time.Now()
	r.End = ended.Unix() + 1
	if err := w.cluster.Run(id, r); err != nil {
		w.fail("end", err)
		return
	}
	seconds := ended.Sub(began).Seconds()
	o := record.Outcome{
		RunID: run, JobID: int64(id), Node: d.Node, GPUModel: gpuModel, Started: began, Ended: ended,
		GPUs: gpus(r.Node, r.GPUs), ExitState: record.Completed, Setting: d.Setting, TimeS: live.Known(seconds),
		GPUEnergyJ: live.Known(300 * seconds * float64(r.GPUs)), GPUSource: record.Counter,
		MeanPowerW: live.Known(300), PeakPowerW: live.Known(350), Utilisation: live.Known(.9),
		Clocks: []live.Residency{{Setting: dvfsmodel.Setting{Core: 1200, Mem: 1593}, Seconds: seconds}},
	}
	text, err := json.Marshal(&o)
	if err != nil {
		w.fail("outcome", err)
		return
	}
	for { // as an agent does
		bound, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := w.agents[r.Node].Record(bound, text)
		cancel()
		switch {
		case err == nil:
			w.mu.Lock()
			w.out.Sent++
			w.mu.Unlock()
			return
		case !errors.Is(err, control.ErrNotYet) || ctx.Err() != nil:
			w.fail("outcome", err)
			return
		}
		<-time.After(time.Second)
	}
}

// sample looks at the process until what it returns is called.
func (w *world) sample(ctx context.Context) (stop func() error) {
	var ages, resident []float64
	pid := w.epd.Process.Pid
	begin, used := time.Now(), processorSeconds(pid)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			if s, err := w.client.Status(ctx); err == nil {
				ages = append(ages, time.Since(s.Controller.Queue.At).Seconds())
			}
			resident = append(resident, residentMB(pid, "VmRSS:"))
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() error {
		close(done)
		<-ended
		w.out.CPU = (processorSeconds(pid) - used) / time.Since(begin).Seconds()
		w.out.AgeMean, w.out.AgeMax = mean(ages), slices.Max(append(ages, 0))
		w.out.RSSMean, w.out.RSSMax = mean(resident), residentMB(pid, "VmHWM:")
		return nil
	}
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(max(1, len(all)))
}

func spreadOf(all []float64) spread {
	if len(all) == 0 {
		return spread{}
	}
	all = slices.Sorted(slices.Values(all))
	return spread{all[len(all)/2], all[len(all)*99/100], all[len(all)-1]}
}

// processorSeconds returns those of a process, without its children's.
func processorSeconds(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const user, system, hertz = 11, 12, 100
	if err != nil || !found || len(fields) <= system {
		return 0
	}
	u, err1 := strconv.ParseFloat(fields[user], 64)
	s, err2 := strconv.ParseFloat(fields[system], 64)
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return (u + s) / hertz
}

// residentMB returns a line of what the kernel says of a process's memory.
func residentMB(pid int, name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := strings.Cut(string(text), name)
	fields := strings.Fields(rest)
	if err != nil || !found || len(fields) == 0 {
		return 0
	}
	kB, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0
	}
	return kB / 1024
}

// recordsSize returns how many bytes the records take.
func recordsSize(dir string) int64 {
	files, err := filepath.Glob(filepath.Join(dir, "state", "records.db*"))
	if err != nil {
		return 0
	}
	var sum int64
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
