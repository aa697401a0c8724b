package queue_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/queue"
)

func jobsArriving(arrivals []float64) []queue.Job {
	jobs := make([]queue.Job, len(arrivals))
	for i, a := range arrivals {
		jobs[i].Arrival = a
	}
	return jobs
}

func TestJobsOfOneMomentArriveTogetherAndInOrder(t *testing.T) {
	s := queue.NewStream(jobsArriving([]float64{5, 0, 5, 2, 0}))
	for _, want := range []struct {
		time  float64
		group []int
	}{{0, []int{1, 4}}, {2, []int{3}}, {5, []int{0, 2}}} {
		if peek := s.Peek(); peek != want.time {
			t.Errorf("Peek() = %v, want %v", peek, want.time)
		}
		arrival, group, ok := s.Next()
		if !ok || arrival != want.time || !slices.Equal(group, want.group) {
			t.Errorf("Next() = %v, %v, %v, want %v, %v", arrival, group, ok, want.time, want.group)
		}
		_ = append(group, -1) // must not reach into the stream
	}
	if _, _, ok := s.Next(); ok || !math.IsInf(s.Peek(), 1) {
		t.Error("the stream has no end")
	}
}

func TestArrivalsCoverEveryJobOnceInRisingTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "arrivals")
		arrivals := make([]float64, len(whole))
		for i, a := range whole {
			arrivals[i] = float64(a)
		}
		want := make([]int, len(arrivals))
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(arrivals[a], arrivals[b]) })

		var order []int
		last := -1.0
		for arrival, group := range queue.Arrivals(jobsArriving(arrivals)) {
			if arrival <= last {
				t.Fatalf("a group at %v after one at %v", arrival, last)
			}
			last = arrival
			for _, i := range group {
				if arrivals[i] != arrival {
					t.Fatalf("job of %v in the group of %v", arrivals[i], arrival)
				}
			}
			order = append(order, group...)
		}
		if !slices.Equal(order, want) {
			t.Fatalf("order %v, want %v", order, want)
		}
	})
}

func TestArrivalsStopWhenTheLoopDoes(t *testing.T) {
	groups := 0
	for range queue.Arrivals(jobsArriving([]float64{1, 2, 3})) {
		groups++
		break
	}
	if groups != 1 {
		t.Errorf("%d groups", groups)
	}
}
