package main

import (
	"errors"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
)

// catalog is a catalog that says what to do where it can't answer.
type catalog struct{ *config.Catalog }

func newCatalog(profiles *config.Profiles, models *config.Models, scaling *dvfsmodel.Range) catalog {
	return catalog{config.NewCatalog(profiles, models, scaling)}
}

// CheckWorkload says which workloads there are when the given one is not among them.
func (c catalog) CheckWorkload(workload string) error {
	err := c.Catalog.CheckWorkload(workload)
	if errors.Is(err, config.ErrNoModels) {
		return &hintedError{
			err: err, hint: "name one with --models, or have the job state a runtime_s and no workload: it " +
				"runs at default clocks then",
		}
	}
	return err
}
