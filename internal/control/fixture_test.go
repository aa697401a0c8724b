package control

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// start is when everything in the tests begins.
var start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// hand is a clock that only moves when told.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// everything is all records in one: tests put one of theirs in its place.
type everything interface {
	RunRecords
	jobs.Records
	decide.Records
	learn.Records
	forecast.Records
	query.JobRecords
	query.SumRecords
	query.RunRecords
	query.HistoryRecords
	query.EndedRecords
}

// everythingIn is that of a store.
type everythingIn struct {
	*store.Store
	*store.Learning
}

// WriteProblem is the same of both.
func (e everythingIn) WriteProblem() error { return e.Store.WriteProblem() }

func recordsIn(e everything) Records {
	return Records{
		Runs: e, Jobs: e, Decisions: e, Models: e, Forecasts: e,
		Queries: query.Records{Jobs: e, Sums: e, Runs: e, History: e, Ended: e},
	}
}

// everything returns what options have from recordsIn.
func (o *Options) everything() everything {
	all, _ := o.Records.Runs.(everything)
	return all
}

// rig is a controller on a real store.
type rig struct {
	*Controller
	store *store.Store
	path  string
	clock *hand
	t     testing.TB
}

const enforceAll = "[live]\nmode = \"enforce\"\nhold_out = 0\nmax_slowdown = 1.5\n"

func settings(tb testing.TB, text string) *Settings {
	tb.Helper()
	s, err := ReadSettings(strings.NewReader(text), "test.toml")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func newRig(tb testing.TB, change func(*Options)) *rig {
	tb.Helper()
	return rigAt(tb, filepath.Join(tb.TempDir(), "epd.db"), &hand{now: start}, enforceAll, change)
}

func rigAt(tb testing.TB, path string, clock *hand, text string, change func(*Options)) *rig {
	tb.Helper()
	r := openRig(tb, path, clock, text, change)
	tb.Cleanup(func() { r.close() })
	return r
}

// openRig is [rigAt] for one who closes it.
func openRig(tb testing.TB, path string, clock *hand, text string, change func(*Options)) *rig {
	tb.Helper()
	storetest.NeedSQLite(tb)
	s, err := store.Open(context.Background(), path, &store.Options{
		Now: clock.read, BusyTimeout: 100 * time.Millisecond,
	})
	if err != nil {
		tb.Fatal(err)
	}
	o := Options{
		Records: recordsIn(everythingIn{s, s.Learning}), Cluster: "alpha", Settings: settings(tb, text),
		Clock: clock.read, Seed: 7,
		StoreWait: 10 * time.Second, ResolveTimeout: time.Minute,
	}
	if change != nil {
		change(&o)
	}
	c, err := New(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return &rig{Controller: c, store: s, path: path, clock: clock, t: tb}
}

func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		r.t.Error(err)
	}
	if err := r.store.Close(); err != nil {
		r.t.Error(err)
	}
}

// job returns a job as Slurm has it after the clock moved a minute.
func (r *rig) job(id slurm.JobID, change func(*slurm.Job)) slurm.Job {
	r.clock.move(time.Minute)
	j := slurm.Job{
		ID: id, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: r.clock.read(), NodeCount: 1,
		TimeLimit: live.LimitOf(time.Hour), State: slurm.JobState{Base: slurm.Running},
		Allocated: slurm.TRES{"gres/gpu": 1},
	}
	if change != nil {
		change(&j)
	}
	r.Jobs.Observe([]slurm.Job{j})
	return j
}

// ask returns a request for a job on a V100.
func ask(id slurm.JobID) *epdapi.DecideRequest {
	return &epdapi.DecideRequest{
		Job: id, Node: "n1", RunID: fmt.Sprintf("run-%d", id), GPUModel: "Tesla V100",
		GPUs: 1, UID: 1000,
		Clocks: []epdapi.ClockGroup{{Mem: 877, Core: []dvfsmodel.MHz{1380, 1237, 1087, 945, 802}}},
	}
}

func (r *rig) decide(request *epdapi.DecideRequest) live.Decision {
	r.t.Helper()
	d, err := r.Decide(context.Background(), request)
	if err != nil {
		r.t.Fatal(err)
	}
	if d.Reason == "" || d.ConfigVersion == "" || d.ID == "" {
		r.t.Errorf("decision without reason, configuration or id: %+v", d)
	}
	return d
}

func (r *rig) flush() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := r.Flush(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// base are a V100's default clocks.
var base = dvfsmodel.Setting{Core: 1380, Mem: 877}

// memoryBound returns a workload that low core clocks hardly slow down.
func memoryBound() dvfsmodel.Params {
	return dvfsmodel.Params{P0: 60, Gamma: 20, C: 150, D: 500, Delta: 0.15, T0: 100}
}

// coreBound returns one that follows the core clock.
func coreBound() dvfsmodel.Params {
	return dvfsmodel.Params{P0: 60, Gamma: 20, C: 150, D: 590, Delta: 1, T0: 10}
}

// ran returns the outcome of a run at a decision's clocks, by the truth.
func (r *rig) ran(d live.Decision, run string, truth dvfsmodel.Params) *record.Outcome {
	core, mem := base.Core, base.Mem
	o := &record.Outcome{
		RunID: run, JobID: int64(d.Job), Node: d.Node, Workload: d.Workload, GPUModel: d.GPUModel, Arm: d.Arm,
		GPUs: []string{"GPU-a"}, ExitState: record.Completed,
	}
	if d.Apply {
		core, mem = d.Core, base.Mem
		o.Setting = dvfsmodel.Setting{Core: d.Core, Mem: d.Mem}
	}
	fc, fm := float64(core/base.Core), float64(mem/base.Mem)
	pt := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: fm})
	r.clock.move(time.Duration(pt.Time * float64(time.Second)))
	o.Ended = r.clock.read()
	o.TimeS, o.GPUEnergyJ, o.GPUSource = live.Known(pt.Time), live.Known(float64(pt.Energy)), record.Counter
	o.MeanPowerW = live.Known(float64(pt.Power))
	return o
}

// takeList has a controller take Slurm's list of jobs once.
func takeList(ctx context.Context, c *Controller, source jobs.Lister) error {
	_, err := c.Jobs.Tee(source).EachJob(ctx, func(*slurm.Job) error { return nil })
	return err
}

// takeNodes has a controller take Slurm's nodes once.
func takeNodes(ctx context.Context, c *Controller, source jobs.Lister) error {
	nodes, _, err := source.Nodes(ctx)
	if err != nil {
		return err
	}
	nodes = slices.Clone(nodes)
	ctx, cancel := context.WithCancel(ctx)
	var syncing sync.WaitGroup
	syncing.Go(func() { c.Jobs.Sync(ctx, nodesAlone(nodes), 0) })
	for taken := false; !taken; runtime.Gosched() {
		_, status := c.Jobs.Status()
		has := c.Jobs.Nodes()
		taken = !status.At.IsZero() && (len(nodes) == 0 || len(has) > 0 && &has[0] == &nodes[0])
	}
	cancel()
	syncing.Wait()
	return nil
}

// nodesAlone is a Slurm that tells its nodes, and of jobs nothing.
type nodesAlone []slurm.Node

func (nodesAlone) EachJob(ctx context.Context, _ func(*slurm.Job) error) (slurm.Unread, error) {
	<-ctx.Done()
	return slurm.Unread{}, ctx.Err()
}

func (n nodesAlone) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	return n, slurm.Unread{}, nil
}

// run submits, decides, runs and records a job of the workload "train".
func (r *rig) run(id slurm.JobID, truth dvfsmodel.Params) live.Decision {
	r.t.Helper()
	r.job(id, nil)
	d := r.decide(ask(id))
	r.record(r.ran(d, ask(id).RunID, truth), store.Stored)
	return d
}

// stored returns the record of the job that was submitted last under an id.
func (r *rig) stored(id int64) record.Job {
	r.t.Helper()
	page, err := r.store.Jobs(context.Background(), &store.JobFilter{Cluster: "alpha", ID: id}, 0, 1)
	if err != nil || len(page.Jobs) != 1 {
		r.t.Fatalf("%d records of job %d, error %v", len(page.Jobs), id, err)
	}
	return page.Jobs[0]
}

func (r *rig) record(o *record.Outcome, want store.Receipt) {
	r.t.Helper()
	got, err := r.Record(context.Background(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	if got != want {
		r.t.Fatalf("outcome of run %s was %s, not %s", o.RunID, got, want)
	}
	r.flush()
}

func mode(m live.Mode) string { return fmt.Sprintf("[live]\nmode = %q\nhold_out = 0\n", m) }

var (
	dvfsNaN = dvfsmodel.MHz(math.NaN())
	dvfsInf = dvfsmodel.MHz(math.Inf(1))
)

// standings returns how all models fare.
func (r *rig) standings() []epdapi.ModelStatus {
	r.t.Helper()
	all, err := r.Queries.ModelStatuses(context.Background(), query.ForEPD())
	if err != nil {
		r.t.Fatal(err)
	}
	return ofWorkloads(all)
}

// ofWorkloads returns those of all that are of workloads. Forecasts, which are told beside
// them, are first trained in the background: a test that ends soon may see them or not.
func ofWorkloads(all []epdapi.ModelStatus) []epdapi.ModelStatus {
	return slices.DeleteFunc(all, func(m epdapi.ModelStatus) bool { return m.Workload == forecast.Workload })
}

// useModel puts a version of a workload's model in use.
func (r *rig) useModel(key record.WorkloadKey, version int64, note string) error {
	_, err := r.Queries.UseModel(context.Background(), query.ForEPD(), &epdapi.ModelChoice{
		Workload: key.Workload, GPUModel: key.GPUModel, Version: version, Note: note,
	})
	return err
}

// freeModel lets fits replace a workload's model again.
func (r *rig) freeModel(key record.WorkloadKey) error {
	_, err := r.Queries.UseModel(context.Background(), query.ForEPD(), &epdapi.ModelChoice{
		Workload: key.Workload, GPUModel: key.GPUModel, Free: true,
	})
	return err
}
