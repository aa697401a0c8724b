package savings_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/internal/savings"
	"github.com/epplan/epplan/internal/store/record"
)

// kind says what months are like.
type kind struct {
	name      string
	runs      int     // of all workloads
	low, high float64 // bounds of the standard deviation of a run's logarithm, by workload
	heavy     float64 // that of every fifth workload; 0: as the others
}

var kinds = []kind{
	{"1 to 10 %", 2000, 0.01, 0.1, 0},
	{"5 to 40 %", 2000, 0.05, 0.4, 0},
	{"5 to 40 %, a fifth 100 %", 2000, 0.05, 0.4, 1},
	{"50 to 120 %", 2000, 0.5, 1.2, 0},
	{"1 to 10 %, few runs", 300, 0.01, 0.1, 0},
	{"5 to 40 %, a fifth 100 %, few runs", 600, 0.05, 0.4, 1},
	{"1 to 10 %, a fifth 100 %", 1000, 0.01, 0.1, 1},
	{"5 to 40 %, a fifth 100 %, many runs", 6000, 0.05, 0.4, 1},
}

// What a month has: workloads whose numbers of runs fall like 1/k; the first runs
// of each have no model and are in no arm, then some explore at other clocks.
const (
	workloads  = 20
	unmodelled = 2
	exploring  = 4
	mostSaved  = 0.3
)

// runs are the sums of runs at the same clocks.
type runs struct{ n, sum, squares float64 }

func (r *runs) add(x float64) { r.n, r.sum, r.squares = r.n+1, r.sum+x, r.squares+x*x }

// mean is that of runs by their clocks, as the store has it.
func mean(groups ...runs) record.Mean {
	var m record.Mean
	within, sum := 0.0, 0.0
	for _, g := range groups {
		if g.n > 0 {
			m.Runs += int64(g.n)
			m.Freedom += int64(g.n) - 1
			sum += g.sum
			within += max(0, g.squares-g.sum*g.sum/g.n)
		}
	}
	if m.Runs > 0 {
		m.Value = sum / float64(m.Runs)
	}
	if m.Freedom > 0 {
		m.Variance = within / float64(m.Freedom)
	}
	return m
}

// month draws what ran, and what the treated runs of the compared workloads are
// expected to have saved.
func month(random *rand.Rand, k *kind, holdOut float64) (strata []savings.Stratum, truth float64) {
	total := 0.0
	for i := range workloads {
		total += 1 / float64(i+1)
	}
	for i := range workloads {
		n := int(float64(k.runs) / float64(i+1) / total * (0.7 + 0.6*random.Float64()))
		deviation := k.low + (k.high-k.low)*random.Float64()
		if k.heavy > 0 && i%5 == 4 {
			deviation = k.heavy
		}
		s, saved := workload(random, n, deviation, holdOut)
		strata = append(strata, s)
		if s.HasBothArms() {
			truth += saved
		}
	}
	return strata, truth
}

// workload draws the runs of one.
func workload(random *rand.Rand, n int, deviation, holdOut float64) (savings.Stratum, float64) {
	expected := 1e6 * math.Exp(random.NormFloat64())
	usual, saved := mostSaved*random.Float64(), 0.0
	var held runs
	var treated [1 + exploring]runs // by clocks
	for run := unmodelled; run < n; run++ {
		energy := expected * math.Exp(deviation*random.NormFloat64()-deviation*deviation/2)
		share, at := usual, &treated[0]
		if tried := run - unmodelled; tried < exploring {
			share, at = usual-0.3*random.Float64(), &treated[1+tried]
		}
		if random.Float64() < holdOut {
			held.add(energy)
			continue
		}
		at.add(energy * (1 - share))
		saved += expected * share
	}
	return savings.Stratum{Treated: mean(treated[:]...), Held: mean(held)}, saved
}

// The table in docs/savings.md has what this test logs.
func TestTheIntervalHoldsTheTrueSavingOf95MonthsIn100(t *testing.T) {
	const months = 1000
	for i, k := range kinds {
		for _, holdOut := range []float64{0.05, 0.2} {
			within, above, compared, width, errors, total := 0, 0, 0, 0.0, 0.0, 0.0
			for seed := range uint64(months) {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				strata, truth := month(random, &k, holdOut)
				e := savings.Measure(strata)
				switch {
				case e.Low <= truth && truth <= e.High:
					within++
				case truth > e.High:
					above++
				}
				for i := range strata {
					if strata[i].HasBothArms() {
						compared++
					}
				}
				width += (e.High - e.Low) / 2 / e.Baseline
				errors, total = errors+e.Saved-truth, total+truth
			}
			share := func(n int) float64 { return 100 * float64(n) / months }
			t.Logf("| %s | %d | %v %% | %.1f %% | %.1f %% | %.1f | %.1f %% | %+.2f %% |", k.name,
				k.runs, 100*holdOut,
				share(within), share(above), float64(compared)/months, 100*width/months, 100*errors/total)
			if p := share(within); p < 93 || p > 97 {
				t.Errorf("%s, %v %% held out: the truth is within the interval in %.1f %% of the months",
					k.name, 100*holdOut, p)
			}
		}
	}
}

// TestTheIntervalHoldsWhatTheseVeryRunsSaved draws months of 60 runs: what those saved that were treated
// isn't what such runs are expected to, and the interval is read as if it were.
func TestTheIntervalHoldsWhatTheseVeryRunsSaved(t *testing.T) {
	const months, perWorkload, deviation, holdOut = 5000, 17, 0.03, 0.25
	for _, share := range []float64{0.37, 0, -0.15} {
		within := 0
		for seed := range uint64(months) {
			random := rand.New(rand.NewPCG(seed, 77))
			strata, truth := make([]savings.Stratum, 3), 0.0
			for i := range strata {
				var held, treated runs
				saved := 0.0
				for range perWorkload {
					usual := math.Exp(deviation * random.NormFloat64())
					if random.Float64() < holdOut {
						held.add(usual)
						continue
					}
					treated.add(usual * (1 - share))
					saved += usual * share
				}
				if strata[i] = (savings.Stratum{Treated: mean(treated), Held: mean(held)}); strata[i].HasBothArms() {
					truth += saved
				}
			}
			if e := savings.Measure(strata); e.Low <= truth && truth <= e.High {
				within++
			}
		}
		t.Logf("a saving of %v %%: within in %.1f %%", 100*share, 100*float64(within)/months)
		if p := 100 * float64(within) / months; p < 94 {
			t.Errorf("a saving of %v %%: what was saved is within the interval in %.1f %% of the months", 100*share, p)
		}
	}
}

// A group's saving is stated from 5 held-out runs on (epdapi.MinHeldOut), which may all be of one workload.
func TestTheIntervalOfASmallGroupHoldsTheTruth(t *testing.T) {
	const groups, heldOut, holdOut = 4000, 5, 0.05
	for _, c := range []struct{ low, high, least float64 }{{0.01, 0.1, 93}, {0.05, 0.4, 93}, {0.5, 1.2, 89}} {
		within, above, stated := 0, 0, 0
		for seed := range uint64(groups) {
			random := rand.New(rand.NewPCG(seed, 79))
			strata, truth := make([]savings.Stratum, 1+random.IntN(3)), 0.0
			for i := range strata {
				s, saved := workload(random, 40+random.IntN(80), c.low+(c.high-c.low)*random.Float64(), holdOut)
				if strata[i] = s; s.HasBothArms() {
					truth += saved
				}
			}
			e := savings.Measure(strata)
			if e.Held < heldOut {
				continue
			}
			stated++
			switch {
			case e.Low <= truth && truth <= e.High:
				within++
			case truth > e.High:
				above++
			}
		}
		share := func(n int) float64 { return 100 * float64(n) / float64(stated) }
		t.Logf("%v to %v %%: %d groups, within in %.1f %%, above in %.1f %%", 100*c.low, 100*c.high, stated,
			share(within), share(above))
		if p := share(within); p < c.least || stated < groups/4 {
			t.Errorf("scatter of %v to %v: the truth is within %.1f %% of %d intervals", c.low, c.high, p, stated)
		}
	}
}
