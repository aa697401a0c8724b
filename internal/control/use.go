package control

import (
	"fmt"
	"net/http"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// ModelChoice says which version of a workload's model is used from now on.
type ModelChoice = epdapi.ModelChoice

const maxNote = 1000 // bytes

func validChoice(m *ModelChoice) error {
	if m.Workload == "" || !epdapi.IsPrintable(m.Workload, epdapi.MaxModelName) ||
		!epdapi.IsPrintable(m.GPUModel, epdapi.MaxModelName) || m.Version < 0 ||
		!epdapi.IsPrintable(m.Note, maxNote) {
		return fmt.Errorf("%w: want workload, gpu_model, a version from 0, and a note of at most %d bytes",
			ErrRequest, maxNote)
	}
	return nil
}

// postModelsUse chooses a model and answers with how it stands then.
func (c *Controller) postModelsUse(r *http.Request) (any, error) {
	var m ModelChoice
	if err := decodeJSON(r.Body, &m, true); err != nil { // people write it: a slip must not choose version 0
		return nil, err
	}
	if err := validChoice(&m); err != nil {
		return nil, err
	}
	if m.Workload == forecast.Workload {
		return nil, fmt.Errorf("%w: predictions are made anew from the records: [predict] enabled = false "+
			"switches them off", ErrRequest)
	}
	ctx := r.Context()
	key := record.WorkloadKey{
		Cluster: c.options.Cluster, Workload: m.Workload, GPUModel: c.settings.Load().ModelName(m.GPUModel),
	}
	versions, err := c.learner.Versions(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("a model of workload %s on %s: %w", key.Workload, key.GPUModel,
			store.ErrNotFound)
	}
	if m.Free {
		err = c.FreeModel(ctx, key)
	} else {
		err = c.UseModel(ctx, key, m.Version, m.Note)
	}
	if err != nil {
		return nil, err
	}
	return c.withLastJobs(ctx, []ModelStanding{c.learner.Standing(key)})[0], nil
}
