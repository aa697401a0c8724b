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

// What one user's workloads count for together, for other users', and those of the runs of one node:
// whoever records what isn't so moves the mean that others begin with by no more than userVotes in
// generalWeight and userVotes of the way, and a node by nodeVotes in generalWeight and nodeVotes. Their own
// workloads count in full for a user's.
const (
	userVotes = 2
	nodeVotes = 4
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
	samples map[record.WorkloadKey]workloadRuns
	changed map[record.WorkloadKey]bool // since it was learnt
	// common is what workloads that ran under several power limits have in common; nil: they are too few.
	common *commonLimits
	// learnt is what curves were learnt from, and own what was learnt from that for users whose workloads don't
	// count in full for others; empty until it is asked for.
	learnt []workloadRuns
	own    map[string]*pooled.Curves
}

// workloadRuns are the last runs of a workload, of whom and where.
type workloadRuns struct {
	samples     []dvfsmodel.Sample
	underLimits []dvfsmodel.Sample // those under power limits that are known
	user        string
	nodes       map[string]float64 // parts of the runs
}

// get returns what is known of workloads on a GPU model, for those of a user.
func (p *priors) get(gpuModel priorKey, base dvfsmodel.Setting, user string) *pooled.Curves {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.byGPU[gpuModel]
	if g == nil || g.curves == nil || g.base != base {
		return pooled.BuiltinCurves()
	}
	if own, known := g.own[user]; known {
		return own
	}
	curves := g.curves
	if weights, full := weightsFor(g.learnt, user), weightsFor(g.learnt, ""); !slices.Equal(weights, full) {
		if own := learnWeighted(g.learnt, weights, base); own.Validate() == nil {
			curves = own
		}
	}
	g.own[user] = curves
	return curves
}

// weightsFor returns what workloads count for where those of a user are predicted; "": of any other one.
func weightsFor(all []workloadRuns, user string) []float64 {
	weights := make([]float64, len(all))
	ofUser, ofNode := make(map[string]float64), make(map[string]float64)
	for i := range all {
		ofUser[all[i].user]++
	}
	for i := range all {
		weights[i] = min(1, userVotes/ofUser[all[i].user])
		for node, part := range all[i].nodes {
			ofNode[node] += weights[i] * part
		}
	}
	for i := range all {
		if w := &all[i]; user != "" && w.user == user {
			weights[i] = 1
		} else if len(w.nodes) > 0 {
			counts := 0.0
			for _, node := range slices.Sorted(maps.Keys(w.nodes)) { // sums in one order give one result
				counts += w.nodes[node] * min(1, nodeVotes/ofNode[node])
			}
			weights[i] *= min(1, counts)
		}
	}
	return weights
}

func learnWeighted(all []workloadRuns, weights []float64, base dvfsmodel.Setting) *pooled.Curves {
	workloads := make([][]dvfsmodel.Sample, len(all))
	for i := range all {
		workloads[i] = all[i].samples
	}
	return pooled.LearnWeightedCurves(workloads, weights, base, pooled.BuiltinCurves(), generalWeight,
		noiseOf(workloads, weights))
}

// note keeps the last runs of a workload, for later ones.
func (p *priors) note(key record.WorkloadKey, runs workloadRuns, base dvfsmodel.Setting) {
	if !hasSeveralSettings(runs.samples) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.byGPU[priorOf(key)]
	if g == nil || g.base != base {
		g = &gpuPrior{
			base: base, samples: make(map[record.WorkloadKey]workloadRuns),
			changed: make(map[record.WorkloadKey]bool),
		}
		if p.byGPU == nil {
			p.byGPU = make(map[priorKey]*gpuPrior)
		}
		p.byGPU[priorOf(key)] = g
	}
	if _, known := g.samples[key]; !known && len(g.samples) >= maxEvidence {
		other := g.crowded()
		delete(g.samples, other)
		delete(g.changed, other)
	}
	g.samples[key], g.changed[key] = runs, true
}

// crowded returns a workload of the user who has most of them.
func (g *gpuPrior) crowded() (of record.WorkloadKey) {
	count, most := make(map[string]int), 0
	for key, runs := range g.samples {
		if count[runs.user]++; count[runs.user] > most {
			most, of = count[runs.user], key
		}
	}
	return of
}

// forget drops the runs of a workload, some of which were taken out of the records,
// and what was learnt with them: it is learnt anew from the other workloads.
func (p *priors) forget(key record.WorkloadKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.byGPU[priorOf(key)]
	if g == nil || g.samples[key].samples == nil {
		return
	}
	delete(g.samples, key)
	delete(g.changed, key)
	g.curves, g.common, g.learnt, g.own = nil, nil, nil, nil
	for other := range g.samples {
		g.changed[other] = true
	}
}

func hasSeveralSettings(samples []dvfsmodel.Sample) bool {
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
	workloads := make([]workloadRuns, 0, len(g.samples))
	// Sums in one order give one result.
	for _, key := range slices.SortedFunc(maps.Keys(g.samples), record.WorkloadKey.Compare) {
		workloads = append(workloads, g.samples[key])
	}
	base := g.base
	p.mu.Unlock()
	curves := learnWeighted(workloads, weightsFor(workloads, ""), base)
	common := learnCommonLimits(workloads, base)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byGPU[gpuModel] != g {
		return
	}
	if g.common = common; curves.Validate() == nil {
		g.curves, g.learnt, g.own = curves, workloads, make(map[string]*pooled.Curves)
	}
}

// noiseOf returns the mean of how much runs of each workload differ.
func noiseOf(workloads [][]dvfsmodel.Sample, weights []float64) pooled.Noise {
	var time, power, count float64
	for i, samples := range workloads {
		n, weight := pooled.NoiseOf(samples), weights[i]
		time, power, count = time+weight*n.Time*n.Time, power+weight*n.Power*n.Power, count+weight
	}
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
		l.noteRuns(ctx, key, known, base)
	}
	for gpuModel := range seen {
		l.priors.learn(gpuModel)
	}
}

// noteRuns keeps the runs of a workload, for other ones. A GPU that stands idle says nothing of work.
func (l *Learner) noteRuns(
	ctx context.Context, key record.WorkloadKey, known *evidence, base dvfsmodel.Setting,
) {
	if known.idle {
		return
	}
	l.priors.note(key, workloadRuns{
		known.samples(), known.underLimits, l.owners.of(ctx, key.Workload), known.nodeParts(),
	}, base)
}

// owners knows whose workloads are.
type owners struct {
	ask func(ctx context.Context, workload string) string // nil: each is of a user of its own

	mu    sync.Mutex
	known map[string]string // by workload
}

// of returns whose a workload is; "": nobody can say.
func (o *owners) of(ctx context.Context, workload string) string {
	if o.ask == nil {
		return workload
	}
	o.mu.Lock()
	user, known := o.known[workload]
	o.mu.Unlock()
	if known {
		return user
	}
	if user = o.ask(ctx, workload); user == "" {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	const most = 100_000
	if o.known == nil || len(o.known) >= most {
		o.known = make(map[string]string)
	}
	o.known[workload] = user
	return user
}
