package consolidate_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/epplan/epplan/planner/consolidate"
)

// BenchmarkRearrange says how far above the best that is known the plan of an
// online policy is after so many moves, in the mean over the instances of
// data/cats, percent.
func BenchmarkRearrange(b *testing.B) {
	const most = 10
	for _, policy := range consolidate.Policies() {
		if policy.Name != "cats-safe" && policy.Name != "online-sla" {
			continue
		}
		b.Run(policy.Name, func(b *testing.B) {
			for range b.N {
				var gap [most + 1]float64
				files := instances(b)
				for _, file := range files {
					in := read(b, file)
					start := policy.Place(in)
					_, bestW := consolidate.Improve(context.Background(), in, consolidate.Safe, start,
						consolidate.ImproveOptions{})
					bestW = math.Min(bestW, readReference(b, file).Reference.B.BestW)
					found := consolidate.Rearrange(context.Background(), in, consolidate.Safe, start.GPUs,
						consolidate.MoveOptions{Most: most})
					for k := range gap {
						gap[k] += 100 * (found.ByMoves[min(k, len(found.ByMoves)-1)]/bestW - 1) /
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
