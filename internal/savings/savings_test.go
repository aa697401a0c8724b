package savings_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store/record"
)

// normal returns the mean of energies drawn from a normal distribution.
func normal(random *rand.Rand, n int, expected, deviation float64) record.Mean {
	var r runs
	for range n {
		r.add(expected + deviation*random.NormFloat64())
	}
	return mean(r)
}

func seeded(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 2))
}

func TestTheSavingIsTheDifferenceOfTheMeansByStratum(t *testing.T) {
	arm := func(runs int64, meanJ, variance float64) record.Mean {
		return record.Mean{Runs: runs, Value: meanJ, Variance: variance, Freedom: runs - 1}
	}
	e := savings.Measure([]savings.Stratum{
		{Treated: arm(10, 80, 4), Held: arm(3, 100, 5)},
		{Treated: arm(1, 7, 0), Held: arm(1, 6, 0)},
		{Treated: arm(1000, 9, 1)},                  // nobody was held out
		{Held: arm(5, 1e9, 1)},                      // nobody was treated
		{Treated: arm(4, 0, 0), Held: arm(4, 0, 0)}, // nothing was measured
	})
	if e.Treated != 11 || e.Held != 4 || e.Baseline != 1006 || e.Saved != 199 {
		t.Errorf("%+v, want 10 × 20 − 1 of 1006 J", e)
	}
	if !(e.Low < e.Saved && e.Saved < e.High && e.Low > 150) || math.Abs(e.Low+e.High-2*e.Saved) > 1e-9 ||
		e.Needed != 0 {
		t.Errorf("interval %+v", e)
	}
}

func TestNothingIsSaidWithoutScatterOrAnArm(t *testing.T) {
	one := record.Mean{Runs: 1, Value: 5}
	for name, c := range map[string]struct {
		strata []savings.Stratum
		needed int64
	}{
		"nothing":             {nil, 0},
		"held out alone":      {[]savings.Stratum{{Held: one}}, 0},
		"treated alone":       {[]savings.Stratum{{Treated: one}}, 1},
		"no scatter is known": {[]savings.Stratum{{Treated: one, Held: one}}, 1},
	} {
		if e := savings.Measure(c.strata); e != (savings.Estimate{Needed: c.needed}) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	same := record.Mean{Runs: 3, Value: 5, Freedom: 2}
	if e := savings.Measure([]savings.Stratum{{Treated: same, Held: same}}); e.Saved != 0 || e.Low != 0 ||
		e.High != 0 || e.Needed != 0 {
		t.Errorf("runs that are all alike: %+v", e)
	}
}

// With very few runs of one workload, and with normal energies, where Student's
// interval is exact.
func TestTheIntervalOfOneWorkloadHoldsTheTruth(t *testing.T) {
	const trials, truth = 4000, 20.0
	for _, size := range [][2]int{{30, 2}, {4, 3}, {20, 10}, {40, 1}} {
		random, within := seeded(1), 0
		for range trials {
			e := savings.Measure([]savings.Stratum{
				{Treated: normal(random, size[0], 80, 5), Held: normal(random, size[1], 80+truth, 5)},
			})
			if want := truth * float64(size[0]); e.Low <= want && want <= e.High {
				within++
			}
		}
		if share := float64(within) / trials; share < 0.935 {
			t.Errorf("%v runs: the truth is within the interval in %.1f %% of the trials", size, 100*share)
		}
	}
}

// As many more held-out runs as are said to be needed do in about four of five
// cases: the saving isn't known exactly when that is said.
func TestAsManyRunsAsAreNeededDoInMostCases(t *testing.T) {
	const trials = 2000
	random, certain := seeded(3), 0
	first := savings.Measure([]savings.Stratum{{
		Treated: record.Mean{Runs: 100, Value: 95, Variance: 400, Freedom: 99},
		Held:    record.Mean{Runs: 10, Value: 100, Variance: 400, Freedom: 9},
	}})
	if first.Low > 0 || first.Needed < 50 {
		t.Fatalf("%+v", first)
	}
	held := 10 + int(first.Needed)
	for range trials {
		e := savings.Measure([]savings.Stratum{
			{Treated: normal(random, 10*held, 95, 20), Held: normal(random, held, 100, 20)},
		})
		if e.Low > 0 {
			certain++
		}
	}
	if share := float64(certain) / trials; share < 0.75 || share > 0.88 {
		t.Errorf("%d held-out runs are enough in %.0f %% of the trials", held, 100*share)
	}
}

// Where the part that is held out changes while energies drift, the arms of the
// whole time aren't alike: in strata they are.
func TestAChangedHoldOutBiasesNothingInStrataOfItsOwn(t *testing.T) {
	const trials = 1000
	random, within, apart := seeded(4), 0, 0
	for range trials {
		var all [2]runs
		strata := make([]savings.Stratum, 0, 2)
		for _, time := range []struct{ expected, holdOut float64 }{{100, 0.5}, {150, 0.05}} {
			var arms [2]runs // nothing is saved
			for range 200 {
				arm := 0
				if random.Float64() < time.holdOut {
					arm = 1
				}
				x := time.expected * (1 + 0.1*random.NormFloat64())
				arms[arm].add(x)
				all[arm].add(x)
			}
			strata = append(strata, savings.Stratum{Treated: mean(arms[0]), Held: mean(arms[1])})
		}
		if e := savings.Measure(strata); e.Low <= 0 && 0 <= e.High {
			within++
		}
		if e := savings.Measure([]savings.Stratum{{Treated: mean(all[0]), Held: mean(all[1])}}); e.Low > 0 ||
			e.High < 0 {
			apart++
		}
	}
	if share := float64(within) / trials; share < 0.93 || share > 0.98 {
		t.Errorf("in strata the truth is within the interval in %.1f %% of the trials", 100*share)
	}
	if apart < trials/2 {
		t.Errorf("without strata only %d of %d trials are wrong: this test shows nothing", apart, trials)
	}
}
