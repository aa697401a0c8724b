package learn

import (
	"cmp"
	"context"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/store/record"
)

// maxProfiles is of how many workloads profiles are kept.
const maxProfiles = 20_000

// profileCache are those of workloads, each learnt when it is asked for and again
// after a run of it.
type profileCache struct {
	mu    sync.Mutex
	rules colocate.Rules
	byKey map[record.WorkloadKey]*colocate.UseProfile
}

// forget has a workload's profile learnt again.
func (p *profileCache) forget(key record.WorkloadKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

// get returns a profile by rules, nil if it must be learnt.
func (p *profileCache) get(key record.WorkloadKey, rules *colocate.Rules) *colocate.UseProfile {
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
func (p *profileCache) put(key record.WorkloadKey, rules *colocate.Rules, fresh *colocate.UseProfile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.byKey[key]; p.rules == *rules && (known || len(p.byKey) < maxProfiles) {
		p.byKey[key] = fresh
	}
}

// Profile returns what a workload does by itself on a GPU model, from its last runs
// that had their GPUs alone. The error says that the records can't be read.
func (l *Learner) Profile(ctx context.Context, key record.WorkloadKey) (*colocate.UseProfile, error) {
	rules := l.options.Settings().Sharing
	if known := l.profiles.get(key, &rules); known != nil {
		return known, nil
	}
	recorded, err := l.options.Records.Profiles(ctx, key, 2*colocate.MaxRuns)
	if err != nil {
		return nil, err
	}
	runs := make([]colocate.SoloRun, len(recorded))
	for i := range recorded {
		r := &recorded[i]
		slowdown := r.Slowdown.Or(l.Slowdown(key, r.Setting))
		runs[i] = colocate.SoloRun{TimeS: r.TimeS, Slowdown: slowdown, Profile: &r.Profile}
	}
	fresh := colocate.Learn(runs, &rules)
	l.profiles.put(key, &rules, fresh)
	return fresh, nil
}

// Slowdown returns how many times its time at default clocks a workload takes at a
// setting, a power limit included, by its model; 1 where that says nothing.
func (l *Learner) Slowdown(key record.WorkloadKey, at dvfsmodel.Setting) float64 {
	if at == (dvfsmodel.Setting{}) {
		return 1
	}
	view := l.models.get(key)
	standard, ok := view.AtDefault()
	if !ok {
		return 1
	}
	at.Core, at.Mem = cmp.Or(at.Core, standard.Core), cmp.Or(at.Mem, standard.Mem)
	pt := view.Model.underLimit(at)
	if !view.Model.Covers(&pt) || !(pt.Time > 0 && standard.Time > 0) {
		return 1
	}
	slower := pt.Time / standard.Time
	if at.Cap > 0 { // no limit makes a run faster, whatever curves through a few samples say
		slower = max(1, slower)
	}
	return slower
}

// underLimit returns the prediction at a setting: under its power limit, if it has one, that of the clock
// which the limit leaves, though no lower than runs were measured at.
func (m *Model) underLimit(at dvfsmodel.Setting) dvfsmodel.Point {
	pt := m.At(at.Core, at.Mem)
	for at.Cap > 0 && pt.Power > at.Cap && pt.Core-ranStep >= m.Low.Core {
		pt = m.At(pt.Core-ranStep, at.Mem)
	}
	return pt
}
