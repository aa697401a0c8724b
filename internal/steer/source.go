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
		err := client.EachJob(ctx, func(j *slurm.Job) error {
			s.Jobs = append(s.Jobs, *j)
			if j.State.Base.Ended() { // it says since when its nodes have been idle
				s.Jobs[len(s.Jobs)-1] = slurm.Job{ID: j.ID, ArrayTask: -1, State: j.State, End: j.End, Nodes: j.Nodes}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		s.Nodes, err = client.Nodes(ctx)
		return s, err
	}
}
