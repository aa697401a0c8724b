package forecast

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// predictedJob is a job of a submission that took so long, predicted to take 100 s, 50 to 200.
func predictedJob(token string, took float64) record.EndedJob {
	return record.EndedJob{
		Job: record.Job{Token: token, GPUs: 1}, TimeS: live.Known(took), Rung: "repeat",
		PredictedS: record.Interval{Value: live.Known(100), Low: live.Known(50), High: live.Known(200)},
	}
}

// The tasks of an array have one prediction, made before the first of them ran: it counts once.
func TestAnArrayCountsAsOnePrediction(t *testing.T) {
	var counted tally
	for i := range 9 {
		job := predictedJob(fmt.Sprintf("single-%d", i), 110)
		counted.add(&job)
	}
	for i := range 500 { // a fifth of its tasks is within the interval
		job := predictedJob("array", map[bool]float64{true: 100, false: 1000}[i%5 == 0])
		counted.add(&job)
	}
	want := epdapi.ForecastScore{Target: "time", Jobs: 10, Coverage: 0.92, MedianError: 10.0 / 110}
	scores := counted.scores()
	if len(scores) != 2 || scores[1].Rung != "repeat" {
		t.Fatalf("%+v", scores)
	}
	for _, got := range scores {
		got.Rung = ""
		if math.Abs(got.Coverage-want.Coverage) > 1e-12 || math.Abs(got.MedianError-want.MedianError) > 1e-12 ||
			got.Jobs != want.Jobs || got.Target != want.Target {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	array := predictedJob("array", 1000)
	counted.reset([]record.EndedJob{array, array})
	if got := counted.scores()[0]; got.Jobs != 1 || got.Coverage != 0 || math.Abs(got.MedianError-0.9) > 1e-12 {
		t.Errorf("counted anew: %+v", got)
	}
}

// The median is that of the last predictions.
func TestTheMedianErrorIsOfTheLastPredictions(t *testing.T) {
	var counted tally
	for i := range 2 * maxOff {
		job := predictedJob(strconv.Itoa(i), map[bool]float64{true: 400, false: 80}[i < maxOff])
		counted.add(&job)
	}
	if got := counted.scores()[0]; got.Jobs != 2*maxOff || got.Coverage != 0.5 || got.MedianError != 0.25 {
		t.Errorf("%+v", got)
	}
}
