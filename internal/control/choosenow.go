package control

import (
	"maps"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/live"
)

// chooseNow is what would be decided for a job if it ran now, and the default clocks
// there.
func (c *Controller) chooseNow(s *Settings, asked *query.Choice) (live.Decision, dvfsmodel.Setting) {
	return c.decider.Preview(
		&s.Settings, asked.Job, asked.Shared, asked.GPUModel, asked.Model, asked.Wishes, asked.Now,
	)
}

// gpuModels are the GPU models of which anything is known, in order.
func (c *Controller) gpuModels() []string {
	names := c.learner.GPUModels()
	for _, name := range c.decider.GPUModels() {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
