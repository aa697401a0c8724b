package predict

import (
	"testing"
	"time"
)

func TestNobodyWaitsForAPredictionLongerThanTheBound(t *testing.T) {
	l := NewLive(nil)
	l.turn <- struct{}{} // somebody else's
	if f, ok := l.Predict(time.Millisecond, &Job{Owner: "ada", Labels: []string{"n"}, Sizes: []float64{1}}, 0); ok || f != (Forecast{}) {
		t.Errorf("%+v", f)
	}
	<-l.turn
	if _, ok := l.Predict(0, &Job{Owner: "ada", Labels: []string{"n"}, Sizes: []float64{1}}, 0); !ok {
		t.Error("none though nobody else is there")
	}
}
