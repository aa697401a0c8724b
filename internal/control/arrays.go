package control

import (
	"fmt"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/slurm"
)

// numberOf is the number of a job in the path of a request: a number, or a task of
// an array, such as 4_3, that Slurm lists. The error is [ErrRequest], or
// [store.ErrNotFound] for a task that it doesn't.
func (c *Controller) numberOf(text string) (slurm.JobID, error) {
	ref, err := slurm.ParseJobRef(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrRequest, err)
	case ref.Step != "" || ref.Het || ref.Array && ref.Task < 0:
		return 0, fmt.Errorf("%w: %q is no job, want a number, or a task of an array such as 4_3",
			ErrRequest, text)
	case !ref.Array:
		return ref.Job, nil
	}
	if id, ok := c.jobs.ArrayTask(ref.Job, ref.Task); ok {
		return id, nil
	}
	return 0, fmt.Errorf("task %s of an array: %w", text, store.ErrNotFound)
}
