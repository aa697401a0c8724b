package learn

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store/record"
)

// What workloads on a GPU model have in common is learnt from the last runs of
// each, beginning with what is known of GPUs in general.
const (
	generalWeight = 8   // workloads that what is known in general counts for
	maxEvidence   = 200 // workloads of a GPU model that are learnt from; any beyond
	minChanged    = 3   // workloads with new runs from which on it is learnt anew
	changedShare  = 0.2 // and the part of all of them
)

// priors are what workloads have in common, by GPU model and power profile.
type priors struct {
	mu    sync.Mutex
	byGPU map[priorKey]*gpuPrior
}

// priorKey names a GPU model under a power profile.
type priorKey struct {
	gpuModel string
	profile  dvfsmodel.PowerProfile
}

func priorOf(key record.WorkloadKey) priorKey {
	return priorKey{key.GPUModel, record.ProfileOf(key.Workload)}
}

type gpuPrior struct {
	curves  *pooled.Curves
	base    dvfsmodel.Setting
	samples map[record.WorkloadKey][]dvfsmodel.Sample
	changed map[record.WorkloadKey]bool // since it was learnt
	// underLimits are the runs of workloads that ran under several power limits, and common is what these
	// have in common; nil: they are too few.
	underLimits map[record.WorkloadKey][]dvfsmodel.Sample
	common      *commonLimits
}

// get is what is known of workloads on a GPU model.
func (p *priors) get(gpuModel priorKey, base dvfsmodel.Setting) *pooled.Curves {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.byGPU[gpuModel]; g != nil && g.curves != nil && g.base == base {
		return g.curves
	}
	return pooled.Builtin()
}

// note keeps the last runs of a workload, for later ones: at the clocks that ran, and under the power
// limits that were in force.
func (p *priors) note(
	key record.WorkloadKey, samples, underLimits []dvfsmodel.Sample, base dvfsmodel.Setting,
) {
	if !severalSettings(samples) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.byGPU[priorOf(key)]
	if g == nil || g.base != base {
		g = &gpuPrior{
			base: base, samples: make(map[record.WorkloadKey][]dvfsmodel.Sample),
			changed:     make(map[record.WorkloadKey]bool),
			underLimits: make(map[record.WorkloadKey][]dvfsmodel.Sample),
		}
		if p.byGPU == nil {
			p.byGPU = make(map[priorKey]*gpuPrior)
		}
		p.byGPU[priorOf(key)] = g
	}
	if _, known := g.samples[key]; !known && len(g.samples) >= maxEvidence {
		for other := range g.samples {
			delete(g.samples, other)
			delete(g.changed, other)
			delete(g.underLimits, other)
			break
		}
	}
	g.samples[key], g.changed[key] = samples, true
	if delete(g.underLimits, key); severalLimits(underLimits) {
		g.underLimits[key] = underLimits
	}
}

// forget drops the runs of a workload, some of which were taken out of the records,
// and what was learnt with them: it is learnt anew from the other workloads.
func (p *priors) forget(key record.WorkloadKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.byGPU[priorOf(key)]
	if g == nil || g.samples[key] == nil {
		return
	}
	delete(g.samples, key)
	delete(g.changed, key)
	delete(g.underLimits, key)
	g.curves, g.common = nil, nil
	for other := range g.samples {
		g.changed[other] = true
	}
}

func severalSettings(samples []dvfsmodel.Sample) bool {
	for i := range samples {
		if samples[i].Core != samples[0].Core || samples[i].Mem != samples[0].Mem {
			return true
		}
	}
	return false
}

// learn learns anew from workloads on a GPU model, if enough of them have new
// runs.
func (p *priors) learn(gpuModel priorKey) {
	p.mu.Lock()
	g := p.byGPU[gpuModel]
	if g == nil || float64(len(g.changed)) < max(minChanged, changedShare*float64(len(g.samples))) {
		p.mu.Unlock()
		return
	}
	clear(g.changed)
	workloads := make([][]dvfsmodel.Sample, 0, len(g.samples))
	// Sums in one order give one result.
	for _, key := range slices.SortedFunc(maps.Keys(g.samples), record.WorkloadKey.Compare) {
		workloads = append(workloads, g.samples[key])
	}
	base, under := g.base, maps.Clone(g.underLimits)
	p.mu.Unlock()
	curves := pooled.LearnCurves(workloads, base, pooled.Builtin(), generalWeight, noiseOf(workloads))
	common := learnCommon(under, base)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byGPU[gpuModel] != g {
		return
	}
	if g.common = common; curves.Validate() == nil {
		g.curves = curves
	}
}

// noiseOf is the mean of how much runs of each workload differ.
func noiseOf(workloads [][]dvfsmodel.Sample) pooled.Noise {
	var time, power float64
	for _, samples := range workloads {
		n := pooled.NoiseOf(samples)
		time, power = time+n.Time*n.Time, power+n.Power*n.Power
	}
	count := float64(len(workloads))
	return pooled.Noise{Time: math.Sqrt(time / count), Power: math.Sqrt(power / count)}
}

// learnFromStore learns from the workloads whose models are in the store.
func (l *Learner) learnFromStore(ctx context.Context) {
	seen := make(map[priorKey]int)
	for _, key := range l.models.keys() {
		if seen[priorOf(key)]++; seen[priorOf(key)] > maxEvidence {
			continue
		}
		base, ok := l.Base(key.GPUModel, l.models.get(key).Model)
		if !ok {
			continue
		}
		known, err := l.evidenceOf(ctx, key, base)
		if err != nil {
			l.options.Log.Warn("what workloads have in common can't be learnt from the records", "error", err)
			return
		}
		l.priors.note(key, known.samples(), known.underLimits, base)
	}
	for gpuModel := range seen {
		l.priors.learn(gpuModel)
	}
}
