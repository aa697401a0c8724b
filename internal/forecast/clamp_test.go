package forecast

import (
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/live"
)

func TestAnExpectedTimeBeyondTheLimitRemains(t *testing.T) {
	f := predict.Forecast{
		predict.Time:   {Value: 7200, Low: 7000, High: 7500},
		predict.Energy: {Value: 1, Low: 0.5, High: 2},
	}
	want := f
	if clampForecast(
		&f,
		&Job{GPUs: 1, Limit: live.LimitOf(time.Hour)},
		0,
		dvfsmodel.Watt(math.Inf(1)),
	); f != want {
		t.Errorf("%+v, want %+v: that is what the job would need", f, want)
	}
}

func TestAProfileThatIsNotThatOfTheBoardsBoundsNothing(t *testing.T) {
	f := predict.Forecast{
		predict.Power: {Value: 650, Low: 500, High: 700},
		predict.Time:  {Value: 10, Low: 5, High: 20},
	}
	clampForecast(&f, &Job{GPUs: 1, Limit: live.LimitOf(time.Hour)}, 40, 300)
	if p := f[predict.Power]; p.Low != 500 || p.High != 700 {
		t.Errorf("%+v, want it as it was: none of the boards uses 650 W", p)
	}
}
