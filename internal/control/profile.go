package control

import (
	"cmp"
	"context"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/share"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// Bounds of what is kept of profiles.
const (
	maxProfiled = 20_000  // workloads
	maxNodes    = 100_000 // whose GPU model an agent named
)

// profiled are the profiles of workloads, each learnt when it is asked for and
// again after a run of it, and the GPU models that agents named.
type profiled struct {
	mu    sync.Mutex
	rules share.Rules
	byKey map[record.WorkloadKey]*share.Profile
	node  map[string]string // GPU model by node
}

func (p *profiled) init() {
	p.byKey, p.node = make(map[record.WorkloadKey]*share.Profile), make(map[string]string)
}

// noteNode remembers the GPU model of a node.
func (p *profiled) noteNode(node, gpuModel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.node[node]; gpuModel != "" && (known || len(p.node) < maxNodes) {
		p.node[node] = gpuModel
	}
}

// modelOf is the GPU model of a node as an agent named it; "" if none did.
func (p *profiled) modelOf(node string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.node[node]
}

// forget has a workload's profile learnt again.
func (p *profiled) forget(key record.WorkloadKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

// get is a profile by rules, nil if it must be learnt.
func (p *profiled) get(key record.WorkloadKey, rules *share.Rules) *share.Profile {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rules != *rules {
		p.rules = *rules
		clear(p.byKey)
	}
	return p.byKey[key]
}

// put keeps what was learnt by rules, unless they are others by now. Profiles
// beyond the bound are learnt each time.
func (p *profiled) put(key record.WorkloadKey, rules *share.Rules, fresh *share.Profile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.byKey[key]; p.rules == *rules && (known || len(p.byKey) < maxProfiled) {
		p.byKey[key] = fresh
	}
}

// sharing are the rules in force.
func (s *Settings) sharing() share.Rules {
	l := &s.Live.Sharing
	return share.Rules{Runs: l.Runs, Spread: l.Spread, Slowdown: l.Slowdown}
}

// profileOf is what a workload does by itself on a GPU model, from its last runs
// that had their GPUs alone. The error says that the records can't be read.
func (c *Controller) profileOf(ctx context.Context, key record.WorkloadKey) (*share.Profile, error) {
	rules := c.settings.Load().sharing()
	if known := c.profiles.get(key, &rules); known != nil {
		return known, nil
	}
	recorded, err := store.Within(ctx, c.options.StoreWait, func(ctx context.Context) ([]record.Profiled, error) {
		return c.options.Store.Profiles(ctx, key, 2*share.MaxRuns)
	})
	if err != nil {
		return nil, err
	}
	runs := make([]share.Run, len(recorded))
	for i := range recorded {
		r := &recorded[i]
		runs[i] = share.Run{TimeS: r.TimeS, Slowdown: r.Slowdown.Or(c.slowdown(key, r.Setting)), Profile: &r.Profile}
	}
	fresh := share.Learn(runs, &rules)
	c.profiles.put(key, &rules, fresh)
	return fresh, nil
}

// slowdown is how many times its time at default clocks a workload takes at a
// setting, by its model; 1 where that says nothing.
func (c *Controller) slowdown(key record.WorkloadKey, at dvfsmodel.Setting) float64 {
	if at.Core == 0 && at.Mem == 0 {
		return 1
	}
	view, standard, ok := c.foresee(key.Workload, key.GPUModel)
	if !ok {
		return 1
	}
	pt := view.model.At(cmp.Or(at.Core, standard.Core), cmp.Or(at.Mem, standard.Mem))
	if !view.model.Covers(&pt) || !(pt.Time > 0 && standard.Time > 0) {
		return 1
	}
	return pt.Time / standard.Time
}
