package control

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/store/record"
)

// LoadModels reads the models in use from the store, and forgets those that
// were. Models that can't be read are left out and logged.
func (c *Controller) LoadModels(ctx context.Context) error {
	all, err := c.options.Store.ModelsInUse(ctx, c.options.Cluster)
	if err != nil {
		return fmt.Errorf("read the models: %w", err)
	}
	byKey := make(map[record.WorkloadKey]*standing, len(all))
	for i := range all {
		r := &all[i]
		if r.Form == forecast.Form {
			continue // it is made anew
		}
		m, err := fromModelRecord(r)
		if err != nil {
			c.options.Log.Error("a model can't be used", "error", err)
			byKey[r.WorkloadKey] = &standing{note: "the model in use can't be read"}
			continue
		}
		_, chosen, pinned := chosenIn(r.Note)
		byKey[r.WorkloadKey] = &standing{model: m, pinned: pinned, chosen: chosen}
	}
	out, err := c.options.Store.ModelsOut(ctx, c.options.Cluster)
	if err != nil {
		return fmt.Errorf("read the models: %w", err)
	}
	for i := range out {
		note, chosen, pinned := chosenIn(out[i].Note)
		switch {
		case pinned:
			note = outNote(chosen.Why)
		case note == freedNote:
			note = ""
		}
		byKey[out[i].WorkloadKey] = &standing{pinned: pinned, note: note, chosen: chosen}
	}
	c.models.mu.Lock()
	defer c.models.mu.Unlock()
	c.models.byKey, c.models.loaded = byKey, nil
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

// UseModel puts a version of a workload's model in use, and keeps later fits
// from replacing it. Version 0 takes the one in use out. Both are remembered
// over restarts, with the caller of the context, who chose it.
func (c *Controller) UseModel(ctx context.Context, key record.WorkloadKey, version int64, note string) error {
	choice := c.choiceOf(ctx, note)
	if err := c.options.Store.UseModel(ctx, key, version, noted(pinnedNote+note, &choice)); err != nil {
		return err
	}
	return c.chosen(ctx, key, &choice)
}

// FreeModel lets fits replace a workload's model again, or make one where none is
// in use. The caller of the context, who did it, is remembered over restarts.
func (c *Controller) FreeModel(ctx context.Context, key record.WorkloadKey) error {
	choice := c.choiceOf(ctx, "")
	version := int64(0)
	if m := c.models.get(key).model; m != nil {
		version = m.version
	}
	if err := c.options.Store.UseModel(ctx, key, version, noted(freedNote, &choice)); err != nil {
		return err
	}
	c.models.change(key, func(st *standing) { st.pinned, st.note, st.chosen = false, "", choice })
	return nil
}

// chosen takes over what an administrator chose in the store.
func (c *Controller) chosen(ctx context.Context, key record.WorkloadKey, choice *epdapi.Chosen) error {
	all, err := c.options.Store.Models(ctx, key)
	if err != nil {
		return err
	}
	var use *model
	for i := range all {
		if all[i].InUse {
			if use, err = fromModelRecord(&all[i]); err != nil {
				return err
			}
		}
	}
	c.models.change(key, func(st *standing) {
		*st = standing{model: use, pinned: true, chosen: *choice}
		if use == nil {
			st.note = outNote(choice.Why)
		}
	})
	return nil
}
