package predict

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTheLadderTakesTheGuessThatWasBestInItsSituation(t *testing.T) {
	l := newGuessWeighting()
	random := rand.New(rand.NewPCG(1, 1))
	alikeRuns, otherRuns := situation{byAll, 3, 4}, situation{byOwner, 3, 4}
	for range 500 {
		v := random.NormFloat64() + 5
		var g [guesses]float64
		for k := range g {
			g[k] = v + 1
		}
		g[guessLast] = v + 0.1
		l.learn(alikeRuns, 1, &g, v)
		g[guessLast], g[guessTrees] = v+1, v+0.1
		l.learn(otherRuns, 1, &g, v)
	}
	heaviest := func(l *guessWeighting, s situation, fitted bool) int {
		w := l.weights(s, 1, false, fitted)
		sum, most := 0.0, 0
		for k, v := range w {
			if sum += v; v > w[most] {
				most = k
			}
		}
		if math.Abs(sum-1) > 1e-9 || w[most] < 0.9 {
			t.Errorf("weights %v, want a sum of 1, and nearly all of it on one", w)
		}
		return most
	}
	if got := heaviest(l, alikeRuns, true); got != guessLast {
		t.Errorf("guess %d, want the last run", got)
	}
	if got := heaviest(l, otherRuns, true); got != guessTrees {
		t.Errorf("guess %d, want trees", got)
	}
	if w := l.weights(otherRuns, 1, false, false); w[guessTrees] != 0 || w[guessDeviation] != 0 {
		t.Errorf("weights %v, want none of what needs a fit", w)
	}
	w := l.weights(situation{byShape, 0, 0}, 1, false, true)
	if best := w[guessTrees] + w[guessLast]; best < 0.9 {
		t.Errorf("weights %v in a situation that was never seen, want those that are good elsewhere", w)
	}
	if got := heaviest(newGuessWeighting(), alikeRuns, true); got != guessUsual {
		t.Errorf("guess %d of a weighting that knows nothing, want what is usual", got)
	}
}

func TestATrackForgetsTheOldest(t *testing.T) {
	const kept = 150
	var tr track
	for i := range 3 * kept {
		tr.add(float64(i), float64(i), i%2 == 0, kept)
	}
	if len(tr.order.sorted) != kept || tr.order.sorted[0] != 2*kept || tr.order.sorted[kept-1] != 3*kept-1 {
		t.Errorf("%d values from %g to %g are kept", len(tr.order.sorted), tr.order.sorted[0],
			tr.order.sorted[len(tr.order.sorted)-1])
	}
	if got, want := tr.median(), float64(2*kept)+float64(kept-1)/2; got != want {
		t.Errorf("median %g, want %g", got, want)
	}
	if got, want := tr.recentMedian(), float64(3*kept-1-recentValues/2); got != want {
		t.Errorf("recent median %g, want %g", got, want)
	}
	if math.Abs(tr.midmean()-tr.median()) > 1e-9 || tr.valueBack(0) != 3*kept-1 ||
		!math.IsNaN(tr.valueBack(kept)) {
		t.Errorf("middle half %g, last %g", tr.midmean(), tr.valueBack(0))
	}
}

func TestOwnersAreJudgedByTheirOwnJobs(t *testing.T) {
	l := newGuessWeighting()
	random := rand.New(rand.NewPCG(1, 1))
	s := situation{byAll, 3, 4}
	const steady, changing = 1, 2
	for range 500 {
		v := random.NormFloat64() + 5
		var g [guesses]float64
		for k := range g {
			g[k] = v + 1
		}
		g[guessLast] = v + 0.1
		l.learn(s, steady, &g, v)
		g[guessLast], g[guessTrees] = v+1, v+0.1
		l.learn(s, changing, &g, v)
	}
	first, second := l.weights(s, steady, false, true), l.weights(s, changing, false, true)
	if first[guessLast] < 2*first[guessTrees] || second[guessTrees] < 2*second[guessLast] {
		t.Errorf("last run and trees weigh %g and %g for one owner, %g and %g for the other, want the last "+
			"run first, then the trees",
			first[guessLast], first[guessTrees], second[guessLast], second[guessTrees])
	}
	if w := l.weights(s, 3, false, true); math.Abs(w[guessLast]-w[guessTrees]) > 0.15 {
		t.Errorf("weights %g and %g for an owner never seen, want about the same", w[guessLast],
			w[guessTrees])
	}
}

func TestABlendIsTheMeanOfTheMiddleHalf(t *testing.T) {
	repeat, other := situation{byAll, 3, 4}, situation{byOwner, 3, 4}
	var g, w [guesses]float64
	g[0], g[1], g[2], g[3] = 8, 1, 2, -9
	w[0], w[1], w[2], w[3] = 0.25, 0.25, 0.25, 0.25
	if got := midmeanOf(other, &w, &g); math.Abs(got-1.5) > 1e-9 {
		t.Errorf("%g, want the mean of 1 and 2", got)
	}
	w[0], w[1], w[2], w[3] = 0, 0.6, 0.4, 0
	if got := midmeanOf(other, &w, &g); math.Abs(got-1.3) > 1e-9 {
		t.Errorf("%g, want the part of 1 that lies in the middle half and of 2, 0.35 and 0.15", got)
	}
	// Three say 1, one says 2: of a job run before they count once each.
	g[0], g[1], g[2], g[3] = 1, 1, 1, 2
	w[0], w[1], w[2], w[3] = 0.2, 0.2, 0.2, 0.4
	if got := midmeanOf(repeat, &w, &g); math.Abs(got-2) > 0.2 {
		t.Errorf("%g, want about 2, which weighs twice what 1 does", got)
	}
	if got := midmeanOf(other, &w, &g); math.Abs(got-1.3) > 1e-9 {
		t.Errorf("%g, want those that say 1 to weigh more together", got)
	}
}

func TestALineReachesBeyondWhatWasSeen(t *testing.T) {
	var x [][]float64
	var y, w []float64
	for i := range 200 {
		v := float64(i) / 50
		row := []float64{v, math.NaN()}
		if i%20 == 0 {
			x, y, w = append(x, row), append(y, 100), append(w, 1) // an outlier
			continue
		}
		x, y, w = append(x, row), append(y, 2*v+1), append(w, 1)
	}
	l, err := fitLinear(x, y, w, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.value([]float64{10, math.NaN()}); math.Abs(got-21) > 1 {
		t.Errorf("at 10: %g, want about 21", got)
	}
}
