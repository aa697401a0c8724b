package control

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// discard keeps nothing: what is measured is the controller.
type discard struct {
	Records
	n atomic.Int64
}

func (d *discard) PutJob(context.Context, *record.Job) error { return nil }
func (d *discard) PutDecision(context.Context, *record.Decision) (int64, error) {
	return d.n.Add(1), nil
}

// knowMany makes a hundred thousand jobs of a thousand workloads known, each
// workload with a model.
func (r *rig) knowMany(jobs int) {
	samples := make([]dvfsmodel.Sample, 0, 5)
	truth := memoryBound()
	for _, core := range ask(1).Clocks[0].Core {
		fc := float64(core / base.Core)
		pt := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
		samples = append(samples, dvfsmodel.Sample{Core: core, Mem: 877, Time: pt.Time, Power: pt.Power})
	}
	const workloads = 1000
	for i := range workloads {
		m, _, _, err := fitModel(samples, base, pooled.Builtin())
		if err != nil {
			r.t.Fatal(err)
		}
		name := fmt.Sprintf("job-%d", i)
		key := record.WorkloadKey{Cluster: "alpha", Workload: sourceOf(uint32(i%100), "", name).workload(1), GPUModel: "V100"}
		r.models.change(key, func(st *standing) { st.model = m })
	}
	r.clock.move(time.Minute)
	list := make([]slurm.Job, 0, 1000)
	for i := range jobs {
		list = append(list, slurm.Job{
			ID: slurm.JobID(i + 1), Name: fmt.Sprintf("job-%d", i%workloads), User: fmt.Sprintf("user%d", i%100), UID: uint32(i % 100),
			Account: "physics", Partition: "gpu", Submit: r.clock.read(), NodeCount: 1,
			TimeLimit: live.LimitOf(time.Hour), Allocated: slurm.TRES{"gres/gpu": 1},
		})
		if len(list) == cap(list) {
			r.Observe(list)
			list = list[:0]
		}
	}
	r.Observe(list)
}

// wideTable is as long as an H100's: 139 core clocks.
func wideTable() []ClockGroup {
	g := ClockGroup{Mem: 877}
	for core := dvfsmodel.MHz(1380); core > 335; core -= 7.5 {
		g.Core = append(g.Core, core)
	}
	return []ClockGroup{g}
}

const knownJobs = 100_000

func BenchmarkDecide(b *testing.B) {
	for name, clocks := range map[string][]ClockGroup{"5 clocks": ask(1).Clocks, "140 clocks": wideTable()} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, func(o *Options) { o.Store = &discard{Records: o.Store} })
			before := inHeap()
			r.knowMany(knownJobs)
			known := inHeap() - before
			request := ask(1)
			request.Clocks = clocks
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

// inHeap is what is in use after a collection.
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

// remembered answers with outcomes in memory, and keeps no models.
type remembered struct {
	discard
	outcomes map[record.WorkloadKey][]record.Outcome // the newest first
}

func (m *remembered) OutcomesOf(_ context.Context, key record.WorkloadKey, _ int64, limit int) (store.OutcomePage, error) {
	all := m.outcomes[key]
	return store.OutcomePage{Outcomes: all[:min(limit, len(all))]}, nil
}

func (m *remembered) PutModel(context.Context, *record.Model) (int64, error) { return m.n.Add(1), nil }

// BenchmarkRefit fits a thousand workloads anew, of which a hundred outcomes each
// are in the records, and learns what they have in common on the way.
func BenchmarkRefit(b *testing.B) {
	const workloads, each = 1000, 100
	kept := &remembered{outcomes: make(map[record.WorkloadKey][]record.Outcome, workloads)}
	r := newRig(b, func(o *Options) { kept.Records, o.Store = o.Store, kept })
	r.job(1, nil)
	r.decide(ask(1)) // its clocks are known from then on
	random := rand.New(rand.NewPCG(1, 2))
	noise := func() float64 { return math.Exp(0.02 * random.NormFloat64()) }
	clocks := ask(1).Clocks[0].Core
	keys := make([]record.WorkloadKey, workloads)
	for i := range keys {
		truth := memoryBound().Scale(0.5 + random.Float64())
		truth.Delta = random.Float64()
		keys[i] = record.WorkloadKey{Cluster: "alpha", Workload: fmt.Sprint("w", i), GPUModel: "V100"}
		list := make([]record.Outcome, each)
		for k := range list {
			core := clocks[random.IntN(len(clocks))]
			fc := float64(core / base.Core)
			pt := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
			list[k] = record.Outcome{
				ExitState: record.Completed, Setting: dvfsmodel.Setting{Core: core},
				TimeS: live.Known(pt.Time * noise()), MeanPowerW: live.Known(float64(pt.Power) * noise()),
			}
		}
		kept.outcomes[keys[i]] = list
	}
	for b.Loop() {
		r.models.mu.Lock()
		clear(r.models.byKey)
		r.models.mu.Unlock()
		for _, key := range keys {
			if err := r.Refit(b.Context(), key); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(workloads*each)*float64(b.N)/b.Elapsed().Seconds(), "outcomes/s")
}
