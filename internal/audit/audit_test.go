package audit_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/audit"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// site is one whose change is known.
type site struct {
	runs   []audit.Run
	change time.Time
	effect float64 // on the energy of work like this, relative
}

// drawSite draws kinds of jobs, some of which run far more often than others, whose energies scatter and
// drift; a change that affects them differently; and another mix of jobs after it.
func drawSite(rng *rand.Rand, mean float64) site {
	kinds := 8 + rng.IntN(80)
	scatter, drift, differ := 0.05+0.4*rng.Float64(), 0.1*rng.Float64(), 0.06*rng.Float64()
	s := site{change: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)}
	for k := range kinds {
		base := math.Exp(14 + 1.2*rng.NormFloat64())
		effect := math.Exp(mean + differ*rng.NormFloat64())
		moved := math.Exp(drift * rng.NormFloat64())
		often := math.Exp(1.5 + rng.NormFloat64())
		for period, days := range [...]float64{60, 45} {
			runs := int(often * math.Exp(0.7*rng.NormFloat64()) * days / 30)
			for range runs {
				joules := base * math.Exp(scatter*rng.NormFloat64()-scatter*scatter/2)
				at := s.change.Add(-time.Duration(days * rng.Float64() * float64(24*time.Hour)))
				if period == 1 {
					at = s.change.Add(time.Duration(days * rng.Float64() * float64(24*time.Hour)))
					joules *= effect * moved
				}
				s.runs = append(s.runs, audit.Run{
					Kind: strconv.Itoa(k), At: at, Joules: joules, Seconds: joules / 300, GPUs: 1,
				})
			}
		}
	}
	s.effect = math.Expm1(mean + differ*differ/2)
	return s
}

// TestIntervalsHoldTheTrueEffect draws sites with known effects: how often the interval holds the true one,
// and how far off the estimate is in the mean, beside means before and after.
func TestIntervalsHoldTheTrueEffect(t *testing.T) {
	sites := shareddata.Rounds[uint64](1000, 1000, 10_000)
	for _, mean := range []float64{0, -0.1, -0.3} {
		held, known, bias, naive, far, width, placebo := 0, 0, 0.0, 0.0, 0.0, 0.0, 0
		for seed := range sites {
			s := drawSite(rand.New(rand.NewPCG(seed, 71)), mean)
			before, after := audit.Split(s.runs, s.change)
			r := audit.Compare(before, after)
			if !r.Energy.IsKnown() {
				continue
			}
			known++
			if r.Energy.Low <= s.effect && s.effect <= r.Energy.High {
				held++
			}
			if r.Placebo.HasZero() {
				placebo++
			}
			bias += r.Energy.Change - s.effect
			far += math.Abs(r.Energy.Change - s.effect)
			naive += math.Abs(r.Naive - s.effect)
			width += (r.Energy.High - r.Energy.Low) / 2
		}
		n := float64(known)
		coverage, placebos := float64(held)/n, float64(placebo)/n
		bias, far, naive, width = 100*bias/n, 100*far/n, 100*naive/n, 100*width/n
		t.Logf("effect %.0f %%: held %.3f of %d, bias %+.2f points, off by %.2f, naively by %.2f, ± %.2f, "+
			"placebo %.3f", 100*math.Expm1(mean), coverage, known, bias, far, naive, width, placebos)
		if coverage < 0.90 || coverage > 0.97 || math.Abs(bias) > 0.5 || known < 900 || placebos < 0.90 {
			t.Errorf("effect %v: held %.3f of %d, bias %+.2f points, placebo %.3f", mean, coverage, known, bias,
				placebos)
		}
	}
}

// What a change saved is what the jobs after it would have taken more without it.
func TestWhatAChangeSavedIsWhatTheJobsAfterItWouldHaveTaken(t *testing.T) {
	change := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	var runs []audit.Run
	for kind := range 6 {
		for day := -5; day < 5; day++ {
			joules := 1e6 * float64(1+kind)
			if day >= 0 {
				joules *= 0.8
			}
			runs = append(runs, audit.Run{
				Kind: strconv.Itoa(kind), At: change.AddDate(0, 0, day), Joules: joules, Seconds: 1, GPUs: 1,
			})
		}
	}
	r := audit.Compare(audit.Split(runs, change))
	saved, low, high := r.Saved()
	if want := 0.2 * 5 * 21e6; math.Abs(saved-want) > 1 || low > saved || high < saved {
		t.Errorf("saved %v J (%v to %v), want %v", saved, low, high, want)
	}
}
