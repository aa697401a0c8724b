package forecast

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// predictedJob returns a job of a submission that took so long, predicted to take 100 s, 50 to 200.
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

// A round figure for want of anything that ended is no prediction.
func TestGuessesMadeWithNothingKnownArentScored(t *testing.T) {
	var counted tally
	job := predictedJob("first", 0.03) // 330,000 % off
	job.Rung = "prior"
	counted.add(&job)
	if got := counted.scores(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	job = predictedJob("second", 110)
	counted.add(&job)
	if got := counted.scores(); len(got) != 2 || got[0].Jobs != 1 || got[0].Coverage != 1 {
		t.Errorf("%+v", got)
	}
}

// What a job came to that somebody or something else stopped isn't what it takes.
func TestJobsThatWereStoppedTeachNoTimes(t *testing.T) {
	for state, want := range map[string]bool{
		"COMPLETED": false, "FAILED": false, "TIMEOUT": false, "OUT_OF_MEMORY": false, "CANCELLED": true,
		"CANCELLED by 1000": true, "PREEMPTED": true, "NODE_FAIL": true, "BOOT_FAIL": true,
	} {
		if wasStopped(state) != want {
			t.Errorf("%s: %v", state, !want)
		}
		r := record.HistoryJob{
			JobID: "1", User: "ada", State: state, GPUs: live.Known(1), Started: time.Unix(100, 0),
			Ended: time.Unix(200, 0),
		}
		if _, teaches := pastFrom(&r); teaches == want {
			t.Errorf("%s in an imported log: %v", state, teaches)
		}
	}
}
