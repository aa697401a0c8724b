package steer

import (
	"context"
	"time"

	"github.com/epplan/epplan/slurm"
)

// FromSlurm is a source that asks Slurm's commands each time. It shares no
// answer with other callers, as one under way may be from before a change.
func FromSlurm(run slurm.Runner, clock func() time.Time) func(context.Context) (*Snapshot, error) {
	return func(ctx context.Context) (*Snapshot, error) {
		client := slurm.NewClient(run, 0)
		s := &Snapshot{At: clock()}
		jobs, err := client.Jobs(ctx)
		if err != nil {
			return nil, err
		}
		s.Jobs = jobs.List
		s.Nodes, err = client.Nodes(ctx)
		return s, err
	}
}
