package taskset_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/lab/taskset"
)

func seeded(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, seed))
}

func TestUtilisationsAddUpExactlyAndDeadlinesFollowFromThem(t *testing.T) {
	batch, err := taskset.Generate(taskset.Spec{Offline: 0.4, Online: 1.6}, seeded(3))
	if err != nil {
		t.Fatal(err)
	}
	var offline, online float64
	last := 0.0
	for _, job := range batch.Jobs {
		if err := job.Validate(); err != nil {
			t.Fatal(err)
		}
		u := (job.Model.D + job.Model.T0) / (job.Deadline - job.Arrival)
		if !(u > 0 && u <= 1+1e-9) {
			t.Errorf("job %s has utilisation %v", job.ID, u)
		}
		if job.Arrival == 0 {
			offline += u
		} else {
			online += u
		}
		if job.Arrival < last || job.Arrival != math.Floor(job.Arrival) || job.Arrival > taskset.SlotsPerDay {
			t.Errorf("job %s arrives at %v after one at %v", job.ID, job.Arrival, last)
		}
		last = job.Arrival
	}
	if math.Abs(offline-0.4*taskset.ReferencePairs) > 1e-6 ||
		math.Abs(online-1.6*taskset.ReferencePairs) > 1e-6 {
		t.Errorf("utilisations %v and %v, want %v and %v", offline, online, 0.4*taskset.ReferencePairs,
			1.6*taskset.ReferencePairs)
	}
	if n := len(batch.Jobs); n < 3800 || n > 4400 {
		t.Errorf("%d jobs, want about 4,096", n)
	}
}

func TestTheSameSeedGivesTheSameSetAndAnotherOneAnother(t *testing.T) {
	spec := taskset.Spec{Offline: 0.05}
	sets := make([]any, 3)
	for i, seed := range []uint64{1, 1, 2} {
		batch, err := taskset.Generate(spec, seeded(seed))
		if err != nil {
			t.Fatal(err)
		}
		sets[i] = batch.Jobs
	}
	if !reflect.DeepEqual(sets[0], sets[1]) || reflect.DeepEqual(sets[0], sets[2]) {
		t.Error("sets don't follow from their seeds")
	}
}

func TestLibraryLiesInThePublishedRanges(t *testing.T) {
	apps, err := taskset.Library()
	if err != nil {
		t.Fatal(err)
	}
	if len(apps) != 20 {
		t.Fatalf("%d applications, want 20", len(apps))
	}
	for _, app := range apps {
		m := app.Model
		power := float64(m.Power(dvfsmodel.DefaultScaling()))
		for name, x := range map[string][3]float64{
			"default power": {power, 175, 206}, "gamma share": {float64(m.Gamma) / power, 0.1, 0.2},
			"P0 share": {float64(m.P0) / power, 0.2, 0.41},
			"delta":    {m.Delta, 0.07, 0.91}, "D": {m.D, 1.66, 7.61}, "t0": {m.T0, 0.1, 0.95},
		} {
			if x[0] < x[1]*(1-1e-3) || x[0] > x[2]*(1+1e-3) {
				t.Errorf("%s: %s is %v, want %v to %v", app.Name, name, x[0], x[1], x[2])
			}
		}
	}
}

func TestMeaninglessSpecsAreRefused(t *testing.T) {
	for _, spec := range []taskset.Spec{
		{},
		{Offline: -1, Online: 2},
		{Offline: math.NaN()},
		{Offline: 1, Slots: -1},
		{Offline: 1, Pairs: -5},
		{Offline: math.Inf(1)},
	} {
		if _, err := taskset.Generate(spec, seeded(1)); err == nil {
			t.Errorf("%+v was accepted", spec)
		}
	}
}
