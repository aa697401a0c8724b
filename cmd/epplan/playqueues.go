package main

import (
	"context"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/taskset"
	"github.com/epplan/epplan/internal/trace"
)

// drawQueue draws a queue for two GPU types like the PREDICT paper's.
func drawQueue(rng *rand.Rand, model trace.EnergyModel) (*knapsackQueue, error) {
	jobs, pool := taskset.Queue(rng, model)
	return newKnapsackQueue(model, jobs, &pool)
}

// playAll plays every queue by every policy, as many at a time as there are
// processors: all queues by the first policy, then all by the next one.
func playAll(
	ctx context.Context, queues []*knapsackQueue, policies []string, done func(),
) ([]*planreport.QueueSum, error) {
	sums := make([]*planreport.QueueSum, len(policies)*len(queues))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range sums {
		group.Go(func() error {
			defer done()
			result, err := queues[i%len(queues)].solve(ctx, policies[i/len(queues)])
			if err != nil {
				return err
			}
			sums[i] = result.Sum()
			return nil
		})
	}
	return sums, group.Wait()
}
