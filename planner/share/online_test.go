package share

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/testkit/sharingtest"
	"github.com/epplan/epplan/planner/sharing"
)

// steep returns a curve by which every way of sharing costs something.
func steep() *sharing.Curve { return &sharing.Curve{Exponent: 1.35, ByTask: .03, ByMemory: .05} }

// drawn are instances of every mix that a simple policy can place.
func drawn(tasks int, seeds ...uint64) []*sharing.Instance { return drawnUnder(nil, tasks, seeds...) }

// drawnUnder returns those under a curve.
func drawnUnder(curve *sharing.Curve, tasks int, seeds ...uint64) []*sharing.Instance {
	var all []*sharing.Instance
	for _, mix := range []string{
		"paperlike", "light", "medium", "heavy", "antiphase", "membound", "mixed",
		"gang", "mixedkappa",
	} {
		for _, seed := range seeds {
			in := sharingtest.Draw(rand.New(rand.NewPCG(seed, uint64(tasks))), mix, tasks)
			in.Contention = curve
			if v := Evaluate(in, Place(in, OnlineSLA{}, LowestClock)); v.Feasible() {
				all = append(all, in)
			}
		}
	}
	return all
}

func TestCATSSafeTakesLessThanOnlineSLAAndKeepsEverySLA(t *testing.T) {
	for _, c := range []struct {
		curve *sharing.Curve
		less  float64
	}{{nil, .025}, {steep(), .005}} {
		sum, all := 0.0, drawnUnder(c.curve, 16, 1, 2, 3)
		for _, in := range all {
			v := Evaluate(in, Place(in, CATSSafe{}, LowestClock))
			if !v.Feasible() {
				t.Errorf("%s, %+v: %+v", in.Name, c.curve, v)
			}
			other := Evaluate(in, Place(in, OnlineSLA{}, LowestClock))
			sum += v.PowerW/other.PowerW - 1
		}
		if mean := sum / float64(len(all)); mean > -c.less {
			t.Errorf("%+v: %+.1f %% on average, want at least %.1f %% less than online-sla", c.curve,
				100*mean, 100*c.less)
		}
	}
}

func TestCATSSafeKnowsNothingOfTasksBeyondItsWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		in, other := sharingtest.Draw(r, "gang", 8), sharingtest.Draw(r, "heavy", 8)
		in.Contention = drawCurve(t)
		window := rapid.IntRange(1, 5).Draw(t, "window")
		known := min(len(in.Tasks), window*rapid.IntRange(0, len(in.Tasks)).Draw(t, "windows known"))
		changed := *in
		changed.Tasks = append(slices.Clone(in.Tasks[:known]), other.Tasks[known:]...)
		rule := CATSSafe{Futures: 4}
		a, b := PlaceWindows(in, rule, LowestClock, window), PlaceWindows(&changed, rule, LowestClock, window)
		for task := range known {
			if !slices.Equal(a.GPUs[task], b.GPUs[task]) {
				t.Fatalf("task %d of %d known ones: GPUs %v, with other tasks later %v", task, known,
					a.GPUs[task], b.GPUs[task])
			}
		}
	})
}

func TestCATSSafeTakesLessTheMoreTasksWait(t *testing.T) {
	if less, _ := lessByWindow(t, drawn(16, 101, 102, 103, 104, 105), 8); less < .015 {
		t.Errorf("%.2f %% less power with a window of 8 than with 1, want 1.5 %%", 100*less)
	}
}

// lessByWindow is by which part a window of tasks takes less power than one task at a
// time, on average over instances, and the standard error.
func lessByWindow(tb testing.TB, all []*sharing.Instance, window int) (mean, standardError float64) {
	tb.Helper()
	sum, squares, n := 0.0, 0.0, float64(len(all))
	for _, in := range all {
		one, many := Evaluate(in, Place(in, CATSSafe{}, LowestClock)),
			Evaluate(in, PlaceWindows(in, CATSSafe{}, LowestClock, window))
		if !many.Feasible() {
			tb.Errorf("%s: %+v", in.Name, many)
		}
		less := 1 - many.PowerW/one.PowerW
		sum, squares = sum+less, squares+less*less
	}
	mean = sum / n
	return mean, math.Sqrt(max(0, squares/n-mean*mean) / n)
}

// BenchmarkCATSSafeByWindow prints by how much less power windows take on drawn
// instances; see lab/docs/consolidation.md.
func BenchmarkCATSSafeByWindow(b *testing.B) {
	seeds := make([]uint64, 15)
	for i := range seeds {
		seeds[i] = uint64(1000 + i)
	}
	for _, tasks := range []int{8, 16, 32} {
		all := drawn(tasks, seeds...)
		for _, window := range []int{2, 4, 8} {
			b.Run(fmt.Sprintf("tasks=%d/window=%d", tasks, window), func(b *testing.B) {
				var mean, standardError float64
				for b.Loop() {
					mean, standardError = lessByWindow(b, all, window)
				}
				b.ReportMetric(100*mean, "%less")
				b.ReportMetric(196*standardError, "±")
			})
		}
	}
}

func TestCATSSafeChoosesTheSameByTheSameSeed(t *testing.T) {
	for _, in := range append(drawn(12, 4), drawnUnder(steep(), 12, 4)...) {
		a, b := Place(in, CATSSafe{Seed: 3}, LowestClock), Place(in, CATSSafe{Seed: 3}, LowestClock)
		for task := range a.GPUs {
			if !slices.Equal(a.GPUs[task], b.GPUs[task]) {
				t.Errorf("%s: task %d on GPUs %v, then on %v", in.Name, task, a.GPUs[task], b.GPUs[task])
			}
		}
	}
}

func TestASketchIsTheStateItWasMadeOfAndIsSoAgainAfterARollback(t *testing.T) {
	for _, in := range append(drawn(12, 5, 6), drawnUnder(steep(), 12, 5, 6)...) {
		s := sharing.NewState(in)
		for task := range in.Tasks[:8] {
			for _, gpu := range Choose(s, OnlineSLA{}, task) {
				s.Add(task, gpu)
			}
		}
		seen, _ := recentTasks(s, 8)
		k := newScratchState(s, seen)
		before := sketchedW(k)
		k.begin()
		for i := range seen {
			if gpu, ok := k.chooseTightest(&seen[i], nil, 1); ok {
				k.add(&seen[i], gpu)
			}
		}
		if sketchedW(k) <= before {
			t.Errorf("%s: nine more tasks take %g W, without them %g", in.Name, sketchedW(k), before)
		}
		k.rollback()
		if want := Evaluate(in, PlacementOf(s, LowestClock)).PowerW; math.Abs(before-want) > 1e-6 ||
			sketchedW(k) != before {
			t.Errorf("%s: %g W, after the rollback %g, by the judge %g", in.Name, before, sketchedW(k), want)
		}
		if again := newScratchState(s, seen); !slices.Equal(again.load, k.load) ||
			!slices.Equal(again.on, k.on) || !slices.Equal(again.busy, k.busy) ||
			!slices.Equal(again.pieces, k.pieces) {
			t.Errorf("%s: something is left after the rollback", in.Name)
		}
	}
}

func sketchedW(k *scratchState) float64 { return k.watts(&taskScenario{}) }

func BenchmarkCATSSafe(b *testing.B) {
	for _, tasks := range []int{16, 64} {
		in := sharingtest.Draw(rand.New(rand.NewPCG(1, 1)), "mixed", tasks)
		b.Run(in.Name, func(b *testing.B) {
			for b.Loop() {
				Place(in, CATSSafe{}, LowestClock)
			}
		})
	}
}
