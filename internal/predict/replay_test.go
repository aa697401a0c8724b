package predict_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/predict"
)

// split returns a table's first jobs and the others.
func split(t *predict.Table, at int) (train, test *predict.Table) {
	return &predict.Table{Jobs: t.Jobs[:at], Outcomes: t.Outcomes[:at]},
		&predict.Table{Jobs: t.Jobs[at:], Outcomes: slices.Clone(t.Outcomes[at:])}
}

func replayed(t *testing.T, target predict.Target, train, test *predict.Table) []predict.Prediction {
	t.Helper()
	s := predict.DefaultSettings()
	s.Trees.Trees = 30 // enough to tell differences
	p, err := predict.Replay(t.Context(), target, train, test, &s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What a job took must not reach predictions of jobs submitted before it ended,
// its own least of all.
func TestNoPredictionSeesWhatHadNotEnded(t *testing.T) {
	train, test := split(made(3, 1500), 1000)
	before := replayed(t, predict.Time, train, test)
	// The job in the middle would have taken as long to end, with other readings.
	const at = 250
	end := test.Outcomes[at].End
	test.Outcomes[at].Value = [3]float64{1e6, 1e6, 1e6}
	test.Outcomes[at].Completed = false
	after := replayed(t, predict.Time, train, test)
	changed := false
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		changed = true
		if test.Jobs[i].Submit < end {
			t.Errorf("job %d, submitted at %g, is predicted from one that ended at %g", i,
				test.Jobs[i].Submit, end)
		}
	}
	if !changed {
		t.Error("no prediction changed: nothing is learnt from jobs of the second table")
	}
}

func TestJobsThatNeverEndTeachNothing(t *testing.T) {
	train, test := split(made(3, 1200), 1000)
	before := replayed(t, predict.Time, train, test)
	for i := range test.Outcomes {
		test.Outcomes[i].End = math.NaN()
		test.Outcomes[i].Value = [3]float64{math.NaN(), math.NaN(), math.NaN()}
	}
	after := replayed(t, predict.Time, train, test)
	if before[0] != after[0] {
		t.Errorf("first job: %v and %v, want the same", before[0], after[0])
	}
	if slices.Equal(before, after) {
		t.Error("all predictions are the same, want that ended jobs teach something")
	}
}

func TestTheOrderOfTheTableIsKept(t *testing.T) {
	train, test := split(made(3, 1100), 1000)
	before := replayed(t, predict.Time, train, test)
	slices.Reverse(test.Jobs)
	slices.Reverse(test.Outcomes)
	after := replayed(t, predict.Time, train, test)
	slices.Reverse(after)
	slices.Reverse(test.Jobs)
	if !slices.Equal(before, after) {
		t.Error("a reversed table has other predictions")
	}
}

func TestRepeatedJobsArePredictedFromTheirRunsAndIntervalsHold(t *testing.T) {
	table := made(5, 6000)
	train, test := split(table, 4800)
	for _, target := range []predict.Target{predict.Time, predict.Energy, predict.Power} {
		predictions := replayed(t, target, train, test)
		truths := make([]float64, 0, len(test.Outcomes))
		repeats := 0
		for i := range test.Outcomes {
			truths = append(truths, test.Outcomes[i].ValueOf(target))
			if predictions[i].Rung == predict.Repeat {
				repeats++
			}
			if p := predictions[i]; !(p.Low <= p.Value && p.Value <= p.High) {
				t.Errorf("%v, job %d: %g lies outside %g to %g", target, i, p.Value, p.Low, p.High)
			}
		}
		s := predict.ScorePredictions(predictions, truths)
		t.Logf("%v: %+v, %d repeats", target, s, repeats)
		if s.Jobs != 1200 || math.Abs(s.Coverage-predict.Coverage) > 0.03 {
			t.Errorf("%v: %d jobs, coverage %.3f, want 1200 and about %g", target, s.Jobs, s.Coverage,
				predict.Coverage)
		}
		if s.MedianRelativeError > 0.15 || repeats < 600 {
			t.Errorf("%v: median error %.3f with %d repeats, want 0.15 at most and 600 at least", target,
				s.MedianRelativeError, repeats)
		}
	}
}

func TestNothingKnownIsAPrior(t *testing.T) {
	f := predict.NewForecaster(predict.Time, nil)
	p := f.Submit(&predict.Features{ID: "a", Requested: 7200}).Prediction
	if p.Rung != predict.Prior || p.Value != 3600 || !(p.Low < p.Value && p.Value < p.High) {
		t.Errorf("prediction %+v, want half of what was asked for", p)
	}
	if p := predict.NewForecaster(predict.Power,
		nil).Submit(&predict.Features{Requested: math.NaN()}).Prediction; p.Rung != predict.Prior ||
		!(p.Value > 0) {
		t.Errorf("prediction %+v", p)
	}
}

func TestOneEndedJobIsEnoughForARepeat(t *testing.T) {
	f := predict.NewForecaster(predict.Time, nil)
	j := &predict.Features{ID: "a", Owner: "u", Labels: []string{"n"}, Requested: math.NaN()}
	f.End(f.Submit(j), &predict.Outcome{End: 100, Value: [3]float64{100, 0, 0}})
	p := f.Submit(&predict.Features{
		ID: "b", Submit: 200, Owner: "u", Labels: []string{"n"}, Requested: math.NaN(),
	}).Prediction
	if p.Rung != predict.Repeat || math.Abs(p.Value-100) > 1e-9 {
		t.Errorf("prediction %+v, want 100 s as the last time", p)
	}
}

func TestAReplayCanBeStopped(t *testing.T) {
	train, test := split(made(3, 500), 400)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := predict.Replay(ctx, predict.Time, train, test, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

func TestJudgeLeavesOutWhatIsNotKnown(t *testing.T) {
	s := predict.ScorePredictions([]predict.Prediction{
		{Value: 2, Low: 1, High: 3}, {Value: 8, Low: 7, High: 9}, {Value: 1},
	}, []float64{1, 4, math.NaN()})
	if want := (predict.Score{Jobs: 2, MeanAbsoluteError: 2.5, MedianRelativeError: 1, Coverage: 0.5}); s !=
		want {
		t.Errorf("score %+v, want %+v", s, want)
	}
}
