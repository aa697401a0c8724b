package savings

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/epplan/epplan/internal/store/record"
)

// Arms is what completed jobs of one kind used in each arm of the lot: jobs of one
// workload on one GPU model, while the same parts of the jobs were in the arms.
type Arms struct {
	Treated, Constant, Held record.Mean
}

// SavedStratum compares the treated runs with those held out.
func (a *Arms) SavedStratum() Stratum { return Stratum{Treated: a.Treated, Held: a.Held} }

// AddedStratum compares the treated runs with those at constant clocks.
func (a *Arms) AddedStratum() Stratum {
	return Stratum{Treated: a.Treated, Held: a.Constant, Third: a.Held}
}

// ConstantStratum compares the runs at constant clocks with those held out.
func (a *Arms) ConstantStratum() Stratum {
	return Stratum{Treated: a.Constant, Held: a.Held, Third: a.Treated}
}

// Stratum is two arms of jobs of one kind: the treated one, or the one in its place
// whose saving is estimated, and the held-out one, or what else that is compared with.
type Stratum struct {
	Treated, Held record.Mean
	// Third is another arm, of which only the scatter counts.
	Third record.Mean
}

// HasBothArms reports whether both arms have a run.
func (s *Stratum) HasBothArms() bool {
	return s.Treated.Runs > 0 && s.Held.Runs > 0 && s.Treated.Value > 0 && s.Held.Value > 0
}

// Estimate is what the treated runs of the compared strata saved, in joules, with
// the bounds of its 95 % interval: the sum over these strata of the treated runs
// times the difference between the expected energies of a held-out and a treated
// run. Strata that lack an arm are in none of it.
type Estimate struct {
	Treated, Held int64 // runs in compared strata
	Saved         float64
	Low, High     float64
	// Baseline is what the treated runs would have used at default clocks.
	Baseline float64
	// Needed is how many more held-out runs it takes, if both arms grow alike,
	// until the interval is without 0 in four of five cases; 0: it is already,
	// or nobody can tell.
	Needed int64
}

// How scatter is learnt where an arm has few runs: from the other arms', which
// count for as much as these degrees of freedom, and from all strata's, which
// count for less than one run does.
const (
	otherArmFreedom  = 10
	allStrataFreedom = 0.5
)

// The scatter is relative to the mean, and the arms of a stratum are as far apart
// as all strata's are; they aren't thought to be further apart than this.
const maxScaleRatio = 2

// Measure estimates what was saved.
//
// The difference of the means of the arms is unbiased whatever the energies are.
// Its error comes from the held-out runs nearly alone, of which a stratum may have
// one or two, and energies are skewed: their own variance tells too little, and is
// too small just when their mean is. So the relative variance is taken from both
// arms, each around the mean of the runs with the same clocks, and weakly from all
// strata. The interval is Student's with degrees of freedom after Welch and
// Satterthwaite.
func Measure(strata []Stratum) Estimate {
	var e Estimate
	treated := 0.0
	for i := range strata {
		if s := &strata[i]; s.HasBothArms() {
			n := float64(s.Treated.Runs)
			e.Treated += s.Treated.Runs
			e.Held += s.Held.Runs
			e.Baseline += n * s.Held.Value
			treated += n * s.Treated.Value
		}
	}
	if e.Treated == 0 {
		return Estimate{Needed: minHeldOutRuns(strata)}
	}
	half, known := halfInterval(strata, min(max(e.Baseline/treated, 1.0/maxScaleRatio), maxScaleRatio))
	if !known {
		return Estimate{Needed: minHeldOutRuns(strata)}
	}
	e.Saved = e.Baseline - treated
	e.Low, e.High = e.Saved-half, e.Saved+half
	e.Needed = moreRunsNeeded(e.Saved, half, e.Held)
	return e
}

// minHeldOutRuns returns how many held-out runs it takes until there is an estimate at all.
func minHeldOutRuns(strata []Stratum) int64 {
	for i := range strata {
		if strata[i].Treated.Runs > 0 {
			return 1
		}
	}
	return 0
}

// armScatter is that of a stratum, relative to the mean.
type armScatter struct {
	treated, heldOut         float64 // runs
	meanTreated, meanHeldOut float64
	ofTreated, ofHeldOut     varianceEstimate
	ofThird                  varianceEstimate
}

// varianceEstimate is one with its degrees of freedom.
type varianceEstimate struct{ value, freedom float64 }

// scaledScatter makes the arms comparable: the mean of each is taken from the runs of
// both, at a ratio of held-out to treated energies.
func scaledScatter(s *Stratum, ratio float64) armScatter {
	nt, nh := float64(s.Treated.Runs), float64(s.Held.Runs)
	mean := (nt*s.Treated.Value + nh*s.Held.Value/ratio) / (nt + nh)
	square := mean * mean
	return armScatter{
		treated: nt, heldOut: nh, meanTreated: mean, meanHeldOut: mean * ratio,
		ofTreated: varianceEstimate{s.Treated.Variance / square, float64(s.Treated.Freedom)},
		ofHeldOut: varianceEstimate{s.Held.Variance / square / (ratio * ratio), float64(s.Held.Freedom)},
		ofThird: varianceEstimate{
			s.Third.Variance / max(s.Third.Value*s.Third.Value, math.SmallestNonzeroFloat64),
			float64(s.Third.Freedom),
		},
	}
}

// combined adds what others say to a variance, with so many degrees of freedom.
func (v varianceEstimate) combined(o varianceEstimate, freedom float64) varianceEstimate {
	freedom = min(freedom, o.freedom)
	sum := v.freedom + freedom
	if sum == 0 {
		return v
	}
	return varianceEstimate{(v.value*v.freedom + o.value*freedom) / sum, sum}
}

// halfInterval is half of the interval's width; not known where no stratum tells
// how far runs scatter.
func halfInterval(strata []Stratum, ratio float64) (half float64, known bool) {
	var rows []armScatter
	var all varianceEstimate
	for i := range strata {
		if strata[i].HasBothArms() {
			r := scaledScatter(&strata[i], ratio)
			all = all.combined(r.ofTreated, math.Inf(1)).combined(r.ofHeldOut,
				math.Inf(1)).combined(r.ofThird, math.Inf(1))
			rows = append(rows, r)
		}
	}
	if all.freedom == 0 {
		return 0, false
	}
	// weight and spread are Σ w and Σ w²/f over the terms w of the variance, with
	// one relative variance in place of each arm's: that of an arm with few runs
	// says too little about how far it can be trusted.
	var sum, weight, spread float64
	for i := range rows {
		r := &rows[i]
		ofHeld := r.ofHeldOut.combined(r.ofTreated.combined(r.ofThird, math.Inf(1)),
			otherArmFreedom).combined(all, allStrataFreedom)
		ofTreated := r.ofTreated.combined(r.ofHeldOut.combined(r.ofThird, math.Inf(1)),
			otherArmFreedom).combined(all, allStrataFreedom)
		both := r.ofHeldOut.combined(r.ofTreated, math.Inf(1)).combined(r.ofThird, math.Inf(1)).combined(all,
			allStrataFreedom)
		term := func(mean, runs float64, own varianceEstimate) {
			w := r.treated * mean * r.treated * mean / runs
			sum += w * own.value
			weight += w * both.value
			spread += w * both.value * w * both.value / own.freedom
		}
		term(r.meanHeldOut, r.heldOut, ofHeld)
		// What these very runs saved is asked for, too: at default clocks they would scatter about that mean.
		term(max(r.meanTreated, r.meanHeldOut), r.treated, ofTreated)
	}
	if !(spread > 0) {
		return 0, true // all runs are alike
	}
	return studentQuantile(min(weight*weight/spread, all.freedom)) * math.Sqrt(sum), true
}

// studentQuantile returns the quantile of Student's distribution between whose negative
// and itself are 95 %.
func studentQuantile(freedom float64) float64 {
	const outside = 0.05
	x := mathext.InvRegIncBeta(freedom/2, 0.5, outside)
	return math.Sqrt(freedom * (1 - x) / x)
}

// moreRunsNeeded returns how many more held-out runs it takes: the saving grows with the runs,
// its error with their root. It has to be larger than half the interval by the
// error that is exceeded downwards once in five times.
func moreRunsNeeded(saved, half float64, held int64) int64 {
	const (
		most  = 1e9
		power = 1 + 0.8416/1.9600
	)
	if half < math.Abs(saved) || saved == 0 {
		return 0
	}
	ratio := power * half / saved
	return int64(math.Ceil(min(most, (ratio*ratio-1)*float64(held))))
}
