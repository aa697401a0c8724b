package learn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// RunEnded holds a run that was stored against its workload's model, and has the model
// take account of it.
func (l *Learner) RunEnded(ctx context.Context, o *record.Outcome) {
	key := record.WorkloadKey{Cluster: o.Cluster, Workload: o.Workload, GPUModel: o.GPUModel}
	l.profiles.forget(key)
	l.judge(ctx, key, o)
	l.refitSoon(key)
}

// refitSoon has a model fitted in the background, once for many outcomes.
func (l *Learner) refitSoon(key record.WorkloadKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queued[key] {
		return
	}
	due := refit{key, l.options.Pending()}
	select {
	case l.refits <- due:
		l.queued[key] = true
	default: // the next outcome tries again
		due.done()
	}
}

// refit fits a workload's model to its last outcomes and puts it in use, unless
// it predicts what the one in use does or an administrator chose that one. The
// error says why there is no model.
func (l *Learner) refit(ctx context.Context, key record.WorkloadKey) error {
	old := l.models.get(key).Model
	base, ok := l.Base(key.GPUModel, old)
	if !ok {
		return errors.New("the GPU model's default clocks aren't known")
	}
	seen, err := l.evidenceOf(ctx, key, base)
	if err != nil {
		return fmt.Errorf("refit: %w", err)
	}
	if seen.measured { // else what was known holds, as does the model
		l.models.change(key, func(st *standing) { st.usage = seen.usage })
	}
	l.noteRuns(ctx, key, seen, base)
	l.priors.learn(priorOf(key))
	f := fitter{base: base, prior: l.priors.get(priorOf(key), base, l.owners.of(ctx, key.Workload))}
	now, gpu := l.options.Settings(), l.options.GPU(key.GPUModel)
	if now.Caps {
		f.caps, f.common, f.stretch = true, l.priors.limits(priorOf(key), base), now.MaxSlowdown
	}
	fresh, err := f.fitNodes(seen)
	if err != nil {
		return l.noteNoModel(ctx, key, old, seen.samples(), err)
	}
	var probes explore
	if now.Explore {
		probes.clocks = candidates(fresh.known, fresh.noise, &gpu)
	}
	if now.Explore && now.Caps {
		probes.limits = limitCandidates(fresh.seen.underLimits, fresh.noise, base, f.common, &gpu, now.MaxSlowdown)
	}
	if old != nil && fresh.isSameAs(old) {
		l.models.change(key, func(st *standing) { st.explore = probes })
		return nil
	}
	return l.adopt(ctx, key, fresh.model, probes)
}

// noteNoModel notes why a workload gets no new model. The one in use stays, unless
// it missed half of the last runs.
func (l *Learner) noteNoModel(
	ctx context.Context, key record.WorkloadKey, old *Model, samples []dvfsmodel.Sample, why error,
) error {
	if old == nil {
		l.models.change(key, func(st *standing) {
			if st.model == nil && st.note == "" {
				st.note = "this workload has no model: " + why.Error()
			}
		})
		return why
	}
	last := samples[:min(len(samples), 2*missesInARow)]
	missed := 0
	for i := range last {
		if !old.isHit(&last[i], l.options.Settings().TimeMargin) {
			missed++
		}
	}
	if missed >= missesInARow {
		l.retire(ctx, key, old, fmt.Sprintf("missed %d of the last %d runs", missed, len(last)))
	}
	return why
}

// adopt stores a new version and puts it in use, unless one is pinned.
func (l *Learner) adopt(
	ctx context.Context, key record.WorkloadKey, fresh *Model, probes explore,
) error {
	fresh.Created = l.options.Clock()
	r, err := modelRecord(key, fresh)
	if err != nil {
		return err
	}
	pinned := false
	l.models.change(key, func(st *standing) { pinned = st.pinned })
	r.InUse = !pinned
	version, err := l.options.Records.PutModel(ctx, r)
	if err != nil {
		return fmt.Errorf("refit: %w", err)
	}
	for _, m := range append(slices.Collect(maps.Values(fresh.Without)), fresh, fresh.Own) {
		if m != nil {
			m.Version, m.Created = version, fresh.Created
		}
	}
	l.fitted.Add(1)
	if !pinned {
		l.models.change(key, func(st *standing) {
			st.model, st.note, st.misses, st.hits, st.chosen = fresh, "", 0, 0, epdapi.Chosen{}
			st.explore = probes
		})
	}
	return nil
}

// Base returns the default clocks of a GPU model: those of the device that was seen last,
// those of a model in use there, or of the GPU's profile. False: nobody says.
func (l *Learner) Base(gpuModel string, m *Model) (dvfsmodel.Setting, bool) {
	gpu := l.options.GPU(gpuModel)
	switch {
	case gpu.Base != dvfsmodel.Setting{}:
		return gpu.Base, true
	case m != nil:
		return m.Base, true
	}
	return gpu.Default, gpu.Default.Core > 0 && gpu.Default.Mem > 0
}

// Relearn learns anew what was learnt from runs of workloads that were taken out of the
// records, or put back into them. A model that nothing is left for isn't used any more,
// but for one that an administrator chose. It returns how each workload's model stands
// then.
func (l *Learner) Relearn(ctx context.Context, workloads []record.WorkloadKey) []epdapi.RefittedModel {
	gpuModels := make(map[string]bool)
	for _, key := range workloads {
		l.profiles.forget(key)
		l.priors.forget(key)
		gpuModels[key.GPUModel] = true
	}
	out := make([]epdapi.RefittedModel, 0, len(workloads))
	for _, key := range workloads {
		out = append(out, l.relearn(ctx, key))
	}
	for _, key := range l.models.keys() { // what workloads have in common changed
		if m := l.models.get(key).Model; m != nil && m.Prior && gpuModels[key.GPUModel] {
			l.refitSoon(key)
		}
	}
	return out
}

// relearn fits a workload's model to the runs that there are now.
func (l *Learner) relearn(ctx context.Context, key record.WorkloadKey) epdapi.RefittedModel {
	err := l.refit(ctx, key)
	s := l.models.standing(key)
	switch {
	case err == nil || s.Version == 0 || s.Pinned:
	case ctx.Err() != nil || l.options.Records.WriteProblem() != nil: // the records didn't answer
		l.refitSoon(key)
	default:
		l.retire(ctx, key, l.models.get(key).Model, "learnt from runs that were taken out of the records")
		s = l.models.standing(key)
	}
	return epdapi.RefittedModel{WorkloadKey: key, Version: s.Version, Pinned: s.Pinned, Note: s.Note}
}
