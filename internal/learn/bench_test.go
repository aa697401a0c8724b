package learn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// remembered answers with outcomes in memory, and keeps no models.
type remembered struct {
	Records
	versions int64
	outcomes map[record.WorkloadKey][]record.Outcome // the newest first
}

func (m *remembered) OutcomesOf(
	_ context.Context, key record.WorkloadKey, _ int64, limit int,
) (store.OutcomePage, error) {
	all := m.outcomes[key]
	return store.OutcomePage{Outcomes: all[:min(limit, len(all))]}, nil
}

func (m *remembered) PutModel(context.Context, *record.Model) (int64, error) {
	m.versions++
	return m.versions, nil
}

// BenchmarkRefit fits a thousand workloads anew, of which a hundred outcomes each
// are in the records, and learns what they have in common on the way.
func BenchmarkRefit(b *testing.B) {
	const workloads, each = 1000, 100
	kept := &remembered{outcomes: make(map[record.WorkloadKey][]record.Outcome, workloads)}
	o := optionsOf(kept)
	o.Settings = func() Settings { return Settings{TimeMargin: 0.1, Explore: true} }
	o.GPU = func(string) GPU {
		gpu := GPU{Base: base, HostW: 25}
		for _, core := range clocks {
			gpu.Allowed = append(gpu.Allowed, dvfsmodel.Setting{Core: core, Mem: base.Mem})
		}
		return gpu
	}
	l := New(o)
	random := rand.New(rand.NewPCG(1, 2))
	noise := func() float64 { return math.Exp(0.02 * random.NormFloat64()) }
	keys := make([]record.WorkloadKey, workloads)
	for i := range keys {
		truth := memoryBound().Scale(0.5 + random.Float64())
		truth.Delta = random.Float64()
		keys[i] = keyOf(fmt.Sprint("w", i))
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
		clear(l.models.byKey)
		for _, key := range keys {
			if err := l.refit(b.Context(), key); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(workloads*each)*float64(b.N)/b.Elapsed().Seconds(), "outcomes/s")
}
