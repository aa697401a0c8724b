package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestFailedRunsAreNotWhatIsUsual(t *testing.T) {
	for _, c := range []struct {
		name   string
		failed int // of ten runs, the first ones
		want   float64
	}{
		{"none failed", 0, 5}, {"some failed", 3, 5}, {"most failed", 7, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tr track
			for i := range 10 {
				v := 5.0
				if i < c.failed {
					v = 2
				}
				tr.add(v, float64(i), i >= c.failed, maxUnordered)
			}
			if got := tr.trimmedMean(); math.Abs(got-c.want) > 1 {
				t.Errorf("usual %g, want about %g", got, c.want)
			}
		})
	}
}

// All programs of an owner take more for a while, and then less again.
func TestRunsDeviateAsTheLatestOnesDid(t *testing.T) {
	s := DefaultSettings()
	s.Trees.Trees = 30
	f := NewForecaster(Power, &s)
	random := rand.New(rand.NewPCG(1, 1))
	const jobs, programs, while = 1500, 30, 40
	ours, usual, asked := 0.0, 0.0, 0.0
	for i := range jobs {
		program := random.IntN(programs)
		drift := 0.04
		if i/while%2 == 0 {
			drift = -drift
		}
		v := math.Exp(4 + float64(program)/10 + drift + 0.01*random.NormFloat64())
		now := float64(i) * 100
		if f.NeedsFit() {
			if err := f.Fit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ticket := f.Submit(&Features{
			Submit: now, Owner: "u", Labels: []string{strconv.Itoa(program)}, Requested: math.NaN(),
		})
		if i >= jobs/2 {
			asked++
			ours += math.Abs(ticket.value - math.Log(v))
			usual += math.Abs(ticket.repeat.usual - math.Log(v))
		}
		f.End(ticket, &Outcome{End: now + 50, Completed: true, Value: [3]float64{50, 1, v}})
	}
	t.Logf("mean error %.4f, of what is usual %.4f", ours/asked, usual/asked)
	if ours > 0.6*usual {
		t.Errorf("mean error %.4f, want 60 %% of that of what is usual at most, %.4f",
			ours/asked, usual/asked)
	}
}

// crossed are tickets of jobs of owners and programs, whose logarithms are the sum of
// what both add and noise; those that left tells are left out.
func crossed(owner, program, noise float64, left func(o, p int) bool) []*PendingJob {
	random := rand.New(rand.NewPCG(2, 2))
	var rows []*PendingJob
	for o := range 20 {
		for p := range 20 {
			v := 5 + owner*effectOf(o) + program*effectOf(100+p) + noise*random.NormFloat64()
			j := &Features{Owner: fmt.Sprint("o", o), Labels: []string{fmt.Sprint("p", p)}, Requested: math.NaN()}
			if !left(o, p) {
				rows = append(rows, &PendingJob{Job: j, truth: v, features: []float64{math.NaN()}})
			}
		}
	}
	return rows
}

func effectOf(i int) float64 {
	return rand.New(rand.NewPCG(uint64(i), 3)).NormFloat64()
}

func TestEffectsSayWhatCombinationsNeverSeenTake(t *testing.T) {
	left := func(o, p int) bool { return (o+p)%4 == 0 }
	e := fitEffects(crossed(1, 0.5, 0.1, left), &linearModel{})
	for o := range 20 {
		for p := range 20 {
			j := &Features{Owner: fmt.Sprint("o", o), Labels: []string{fmt.Sprint("p", p)}, Requested: math.NaN()}
			want := 5 + effectOf(o) + 0.5*effectOf(100+p)
			if got := e.value(&PendingJob{Job: j}, appendKeys(nil, j)); left(o, p) &&
				math.Abs(got-want) > 0.2 {
				t.Errorf("owner %d, program %d: %.3f, want about %.3f", o, p, got, want)
			}
		}
	}
}

func TestEffectsThatDoNotMatterAreDrawnToNone(t *testing.T) {
	rows := crossed(0, 0, 1, func(int, int) bool { return false })
	e := fitEffects(rows, &linearModel{})
	drawn, undrawn := 0.0, 0.0
	for o := range 20 {
		of := 0.0 // the owner's mean
		for _, r := range rows[20*o : 20*(o+1)] {
			of += r.truth / 20
		}
		j := &Features{Owner: fmt.Sprint("o", o), Labels: []string{"never seen"}, Requested: math.NaN()}
		drawn += math.Abs(e.value(&PendingJob{Job: j}, appendKeys(nil, j)) - e.offset)
		undrawn += math.Abs(of - e.offset)
	}
	t.Logf("mean effect of an owner %.3f, their means deviate by %.3f", drawn/20, undrawn/20)
	if drawn > 0.6*undrawn {
		t.Errorf("mean effect of an owner %.3f, want 60 %% of %.3f at most", drawn/20, undrawn/20)
	}
}
