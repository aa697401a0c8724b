package steer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// weighBySuitability puts nodes with shared GPUs in the order in which they suit the
// next job that asks for a part of one. Nodes without are as they were, and so
// are all while nothing is known of that job's workload.
func (p *Plan) weighBySuitability(s *Snapshot, set *Settings, wanted map[string]weightIncrease) {
	if !set.Live.Sharing.Weights || set.Shared == nil {
		return
	}
	j := nextShared(s, set)
	if j == nil {
		return
	}
	steered := slices.DeleteFunc(slices.Clone(s.Nodes), func(n slurm.Node) bool {
		return modeOf(n.Partitions, &set.Live) == live.Observe
	})
	order := set.Shared(&colocate.ClusterState{At: s.At, Nodes: steered, Jobs: s.Jobs}, j)
	p.Shared = &order
	for i := range order.Nodes {
		n := &order.Nodes[i]
		wanted[n.Name] = weightIncrease{int64(n.Rank), suitabilityText(n, j)}
	}
}

func suitabilityText(n *colocate.Node, j *slurm.Job) string {
	switch {
	case !n.Fits:
		return fmt.Sprintf("job %s doesn't fit beside what runs there: %s", j.ID, n.Why)
	case len(n.Beside) == 0:
		return fmt.Sprintf("job %s would have a GPU alone there, for %.0f W more", j.ID, n.RisesW)
	}
	return fmt.Sprintf("job %s fits beside what runs there: correlation %.2f, %.0f W more", j.ID,
		n.Correlation, n.RisesW)
}

// nextShared returns the pending job for a part of a GPU that Slurm starts next, nil
// without one, or if it isn't to be touched: what suits one behind it could be
// wrong for it. Jobs that wait for more than their turn and nodes come behind all
// others, whatever their priority: a limit that keeps one from starting may do so
// for days.
func nextShared(s *Snapshot, set *Settings) *slurm.Job {
	var next *slurm.Job
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.State.Base != slurm.Pending || j.Held() || !isRunnable(j, s.At) {
			continue
		}
		if _, ok := colocate.ShareRequestOf(j); !ok ||
			modeOf(strings.Split(j.Partition, ","), &set.Live) == live.Observe {
			continue
		}
		if next == nil || compareStartOrder(j, next) < 0 {
			next = j
		}
	}
	if next == nil || requestsOf(next).Off {
		return nil
	}
	return next
}

// compareStartOrder is negative if Slurm starts a rather than b.
func compareStartOrder(a, b *slurm.Job) int {
	if limited := a.WaitKind() != slurm.WaitTurn; limited != (b.WaitKind() != slurm.WaitTurn) {
		return compareFirst(!limited)
	}
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
}

// truncateOrder is as much of an order as a status shows.
func truncateOrder(o *colocate.Order) *colocate.Order {
	if o == nil {
		return nil
	}
	short := *o
	short.Nodes = o.Nodes[:min(len(o.Nodes), maxListed)]
	return &short
}

// leaveTimeout is how long taking back weights at the end may take.
const leaveTimeout = 10 * time.Second

// undoWeights takes back weights that are of the moment, when the steerer ends.
func (s *Steerer) undoWeights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shared {
		return nil
	}
	set := *s.options.Settings()
	set.Shared = nil
	s.leaving = true
	defer func() { s.leaving = false }()
	_, err := s.step(ctx, &set, math.MaxInt)
	return err
}

// changesAtEnd leaves the moves of weights when the steerer ends, else all.
func (s *Steerer) changesAtEnd(moves []leverChange) []leverChange {
	if !s.leaving {
		return moves
	}
	return slices.DeleteFunc(moves, func(m leverChange) bool { return m.key.lever != lever.Weight })
}
