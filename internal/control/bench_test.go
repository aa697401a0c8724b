package control

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// discard keeps nothing: what is measured is the controller.
type discard struct {
	everything
	n atomic.Int64
}

func (d *discard) PutJob(context.Context, *record.Job) error { return nil }
func (d *discard) PutDecision(context.Context, *record.Decision) (int64, error) {
	return d.n.Add(1), nil
}

// knowMany makes a hundred thousand jobs of a thousand workloads known, each
// workload with a model.
func (r *rig) knowMany(many int) {
	const workloads = 1000
	key := func(i int) record.WorkloadKey {
		name := fmt.Sprintf("job-%d", i)
		return record.WorkloadKey{
			Cluster: "alpha", Workload: jobs.SourceOf(uint32(i%100), "", name).Workload(1), GPUModel: "V100",
		}
	}
	r.knowModels(workloads, key)
	r.clock.move(time.Minute)
	list := make([]slurm.Job, 0, 1000)
	for i := range many {
		list = append(list, slurm.Job{
			ID: slurm.JobID(i + 1), Name: fmt.Sprintf("job-%d", i%workloads),
			User: fmt.Sprintf("user%d", i%100), UID: uint32(i % 100),
			Account: "physics", Partition: "gpu", Submit: r.clock.read(), NodeCount: 1,
			TimeLimit: live.LimitOf(time.Hour), Allocated: slurm.TRES{"gres/gpu": 1},
		})
		if len(list) == cap(list) {
			r.Jobs.Observe(list)
			list = list[:0]
		}
	}
	r.Jobs.Observe(list)
}

// knowModels has workloads have a model each: that of the first one.
func (r *rig) knowModels(workloads int, key func(int) record.WorkloadKey) {
	r.t.Helper()
	first := key(0)
	o := record.Outcome{
		Cluster: first.Cluster, Workload: first.Workload, GPUModel: first.GPUModel,
		ExitState: record.Completed,
	}
	for i, core := range ask(1).Clocks[0].Core {
		fc, truth := float64(core/base.Core), memoryBound()
		pt := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
		o.RunID, o.Node, o.Setting = fmt.Sprint("model-", i), "n1", dvfsmodel.Setting{Core: core}
		o.TimeS, o.MeanPowerW = live.Known(pt.Time), live.Known(float64(pt.Power))
		if _, err := r.store.PutOutcome(context.Background(), &o); err != nil {
			r.t.Fatal(err)
		}
	}
	r.learner.RunEnded(context.Background(), &o)
	r.flush()
	models, err := r.store.Learning.Models(context.Background(), first)
	if err != nil || len(models) != 1 {
		r.t.Fatalf("%d models, %v", len(models), err)
	}
	var writers sync.WaitGroup
	for i := 1; i < workloads; i++ {
		writers.Go(func() {
			m := models[0]
			m.WorkloadKey = key(i)
			if _, err := r.store.Learning.PutModel(context.Background(), &m); err != nil {
				r.t.Error(err)
			}
		})
	}
	writers.Wait()
	if err := r.learner.Load(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// wideTable is as long as an H100's: 139 core clocks.
func wideTable() []epdapi.ClockGroup {
	g := epdapi.ClockGroup{Mem: 877}
	for core := dvfsmodel.MHz(1380); core > 335; core -= 7.5 {
		g.Core = append(g.Core, core)
	}
	return []epdapi.ClockGroup{g}
}

const knownJobs = 100_000

func BenchmarkDecide(b *testing.B) {
	for name, of := range map[string]struct {
		clocks  []epdapi.ClockGroup
		planned bool
	}{
		"5 clocks": {ask(1).Clocks, false}, "140 clocks": {wideTable(), false},
		"140 clocks by a plan": {wideTable(), true},
	} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, func(o *Options) { o.Records = recordsIn(&discard{everything: o.everything()}) })
			before := inHeap()
			r.knowMany(knownJobs)
			known := inHeap() - before
			if of.planned {
				r.under(planned)
				clocks := make(map[slurm.JobID]dvfsmodel.Setting, knownJobs)
				for id := range slurm.JobID(knownJobs) {
					clocks[id+1] = dvfsmodel.Setting{Core: of.clocks[0].Core[int(id)%50], Mem: 877}
				}
				r.plan(clocks)
			}
			request := ask(1)
			request.Clocks = of.clocks
			took := make([]time.Duration, 0, b.N)
			applied := 0
			b.ResetTimer()
			for i := range b.N {
				request.Job, request.RunID = slurm.JobID(i%knownJobs+1), strconv.Itoa(i)
				begin := time.Now()
				d, err := r.Decide(b.Context(), request)
				took = append(took, time.Since(begin))
				if err != nil {
					b.Fatal(err)
				}
				if d.Apply {
					applied++
				}
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "µs-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "µs-p99")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			b.ReportMetric(float64(applied)/float64(b.N), "applied")
			b.ReportMetric(float64(known)/1e6, "MB-known")
			r.flush()
			b.ReportMetric(float64(inHeap()-before)/1e6, "MB-decided")
		})
	}
}

// inHeap returns what is in use after a collection.
func inHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The goals of the performance page, with room for a slow machine.
func TestAHundredThousandJobsAreKnownInLittleMemory(t *testing.T) {
	r := newRig(t, nil)
	before := inHeap()
	r.knowMany(knownJobs)
	if used := inHeap() - before; used > 50e6 {
		t.Errorf("%d MB for %d jobs, want at most 50", used/1e6, knownJobs)
	}
	runtime.KeepAlive(r)
}
