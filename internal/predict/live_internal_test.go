package predict

import (
	"context"
	"testing"
	"time"
)

func TestNobodyWaitsForAPredictionLongerThanTheBound(t *testing.T) {
	l := NewLive(nil)
	l.semaphore <- struct{}{} // somebody else's
	if f, ok := l.Predict(time.Millisecond, &Features{Owner: "ada", Labels: []string{"n"}, Sizes: []float64{1}},
		0); ok || f != (Forecast{}) {
		t.Errorf("%+v", f)
	}
	<-l.semaphore
	if _, ok := l.Predict(0, &Features{Owner: "ada", Labels: []string{"n"}, Sizes: []float64{1}}, 0); !ok {
		t.Error("none though nobody else is there")
	}
}

// panics reports whether work does: it is somebody else's to report.
func panics(work func()) (did bool) {
	defer func() { did = recover() != nil }()
	work()
	return
}

func TestAPanicInATrainingStopsNeitherPredictionsNorLaterTrainings(t *testing.T) {
	late := Past{
		Job:     Features{ID: "late", Owner: "ada", Labels: []string{"n"}, Sizes: []float64{1}},
		Outcome: Outcome{End: 10, Completed: true, Value: [3]float64{42, 1, 100}},
	}
	goesOn := func(l *Live, when string) {
		t.Helper()
		if _, ok := l.Predict(time.Second, &late.Job, 0); !ok {
			t.Fatalf("%s: nobody gets a prediction any more", when)
		}
		if l.End(&late); l.training || len(l.endedMeanwhile) > 0 {
			t.Errorf("%s: what ends is still kept for a training that is over", when)
		}
		n, err := l.Train(t.Context(), func(context.Context) ([]Past, error) { return []Past{late}, nil })
		if n != 1 || err != nil {
			t.Errorf("%s: the next training: %d jobs, %v", when, n, err)
		}
	}
	l := NewLive(nil)
	if !panics(func() {
		_, _ = l.Train(t.Context(), func(context.Context) ([]Past, error) { panic("no such row") })
	}) {
		t.Fatal("the panic is nobody's to report")
	}
	goesOn(l, "while the records are read")

	l = NewLive(nil)
	l.beginTraining()
	l.End(&late)
	if !panics(func() { l.catchUp(&training{state: &liveState{}}) }) { // which has nothing to learn with
		t.Fatal("the panic is nobody's to report")
	}
	l.endTraining()
	goesOn(l, "in the last round")
}
