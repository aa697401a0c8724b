package dvfsmodel

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Uncertainty is how far off the predictions of a model may be, in standard deviations.
// Predictions that share an Uncertainty are off together; those of two Uncertainties have nothing to
// do with each other.
type Uncertainty struct {
	Level Deviation // at default clocks
	// LevelShare is the part of Level by which predictions are off at other clocks, too, and
	// Clocks what they are off by there beside that.
	LevelShare float64
	Clocks     func(s Scaling) Deviation
}

// Deviation is of ln time and of ln power, which have nothing to do with each other.
type Deviation struct{ Time, Power float64 }

// NewUncertainty is that of a model whose predictions are off by so much in the mean at
// settings that it wasn't fitted to: |predicted/measured − 1| of time and power. Errors
// of a mean size m come from a standard deviation of m·√(π/2). Those of few settings
// are themselves uncertain: free is how many settings there were beyond those that the
// coefficients take, and less than 1 counts as 1.
//
// Errors at two settings are taken to be correlated by a half: the ratio of what a run
// takes at two settings is then as far off as what it takes at one, as was found on the
// measured tables.
func NewUncertainty(timeError, powerError float64, free int) *Uncertainty {
	scale := math.Sqrt(math.Pi/2) * StudentWidening(free)
	d := Deviation{Time: scale * timeError, Power: scale * powerError}
	const kept = 0.5
	beside := math.Sqrt(1 - kept*kept)
	other := Deviation{Time: beside * d.Time, Power: beside * d.Power}
	return &Uncertainty{Level: d, LevelShare: kept, Clocks: func(Scaling) Deviation { return other }}
}

// UpperQuantile is the part of the truths that lie below the upper bound of a 90 % interval,
// and UpperSigmas how far that is above the mean, in standard deviations.
const (
	UpperQuantile = 0.95
	UpperSigmas   = 1.6448536269514722
)

// StudentWidening returns the factor by which a normal interval must be widened if its standard deviation
// was estimated with free degrees of freedom (at least 1): Student's quantile over the normal one, both at
// [UpperQuantile].
func StudentWidening(free int) float64 {
	nu := float64(max(1, free))
	const tails = 2
	x := mathext.InvRegIncBeta(nu/2, 0.5, tails*(1-UpperQuantile)) // ν/(ν+t²) of the quantile t
	return math.Sqrt(nu*(1-x)/x) / UpperSigmas
}
