package steer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Slurm is what tells of all jobs and nodes; [slurm.Client] is one.
type Slurm interface {
	// EachJob gives all jobs, one after the other, or says that some are missing.
	EachJob(ctx context.Context, each func(*slurm.Job) error) (slurm.Unread, error)
	Nodes(ctx context.Context) ([]slurm.Node, slurm.Unread, error)
}

// SnapshotFromSlurm returns a source that asks Slurm each time. Others may be told its answers,
// but it shares none that was asked for before, which may be from before a change:
// Slurm is asked by nobody else through client.
func SnapshotFromSlurm(client Slurm, clock func() time.Time) func(context.Context) (*Snapshot, error) {
	var last atomic.Int64 // jobs of the last one: a long list isn't copied again and again as it grows
	return func(ctx context.Context) (*Snapshot, error) {
		known := last.Load()
		s := &Snapshot{At: clock(), Jobs: make([]slurm.Job, 0, known+known/16)}
		var err error
		s.UnreadJobs, err = client.EachJob(ctx, func(j *slurm.Job) error {
			s.Jobs = append(s.Jobs, *j)
			if j.State.Base.Ended() { // it says since when its nodes have been idle
				s.Jobs[len(s.Jobs)-1] = slurm.Job{
					ID: j.ID, ArrayTask: -1, State: j.State, End: j.End, Nodes: j.Nodes,
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		last.Store(int64(len(s.Jobs)))
		s.Nodes, s.UnreadNodes, err = client.Nodes(ctx)
		return s, err
	}
}
