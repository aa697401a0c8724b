package daemon

import (
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/agent"
)

func TestTheSeriesOfARunIsTheMeanOfItsGPUs(t *testing.T) {
	got := seriesOf([]agent.GPUOutcome{
		{Series: agent.Series{Step: 60, Values: []float64{1, 0.5, -1, 0.8}}},
		{Series: agent.Series{Step: 60, Values: []float64{0, 0.5, -1}}},
	})
	if got.Interval() != time.Minute || got.Len() != 4 {
		t.Fatalf("%d points of %v, want 4 of a minute", got.Len(), got.Interval())
	}
	for i, want := range []float64{0.5, 0.5, -1, 0.8} {
		if value := got.At(i).Or(-1); math.Abs(value-want) > 0.005 {
			t.Errorf("point %d is %v, want %v", i, value, want)
		}
	}
	if none := seriesOf(nil); none.Len() != 0 {
		t.Errorf("%d points of nothing", none.Len())
	}
}
