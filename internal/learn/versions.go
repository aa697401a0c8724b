package learn

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// Load reads the models in use from the store, and forgets those that
// were. Models that can't be read are left out and logged.
func (l *Learner) Load(ctx context.Context) error {
	all, err := l.options.Records.ModelsInUse(ctx, l.options.Cluster)
	if err != nil {
		return fmt.Errorf("read the models: %w", err)
	}
	byKey := make(map[record.WorkloadKey]*standing, len(all))
	for i := range all {
		r := &all[i]
		if r.Form == record.ForecastForm {
			continue // it is made anew
		}
		m, err := fromModelRecord(r)
		if err != nil {
			l.options.Log.Error("a model can't be used", "error", err)
			byKey[r.WorkloadKey] = &standing{note: "the model in use can't be read"}
			continue
		}
		_, chosen, pinned := parseChoiceNote(r.Note)
		byKey[r.WorkloadKey] = &standing{model: m, pinned: pinned, chosen: chosen}
	}
	out, err := l.options.Records.RetiredModels(ctx, l.options.Cluster)
	if err != nil {
		return fmt.Errorf("read the models: %w", err)
	}
	for i := range out {
		note, chosen, pinned := parseChoiceNote(out[i].Note)
		switch {
		case pinned:
			note = outNote(chosen.Why)
		case note == freedNote:
			note = ""
		}
		byKey[out[i].WorkloadKey] = &standing{pinned: pinned, note: note, chosen: chosen}
	}
	l.models.mu.Lock()
	defer l.models.mu.Unlock()
	l.models.byKey, l.models.loaded = byKey, nil
	return nil
}

// outNote says why an administrator left a workload without a model.
func outNote(why string) string {
	const note = "an administrator took the model out of use"
	if why == "" {
		return note
	}
	return note + ": " + why
}

// Use puts a version of a workload's model in use, and keeps later fits from
// replacing it. Version 0 takes the one in use out. Both are remembered over
// restarts, with who chose it and why.
func (l *Learner) Use(
	ctx context.Context, key record.WorkloadKey, version int64, choice epdapi.Chosen,
) error {
	note := choiceNote(pinnedNote+choice.Why, &choice)
	if err := l.options.Records.UseModel(ctx, key, version, note); err != nil {
		return err
	}
	all, err := l.options.Records.Models(ctx, key)
	if err != nil {
		return err
	}
	var use *Model
	for i := range all {
		if all[i].InUse {
			if use, err = fromModelRecord(&all[i]); err != nil {
				return err
			}
		}
	}
	l.models.change(key, func(st *standing) {
		*st = standing{model: use, pinned: true, chosen: choice}
		if use == nil {
			st.note = outNote(choice.Why)
		}
	})
	return nil
}

// Unpin lets fits replace a workload's model again, or make one where none is in
// use. Who did it is remembered over restarts.
func (l *Learner) Unpin(ctx context.Context, key record.WorkloadKey, choice epdapi.Chosen) error {
	version := int64(0)
	if m := l.models.get(key).Model; m != nil {
		version = m.Version
	}
	if err := l.options.Records.UseModel(ctx, key, version, choiceNote(freedNote, &choice)); err != nil {
		return err
	}
	l.models.change(key, func(st *standing) { st.pinned, st.note, st.chosen = false, "", choice })
	return nil
}

// Versions returns all versions of a workload's model, the newest first.
func (l *Learner) Versions(ctx context.Context, key record.WorkloadKey) ([]epdapi.ModelVersion, error) {
	stored, err := l.options.Records.Models(ctx, key)
	versions := make([]epdapi.ModelVersion, len(stored))
	for i := range stored {
		v := &versions[i]
		v.Model = stored[i]
		v.Note, v.Chosen, _ = parseChoiceNote(stored[i].Note)
	}
	return versions, err
}

// Version returns a version of a workload's model, nil for version 0 and for one that is
// gone or can't be read.
func (l *Learner) Version(ctx context.Context, key record.WorkloadKey, version int64) (*Model, error) {
	if version == 0 {
		return nil, nil
	}
	if m := l.models.get(key).Model; m != nil && m.Version == version {
		return m, nil
	}
	all, err := l.options.Records.Models(ctx, key)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Version != version {
			continue
		}
		m, err := fromModelRecord(&all[i])
		if err != nil {
			l.options.Log.Warn("a model can't be shown", "error", err)
			return nil, nil
		}
		return m, nil
	}
	return nil, nil
}
