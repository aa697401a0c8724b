package agent_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// model is what runs on a host should come to, in the simplest words.
type model struct {
	host  *host
	agent *agent.Agent
	open  map[uint32]live.Run // by job
	runs  int
}

// faster is the faster of two values of each control; 0, the default, is the fastest. Of two power profiles
// none is.
func faster(a, b dvfsmodel.Setting) (s dvfsmodel.Setting) {
	for c := range gpu.NumControls {
		if c.Of(a) != 0 && c.Of(b) != 0 && (c != gpu.WorkloadProfile || a.Profile == b.Profile) {
			c.Put(&s, max(c.Of(a), c.Of(b)))
		}
	}
	return s
}

func (m *model) want(i int) dvfsmodel.Setting {
	var want dvfsmodel.Setting
	first := true
	for _, r := range m.open {
		if !slices.Contains(r.GPUs, m.host.uuids[i]) {
			continue
		}
		s := r.Setting
		if r.Wish.OptOut {
			s = free
		}
		if first {
			want, first = s, false
			continue
		}
		want = faster(want, s)
	}
	return want
}

func (m *model) check(t *rapid.T) {
	for i := range m.host.sims {
		want := m.want(i)
		if got := m.host.locked(i); got != want {
			t.Fatalf("GPU %d is locked at %v, want %v; open: %v", i, got, want, m.open)
		}
		journalled := slices.Contains(m.host.journal.files(".json"), m.host.uuids[i]+".json")
		if journalled != (want != free) {
			t.Fatalf("GPU %d is locked at %v, journalled: %v", i, want, journalled)
		}
	}
}

// handsOffAll puts all runs to default clocks.
func (m *model) handsOffAll() {
	for job, r := range m.open {
		r.Setting = free
		m.open[job] = r
	}
}

func drawRun(t *rapid.T, h *host, n int) live.Run {
	gpus := rapid.SliceOfNDistinct(rapid.IntRange(0, len(h.sims)-1), 1, len(h.sims),
		rapid.ID[int]).Draw(t, "gpus")
	r := h.run(fmt.Sprintf("r%d", n), rapid.Uint32Range(1, 5).Draw(t, "job"), dvfsmodel.Setting{
		Core: rapid.SampledFrom([]dvfsmodel.MHz{0, 1600, 1700, 1800, 2000}).Draw(t, "core"),
		Mem:  rapid.SampledFrom([]dvfsmodel.MHz{0, 4000, 4500, 5500}).Draw(t, "mem"),
		Cap:  rapid.SampledFrom([]dvfsmodel.Watt{0, 120, 180, 249}).Draw(t, "cap"),
		Profile: rapid.SampledFrom([]dvfsmodel.PowerProfile{0, dvfsmodel.MaxQ, dvfsmodel.MaxP}).
			Draw(t, "profile"),
	}, gpus...)
	r.Wish.OptOut = rapid.IntRange(0, 9).Draw(t, "opt out") == 0
	return r
}

func TestOverlappingRunsLockTheFastestOfWhatTheyWant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{host: newHost(t, "sim:3,model=GTX1080Ti,profiles"), open: map[uint32]live.Run{}}
		m.agent = m.host.started()
		ctx := context.Background()
		rt.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"apply": func(t *rapid.T) {
				m.runs++
				r := drawRun(t, m.host, m.runs)
				if _, err := m.agent.Apply(ctx, r); err != nil {
					t.Fatalf("apply: %v", err)
				}
				m.open[r.Job] = r
			},
			"end": func(t *rapid.T) {
				job := rapid.Uint32Range(1, 5).Draw(t, "job")
				_, open := m.open[job]
				if _, err := m.agent.End(ctx, job, "n1"); (err == nil) != open {
					t.Fatalf("end of job %d, open: %v: %v", job, open, err)
				}
				delete(m.open, job)
			},
			"hands off": func(t *rapid.T) {
				if len(m.open) == 0 {
					t.Skip("nothing runs")
				}
				job := rapid.SampledFrom(slices.Sorted(maps.Keys(m.open))).Draw(t, "job")
				r := m.open[job]
				if err := m.agent.HandsOff(ctx, r.ID, "test"); err != nil {
					t.Fatalf("hands off: %v", err)
				}
				r.Setting = free
				m.open[job] = r
			},
			"restart": func(*rapid.T) {
				m.agent = m.host.started()
				m.handsOffAll()
			},
			"restore": func(t *rapid.T) {
				if report, err := m.agent.Restore(ctx, "test"); err != nil || !report.Clean() {
					t.Fatalf("restore: %v %v", report, err)
				}
				m.handsOffAll()
			},
			"sweep": func(t *rapid.T) {
				if _, err := m.agent.Sweep(ctx, alive, ignoreMissing); err != nil {
					t.Fatalf("sweep: %v", err)
				}
			},
		})
	})
}

// Whatever goes wrong in between: what is locked is journalled, and once the
// faults are gone and all has ended, nothing is left.
func TestFaultsAtRandomLeaveNothingLockedOnceTheyAreGone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHost(t, twoGPUs)
		h.options = func(o *agent.Options) { o.Grace = 1 }
		a := h.started()
		ctx := context.Background()
		runs := 0
		rt.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for i := range h.sims {
					if h.locked(i) != free && len(h.journal.files(h.uuids[i]+".json")) == 0 {
						t.Fatalf("GPU %d is locked without an entry", i)
					}
				}
			},
			"fault": func(t *rapid.T) {
				h.faults.Add(gpu.Fault{
					GPU: rapid.IntRange(-1, 1).Draw(t, "gpu"),
					Op: rapid.SampledFrom([]gpu.Op{
						gpu.OpOpen, gpu.OpClocks, gpu.OpSet, gpu.OpRelease, gpu.OpRead, gpu.OpSharing,
					}).Draw(t, "op"),
					Kind: rapid.SampledFrom([]gpu.FaultKind{
						gpu.FaultPermission, gpu.FaultUnsupported, gpu.FaultTransient, gpu.FaultReload,
						gpu.FaultReset,
					}).Draw(t, "kind"),
					After: rapid.IntRange(0, 3).Draw(t, "after"),
					Count: rapid.IntRange(1, 3).Draw(t, "count"),
				})
			},
			"apply": func(t *rapid.T) {
				runs++
				got, err := a.Apply(ctx, drawRun(t, h, runs))
				if err == nil && !got.Locked && got.HandsOff == "" {
					t.Fatalf("apply: %+v", got)
				}
			},
			"end":     func(t *rapid.T) { end(a, rapid.Uint32Range(1, 5).Draw(t, "job")) },
			"sample":  func(*rapid.T) { _ = a.Sample(ctx) },
			"sweep":   func(*rapid.T) { _, _ = a.Sweep(ctx, alive, alive) },
			"restore": func(*rapid.T) { _, _ = a.Restore(ctx, "test") },
			"restart": func(*rapid.T) {
				a = h.agent(nil)
				_, _ = a.Start(ctx)
			},
		})
		h.faults.Clear()
		if swept, err := a.Sweep(ctx, ignoreMissing, ignoreMissing); err != nil {
			rt.Fatalf("last sweep: %v %+v", err, swept)
		}
		for i := range h.sims {
			if h.locked(i) != free {
				rt.Fatalf("GPU %d is left locked", i)
			}
		}
		if left := h.journal.files(".json"); len(left) > 0 {
			rt.Fatalf("left in the journal: %v", left)
		}
	})
}
