package agent

import (
	"slices"
	"time"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/store/record"
)

// profiler makes a run's readings into its profile, in bounded memory. The
// profile of a run of which a part wasn't seen is told like any other: its
// outcome says that it is partial.
type profiler struct {
	shared bool // another run was on one of its GPUs at some time
	gpus   map[string]*gpuProfile
}

// gpuProfile is a profiler's view of one GPU.
type gpuProfile struct {
	utilisation, memory *record.SeriesSampler
	peak, total         int64 // bytes; -1: not known
}

func newProfiler(uuids []string) *profiler {
	p := &profiler{gpus: make(map[string]*gpuProfile, len(uuids))}
	for _, uuid := range uuids[:min(len(uuids), record.MaxProfileGPUs)] {
		p.gpus[uuid] = &gpuProfile{
			utilisation: record.NewProfileSampler(sampleEvery), memory: record.NewProfileSampler(sampleEvery),
			peak: -1, total: -1,
		}
	}
	return p
}

// add takes a reading of what was between two times since the run's start.
func (p *profiler) add(uuid string, from, to time.Duration, r *gpu.Reading) {
	g := p.gpus[uuid]
	if g == nil {
		return
	}
	g.peak = max(g.peak, r.MemUsed)
	if r.MemTotal > 0 {
		g.total = r.MemTotal
	}
	if from >= to {
		return
	}
	if gpu.IsMeasured(r.Utilisation) {
		g.utilisation.Add(from, to, r.Utilisation)
	}
	if r.MemUsed >= 0 && r.MemTotal > 0 {
		g.memory.Add(from, to, float64(r.MemUsed)/float64(r.MemTotal))
	}
}

// profile returns what was seen so far, of the GPUs in the order of their names.
func (p *profiler) profile(uuids []string) record.Profile {
	out := record.Profile{Alone: !p.shared}
	for _, uuid := range slices.Sorted(slices.Values(uuids)) {
		if g := p.gpus[uuid]; g != nil {
			out.GPUs = append(out.GPUs, record.GPUProfile{
				Utilisation: g.utilisation.Series(), Memory: g.memory.Series(), PeakMem: g.peak,
				MemTotal: g.total,
			})
		}
	}
	return out
}
