package predict_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/predict"
)

// runsOf are runs of one script of a user, one after the other or all submitted at once,
// with a scatter of their time and their power.
func runsOf(user string, n int, seconds, scatter float64, atOnce bool, random *rand.Rand) []predict.Past {
	out := make([]predict.Past, n)
	clock := 1e6
	for i := range out {
		took, power := seconds*math.Exp(scatter*random.NormFloat64()),
			118*math.Exp(scatter*random.NormFloat64())
		out[i] = predict.Past{
			Job: predict.Features{
				ID: user + strconv.Itoa(i), Submit: clock, Owner: user,
				Labels: []string{"train", "gpu", "lab"}, Sizes: []float64{1, 1}, Requested: 7200,
			},
			Outcome: predict.Outcome{
				End: clock + took, Completed: true, Value: [...]float64{took, took * power / 3.6e6, power},
			},
			Script: 7,
		}
		if !atOnce {
			clock += took + 60
		}
	}
	return out
}

// afterRuns predicts the next run once others ended, learnt from one by one or in a training.
func afterRuns(t *testing.T, past []predict.Past, trained bool) predict.Forecast {
	t.Helper()
	l := predict.NewLive(nil)
	if trained {
		if _, err := l.Train(t.Context(), reader(past)); err != nil {
			t.Fatal(err)
		}
	} else {
		for i := range past {
			l.End(&past[i])
		}
	}
	next := past[0].Job
	next.Submit = 2e6
	f, ok := l.Predict(time.Minute, &next, past[0].Script)
	if !ok {
		t.Fatal("no prediction")
	}
	return f
}

// A new installation: one user ran the same twenty times.
func TestTwentyRunsThatAreAlikeHaveNarrowIntervalsThoughNothingElseEnded(t *testing.T) {
	for _, c := range []struct {
		name            string
		atOnce, trained bool
		widest          float64 // upper end by lower end
	}{
		{"one after the other", false, false, 1.3},
		{"one after the other, trained", false, true, 1.3},
		{"all at once, trained", true, true, 2.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			f := afterRuns(t, runsOf("ada", 20, 600, 0.01, c.atOnce, random), c.trained)
			for target, usual := range map[predict.Target]float64{
				predict.Time:   600,
				predict.Energy: 600 * 118 / 3.6e6, predict.Power: 118,
			} {
				p := f[target]
				t.Logf("%v: %.4g %s, %.4g to %.4g", target, p.Value, target.Unit(), p.Low, p.High)
				if p.Rung != predict.Repeat || math.Abs(p.Value/usual-1) > 0.02 || p.Low > 0.99*usual ||
					p.High < 1.01*usual {
					t.Errorf("%v: %+v, want about %g, and an interval that holds a hundredth to either side",
						target, p, usual)
				}
				if p.High/p.Low > c.widest {
					t.Errorf("%v: %g to %g, want ends that differ by a factor of %g at most", target, p.Low,
						p.High, c.widest)
				}
			}
		})
	}
}

func TestTheFewerRunsTheWiderTheInterval(t *testing.T) {
	before := math.Inf(1)
	for _, runs := range []int{1, 2, 3, 5, 10, 20, 50} {
		random := rand.New(rand.NewPCG(1, 1))
		p := afterRuns(t, runsOf("ada", runs, 600, 0, false, random), false)[predict.Time]
		t.Logf("%d equal runs: %g to %g", runs, p.Low, p.High)
		width := p.High / p.Low
		if !(width > 1 && width < before) {
			t.Errorf("%d equal runs: %g to %g, want narrower than a factor of %g", runs, p.Low,
				p.High, before)
		}
		before = width
	}
}

// Workloads of which none says anything of the others' length, met a few times each.
func TestIntervalsOfAYoungHistoryHold(t *testing.T) {
	for _, scatter := range []float64{0.01, 0.1, 0.4} {
		inside, jobs := 0, 0
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 1))
			l := predict.NewLive(nil)
			for i := range 60 {
				user := "u" + strconv.Itoa(random.IntN(4))
				length := 300 * float64(1+len(user)*int(user[1]-'0')*int(user[1]-'0'))
				p := runsOf(user, 1, length, scatter, false, random)[0]
				p.Job.ID, p.Job.Submit = strconv.Itoa(i), 1e6+float64(i)*1e4
				p.Outcome.End = p.Job.Submit + p.Outcome.Value[predict.Time]
				f, _ := l.Predict(time.Second, &p.Job, p.Script)
				if q := f[predict.Time]; q.Rung == predict.Repeat {
					jobs++
					if v := p.Outcome.Value[predict.Time]; q.Low <= v && v <= q.High {
						inside++
					}
				}
				l.End(&p)
			}
		}
		if part := float64(inside) / float64(jobs); part < 0.88 {
			t.Errorf("scatter %g: %.3f of %d truths inside, want 0.9", scatter, part, jobs)
		} else {
			t.Logf("scatter %g: %.3f of %d truths inside", scatter, part, jobs)
		}
	}
}

func TestWhatCannotBeIsNotPredicted(t *testing.T) {
	p := predict.Prediction{Value: 600, Low: 20, High: 9000, Rung: predict.Repeat}
	if got, want := p.ClampedTo(30,
		3600), (predict.Prediction{Value: 600, Low: 30, High: 3600, Rung: predict.Repeat}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := p.ClampedTo(0,
		300), (predict.Prediction{Value: 300, Low: 20, High: 300, Rung: predict.Repeat}); got != want {
		t.Errorf("%+v, want %+v: it is killed then", got, want)
	}
}
