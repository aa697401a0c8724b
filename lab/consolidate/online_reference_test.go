package consolidate_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/epplan/epplan/lab/catstest"
	"github.com/epplan/epplan/planner/share"
)

func TestCATSSafeIsFeasibleOnEveryInstanceAndBelowOnlineSLA(t *testing.T) {
	sum, worst, other := 0.0, 0.0, 0.0
	files := catstest.Files(t)
	for _, file := range files {
		in, best := catstest.Read(t, file), catstest.BestW(t, file)
		v := share.Evaluate(in, share.Place(in, share.CATSSafe{}, share.LowestClock))
		if !v.Feasible() {
			t.Errorf("%s: %+v", file, v)
		}
		gap := 100 * (v.PowerW/best - 1)
		sum, worst = sum+gap, max(worst, gap)
		p := share.Place(in, share.OnlineSLA{}, share.LowestClock)
		other += 100 * (share.Evaluate(in, p).PowerW/best - 1)
		t.Logf("%s: %.2f %%, %d GPUs of %d servers", in.Name, gap, v.GPUsOn, v.ServersOn)
	}
	n := float64(len(files))
	t.Logf("mean %.2f %%, worst %.2f %%; online-sla %.2f %%", sum/n, worst, other/n)
	if sum/n > 9 || sum > other {
		t.Errorf("mean gap %.2f %%, want 9 %% at most and less than %.2f %% of online-sla", sum/n, other/n)
	}
}

func TestCATSSafeComesCloserToTheReferenceWithAWindow(t *testing.T) {
	if gap := windowGap(t, 8, 0); gap > 6.6 {
		t.Errorf("mean gap %.2f %% with a window of 8, want 6.6 %% at most", gap)
	}
}

// windowGap returns how far above the best known answers windows of tasks are on average,
// percent.
func windowGap(tb testing.TB, window int, seed uint64) float64 {
	tb.Helper()
	sum, files := 0.0, catstest.Files(tb)
	for _, file := range files {
		in, best := catstest.Read(tb, file), catstest.BestW(tb, file)
		p := share.PlaceWindows(in, share.CATSSafe{Seed: seed}, share.LowestClock, window)
		v := share.Evaluate(in, p)
		if !v.Feasible() {
			tb.Errorf("%s, window %d: %+v", file, window, v)
		}
		sum += 100 * (v.PowerW/best - 1)
	}
	return sum / float64(len(files))
}

// BenchmarkCATSSafeWindow prints the mean gap over the instances and four seeds; see
// lab/docs/consolidation.md.
func BenchmarkCATSSafeWindow(b *testing.B) {
	for _, window := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			const seeds = 4
			sum, least, most := 0.0, math.Inf(1), 0.0
			for b.Loop() {
				sum, least, most = 0, math.Inf(1), 0
				for seed := range uint64(seeds) {
					gap := windowGap(b, window, seed)
					sum, least, most = sum+gap, min(least, gap), max(most, gap)
				}
			}
			b.ReportMetric(sum/seeds, "%gap")
			b.ReportMetric(least, "%least")
			b.ReportMetric(most, "%most")
		})
	}
}
