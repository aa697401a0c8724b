package replay_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner/fleet"
)

func TestAStreamThatCannotBeDrawnIsAnError(t *testing.T) {
	whole := []fleet.Demand{{GPUs: 1, Milli: fleet.WholeGPU}}
	for _, c := range []struct {
		name     string
		list     []fleet.Demand
		capacity int64
		load     float64
	}{
		{"no tasks", nil, 1000, 1},
		{"load not a number", whole, 1000, math.NaN()},
		{"load below 0", whole, 1000, -1},
		{"capacity below 0", whole, -1000, 1},
		{"demand below 0", []fleet.Demand{{GPUs: -1, Milli: fleet.WholeGPU}}, 1000, 1},
	} {
		rows, err := replay.Draw(rand.New(rand.NewPCG(1, 1)), c.list, c.capacity, c.load)
		if err == nil {
			t.Errorf("%s: %d rows, want an error", c.name, len(rows))
		}
		if c.list == nil && !errors.Is(err, replay.ErrNoLoad) {
			t.Errorf("%s: error is %v, want ErrNoLoad", c.name, err)
		}
	}
}

func TestAStayThatArrivedAtNoTimeIsAnError(t *testing.T) {
	kind := &fleet.Kind{GPUs: 1}
	stay := replay.RecordedTask{
		Demand: fleet.Demand{GPUs: 1, Milli: fleet.WholeGPU}, Arrived: math.NaN(), Seconds: 5,
	}
	if _, _, _, err := replay.AsRecorded([]replay.RecordedTask{stay}, []*fleet.Kind{kind}); err == nil {
		t.Error("no error, want one that names the stay")
	}
}
