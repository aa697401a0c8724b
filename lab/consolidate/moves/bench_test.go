package moves_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/epplan/epplan/lab/catstest"
	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/lab/consolidate/moves"
	"github.com/epplan/epplan/planner/share"
)

// BenchmarkRearrange says how far above the best that is known the plan of an
// online policy is after so many moves, in the mean over the instances of
// data/cats, percent.
func BenchmarkRearrange(b *testing.B) {
	const most = 10
	for _, policy := range share.Policies() {
		if policy.Name != "cats-safe" && policy.Name != "online-sla" {
			continue
		}
		b.Run(policy.Name, func(b *testing.B) {
			for range b.N {
				var gap [most + 1]float64
				files := catstest.Files(b)
				for _, file := range files {
					in := catstest.Read(b, file)
					start := share.Place(in, policy.Rule, policy.Clocks)
					_, best := consolidate.Improve(context.Background(), in, share.Safe, start,
						consolidate.ImproveOptions{})
					best = math.Min(best, catstest.BestW(b, file))
					found := moves.Rearrange(context.Background(), in, share.Safe, start.GPUs,
						moves.Options{Most: most})
					for k := range gap {
						gap[k] += 100 * (found.ByMoves[min(k, len(found.ByMoves)-1)]/best - 1) /
							float64(len(files))
					}
				}
				for k, percent := range gap {
					b.ReportMetric(percent, fmt.Sprintf("%%after%dmoves", k))
				}
			}
		})
	}
}
