package savings_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/savings"
)

// bars say which part of a workload's jobs may not run at constant clocks, by their
// limits, and is at default ones though it is in that arm.
var bars = []struct {
	name      string
	of        []float64 // by workload
	low, high float64   // how often intervals hold the truth
}{
	{"jobs of a workload have one limit", []float64{0, 0, 0, 0, 1}, 92.5, 97.5},
	{"a fifth of the jobs of each workload has a short one", []float64{0.2}, 89, 97.5},
}

// flat draws the runs of one workload in three arms, and what is expected to have been
// saved: by the treated runs over held-out ones and over those at constant clocks, and
// by these over held-out ones.
func flat(
	random *rand.Rand, n int, deviation, holdOut, constant, barred float64,
) (arms savings.Arms, saved, added, savedConstant float64) {
	expected := 1e6 * math.Exp(random.NormFloat64())
	// Some lose at constant clocks.
	usual, uniform := mostSaved*random.Float64(), mostSaved*random.Float64()-0.1
	var held runs
	var treated [1 + exploring]runs // by clocks, as below
	// One group, whatever their clocks are: which jobs are barred comes with the draw.
	var constants runs
	for run := unmodelled; run < n; run++ {
		energy := expected * math.Exp(deviation*random.NormFloat64()-deviation*deviation/2)
		share, at := usual, &treated[0]
		if tried := run - unmodelled; tried < exploring {
			share, at = usual-0.3*random.Float64(), &treated[1+tried]
		}
		fixed := uniform
		if random.Float64() < barred {
			fixed = 0
		}
		switch lot := random.Float64(); {
		case lot < holdOut:
			held.add(energy)
		case lot >= 1-constant:
			constants.add(energy * (1 - fixed))
			savedConstant += expected * uniform * (1 - barred)
		default:
			at.add(energy * (1 - share))
			saved += expected * share
			added += expected * (share - uniform*(1-barred))
		}
	}
	return savings.Arms{
		Treated: mean(treated[:]...), Constant: mean(constants), Held: mean(held),
	}, saved, added, savedConstant
}

// Each comparison of two of three arms holds its truth as that of two arms does: in
// months whose constant arm saves something, nothing, or costs energy.
func TestTheIntervalsOfThreeArmsHoldTheTruth(t *testing.T) {
	for i, k := range kinds {
		for c := range 2 * len(bars) {
			parts, bar := [][2]float64{{0.05, 0.05}, {0.1, 0.2}}[c%2], bars[c/2]
			within, off := monthsOfThreeArms(uint64(100+i), &k, parts[0], parts[1], bar.of)
			for c, name := range []string{
				"treated over held out", "treated over constant",
				"constant over held out",
			} {
				t.Logf("| %s | %s | %d | %v %%, %v %% | %s | %.1f %% | %+.2f %% |", bar.name, k.name, k.runs,
					100*parts[0], 100*parts[1], name, within[c], off[c])
				if within[c] < bar.low || within[c] > bar.high {
					t.Errorf("%s, %s, %v: %s: the truth is within the interval in %.1f %% of the months",
						bar.name, k.name, parts, name, within[c])
				}
				if math.Abs(off[c]) > 1 {
					t.Errorf("%s, %v: %s: off by %.2f %% of the baseline in the mean", k.name, parts,
						name, off[c])
				}
			}
		}
	}
}

// monthsOfThreeArms are in how many percent of the months each interval holds its
// truth, and by how many percent of the baseline all of them are off.
func monthsOfThreeArms(
	stream uint64, k *kind, holdOut, constant float64, barred []float64,
) (within, off [3]float64) {
	const months = 1000
	var total [3]float64
	for seed := range uint64(months) {
		random := rand.New(rand.NewPCG(seed, stream))
		estimates, truths := threeArms(random, k, holdOut, constant, barred)
		for c, e := range estimates {
			if e.Low <= truths[c] && truths[c] <= e.High {
				within[c] += 100.0 / months
			}
			off[c], total[c] = off[c]+e.Saved-truths[c], total[c]+e.Baseline
		}
	}
	for c := range off {
		off[c] *= 100 / total[c]
	}
	return within, off
}

// threeArms draws a month, and compares its arms.
func threeArms(
	random *rand.Rand, k *kind, holdOut, constant float64, barred []float64,
) (estimates [3]savings.Estimate, truths [3]float64) {
	weights := 0.0
	for w := range workloads {
		weights += 1 / float64(w+1)
	}
	compare := [3]func(*savings.Arms) savings.Stratum{
		(*savings.Arms).SavedStratum, (*savings.Arms).AddedStratum, (*savings.Arms).ConstantStratum,
	}
	var strata [3][]savings.Stratum
	for w := range workloads {
		deviation := k.low + (k.high-k.low)*random.Float64()
		if k.heavy > 0 && w%5 == 4 {
			deviation = k.heavy
		}
		arms, saved, added, savedConstant := flat(random, int(float64(k.runs)/float64(w+1)/weights),
			deviation, holdOut, constant, barred[w%len(barred)])
		for c, truth := range []float64{saved, added, savedConstant} {
			s := compare[c](&arms)
			if strata[c] = append(strata[c], s); s.HasBothArms() {
				truths[c] += truth
			}
		}
	}
	for c := range strata {
		estimates[c] = savings.Measure(strata[c])
	}
	return estimates, truths
}

// What runs at constant clocks used is in no comparison of the other two arms, and
// without such runs nothing is said of them.
func TestArmsAreComparedTwoByTwo(t *testing.T) {
	random := seeded(5)
	treated, held := normal(random, 40, 80, 5), normal(random, 10, 100, 5)
	two := savings.Measure([]savings.Stratum{{Treated: treated, Held: held}})
	for _, constant := range []savings.Arms{
		{},
		{Constant: normal(random, 20, 90, 5)},
		{Constant: normal(random, 1, 1e9, 1e8)},
	} {
		arms := savings.Arms{Treated: treated, Constant: constant.Constant, Held: held}
		if e := savings.Measure([]savings.Stratum{arms.SavedStratum()}); e != two {
			t.Errorf("beside %+v: %+v, want %+v", arms.Constant, e, two)
		}
	}
	none := savings.Arms{Treated: treated, Held: held}
	if e := savings.Measure([]savings.Stratum{none.AddedStratum()}); e != (savings.Estimate{Needed: 1}) {
		t.Errorf("added to nothing: %+v", e)
	}
	if e := savings.Measure([]savings.Stratum{none.ConstantStratum()}); e != (savings.Estimate{}) {
		t.Errorf("saved by nothing: %+v", e)
	}
	three := savings.Arms{Treated: treated, Constant: normal(random, 20, 90, 5), Held: held}
	added, saved := savings.Measure([]savings.Stratum{three.AddedStratum()}),
		savings.Measure([]savings.Stratum{three.ConstantStratum()})
	if added.Treated != 40 || added.Held != 20 || !(added.Low > 0 && added.Low < 400 && 400 < added.High) {
		t.Errorf("added: %+v, want 40 × 10", added)
	}
	if saved.Treated != 20 || saved.Held != 10 || !(saved.Low > 0 && saved.Low < 200 && 200 < saved.High) {
		t.Errorf("saved by constant clocks: %+v, want 20 × 10", saved)
	}
}
