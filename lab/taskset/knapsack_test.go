package taskset_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
)

func queueSeed(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 1))
}

func TestDrawnQueuesAreLikeThoseOfThePaper(t *testing.T) {
	const queues = 200
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		jobs, energy, forecast := 0, 0.0, 0.0
		for seed := range uint64(queues) {
			all, pool := taskset.Queue(queueSeed(seed), model)
			if pool.GPUs[0] < 10 || pool.GPUs[0] > 20 || pool.GPUs[1] < 20 || pool.GPUs[1] > 40 {
				t.Fatalf("%v GPUs, want 10 to 20 and 20 to 40", pool.GPUs)
			}
			jobs += len(all)
			for i := range all {
				if i > 0 && all[i].Arrival < all[i-1].Arrival {
					t.Fatal("jobs out of order")
				}
				energy, forecast = energy+all[i].Actual[0].KWh, forecast+all[i].Forecast[0].KWh
			}
			if _, _, err := trace.KnapsackProblem(all, &pool); err != nil {
				t.Fatal(err)
			}
		}
		if mean := float64(jobs) / queues; mean < 150 || mean > 180 {
			t.Errorf("%v: %v jobs a queue, want about 165", model, mean)
		}
		if ratio := energy / forecast; ratio < 0.98 || ratio > 1.04 {
			t.Errorf("%v: jobs take %v of their predicted energy, want about all of it", model, ratio)
		}
	}
}

func TestADrawnQueueFollowsFromItsSeed(t *testing.T) {
	draw := func(seed uint64) []trace.KnapsackJob {
		jobs, _ := taskset.Queue(queueSeed(seed), trace.Coupled)
		return jobs
	}
	if !reflect.DeepEqual(draw(1), draw(1)) || reflect.DeepEqual(draw(1), draw(2)) {
		t.Error("equal seeds give different queues, or different ones equal queues")
	}
}

func TestOutcomesScatterAroundThePrediction(t *testing.T) {
	const draws = 4000
	forecast := [2]trace.KnapsackRun{{Seconds: 1000, KWh: 3}, {Seconds: 2000, KWh: 0}}
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		rng, seconds, together := queueSeed(7), 0.0, true
		for range draws {
			runs := taskset.DrawOutcome(rng, model, &forecast)
			seconds += runs[0].Seconds / draws
			if runs[0].Seconds <= 0 || runs[0].KWh <= 0 || runs[1].KWh != 0 {
				t.Fatalf("%v: %+v", model, runs)
			}
			factor := runs[0].Seconds / 1000
			together = together && math.Abs(runs[1].Seconds/2000-factor) < 1e-9 &&
				math.Abs(runs[0].KWh/3-factor) < 1e-9
		}
		if seconds < 980 || seconds > 1020 {
			t.Errorf("%v: %v s on average, want about 1000", model, seconds)
		}
		if together != (model == trace.Coupled) {
			t.Errorf("%v: one factor for all is %v", model, together)
		}
	}
}
