package learn

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

// Of what workloads on a GPU model have in common under power limits.
const (
	minUnderLimits = 3  // workloads that ran under several limits, from which on anything is common
	maxUnderLimits = 40 // of which it is learnt
	gridClocks     = 6  // clocks at which it is looked how sure a model is
	// sureTimes is how many standard deviations a run seldom exceeds: it holds coverage of runs on both
	// sides.
	sureTimes = 1.645
)

// commonLimits is what workloads on a GPU model have in common under power limits, and what they ran at.
type commonLimits struct {
	*pooled.Limits

	low  dvfsmodel.Setting // the lowest clocks and limit
	caps []dvfsmodel.Watt
}

func hasSeveralLimits(samples []dvfsmodel.Sample) bool {
	return slices.ContainsFunc(samples, func(s dvfsmodel.Sample) bool { return s.Cap != samples[0].Cap })
}

// learnCommonLimits returns what workloads have in common by their runs under several limits, of which each user's
// first ones count; nil: they are too few.
func learnCommonLimits(all []workloadRuns, base dvfsmodel.Setting) *commonLimits {
	workloads := make([][]dvfsmodel.Sample, 0, maxUnderLimits)
	common, ofUser := &commonLimits{low: base}, make(map[string]int)
	common.low.Cap = dvfsmodel.Watt(math.Inf(1))
	for i := range all {
		runs := all[i].underLimits
		if ofUser[all[i].user] >= minUnderLimits || len(workloads) == maxUnderLimits || !hasSeveralLimits(runs) {
			continue
		}
		ofUser[all[i].user]++
		workloads = append(workloads, runs)
		for _, s := range runs {
			common.low = dvfsmodel.Setting{
				Core: min(common.low.Core, s.Core), Mem: min(common.low.Mem, s.Mem), Cap: min(common.low.Cap, s.Cap),
			}
			common.caps = append(common.caps, s.Cap)
		}
	}
	if len(workloads) < minUnderLimits {
		return nil
	}
	slices.Sort(common.caps)
	common.caps = slices.Compact(common.caps)
	var err error
	if common.Limits, err = pooled.LearnLimits(workloads, pooled.HighestSetting(workloads, base)); err != nil {
		return nil
	}
	return common
}

// limits returns what workloads on a GPU model have in common under power limits; nil: nothing yet.
func (p *priors) limits(gpuModel priorKey, base dvfsmodel.Setting) *commonLimits {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.byGPU[gpuModel]; g != nil && g.base == base {
		return g.common
	}
	return nil
}

// fit returns the model of a workload's runs, with what is common.
func (c *commonLimits) fit(samples []dvfsmodel.Sample) (*dvfsmodel.Fitted, error) {
	u, err := c.Condition(samples)
	if err != nil {
		return nil, err
	}
	return u.Fitted()
}

// model returns the model of a workload, which may be at the clocks and under the limits of others, too:
// how far it may be off is what all these runs leave open, and how far settings are off by models that
// didn't see them, unless they are few. nil: that is too much.
func (c *commonLimits) model(
	settings, samples []dvfsmodel.Sample, base dvfsmodel.Setting, few bool, stretch float64,
) *choose.Capped {
	u, err := c.Condition(settings)
	if err != nil {
		return nil
	}
	fitted, err := u.Fitted()
	if err != nil {
		return nil
	}
	off, ok := residuals(fitted, samples)
	if !few {
		off, ok = leftOutErrors(settings, samples, c.fit)
	}
	if !ok {
		return nil
	}
	over := base
	over.Cap = slices.Max(fitted.Caps)
	grid := []dvfsmodel.Setting{over}
	caps := slices.Concat(fitted.Caps, c.caps)
	slices.Sort(caps)
	fitted.Caps = nil
	for _, limit := range slices.Compact(caps) {
		for i := range gridClocks {
			part := dvfsmodel.MHz(i) / (gridClocks - 1)
			at := dvfsmodel.Setting{
				Core: base.Core + part*(c.low.Core-base.Core), Mem: base.Mem, Cap: limit,
			}
			if u.UpperSlowdown(at, over, 0) <= stretch {
				grid, fitted.Caps = append(grid, at), append(fitted.Caps, limit)
			}
		}
	}
	fitted.Caps = slices.Compact(fitted.Caps)
	fitted.TimeError = mean(off)
	m := &choose.Capped{
		Fitted: fitted, Low: c.low,
		Margin: max(marginOf(off), math.Expm1(sureTimes*u.TimeDeviation(grid, over))),
	}
	if fitted.TimeError > maxFitError || !(m.Margin <= maxMargin) {
		return nil
	}
	return m
}

// residuals returns how far off the logarithms of run times are.
func residuals(fitted *dvfsmodel.Fitted, samples []dvfsmodel.Sample) ([]float64, bool) {
	off := make([]float64, len(samples))
	for i := range samples {
		s := &samples[i]
		at := fitted.Under(s.Cap).At(s.Core, s.Mem)
		if off[i] = math.Abs(math.Log(s.Time / at.Time)); math.IsNaN(off[i]) {
			return nil, false
		}
	}
	return off, true
}

// triedParts are the power limits that are tried, as parts of what a run draws at default clocks, and
// triedClocks at how many clocks at most.
var triedParts = [...]float64{1.1, 1, 0.9, 0.8, 0.7, 0.6, 0.5}

const (
	triedClocks = 12
	triedStep   = 5 // watts of which those limits are multiples: workloads that draw alike share some
	// leastHeld is the part of the power that a limit takes away at least where it is worth trying: less
	// is what runs differ by.
	leastHeld = 0.02
)

// explore is where something can be learnt of a workload: of clocks, and of clocks and power limits.
type explore struct{ clocks, limits []Candidate }

// limitCandidates returns the settings of clocks and power limit at which something can be learnt of a
// workload, the most first; none where no device of the model was seen, or its limit can't be set.
func limitCandidates(
	samples []dvfsmodel.Sample, noise pooled.Noise, base dvfsmodel.Setting, common *commonLimits, gpu *GPU,
	stretch float64,
) []Candidate {
	if len(gpu.Allowed) == 0 || !(gpu.Limit.InForce > 0) || len(samples) == 0 {
		return nil
	}
	standard := base
	standard.Cap = gpu.Limit.InForce
	var limits *pooled.Limits
	if common != nil {
		limits = common.Limits
	} else {
		var err error
		top := pooled.HighestSetting([][]dvfsmodel.Sample{samples}, standard)
		if limits, err = pooled.GeneralLimits(top); err != nil {
			return nil
		}
	}
	known, err := limits.Condition(samples)
	if err != nil {
		return nil
	}
	settings := slices.DeleteFunc(triedSettings(known, standard, gpu), func(at dvfsmodel.Setting) bool {
		return !(known.UpperSlowdown(at, standard, 0) <= stretch)
	})
	if len(settings) == 0 {
		return nil
	}
	var list []Candidate
	for i, gain := range known.Belief(settings, gpu.HostW).Gains(noise) {
		if !(gain >= probeGain) || math.IsInf(gain, 0) {
			continue
		}
		c := Candidate{At: settings[i], Gain: gain}
		if c.At.Cap == gpu.Limit.InForce {
			c.At.Cap = 0
		} else {
			c.Expected = known.UpperSlowdown(settings[i], standard, 0)
			c.AtMost = known.UpperSlowdown(settings[i], standard, sureTimes)
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(b.Gain, a.Gain) })
	return list
}

// triedSettings returns the settings among which a probe is chosen: clocks under the limit in force, and
// under lower ones that hold the workload down there.
func triedSettings(known *pooled.UnderLimits, standard dvfsmodel.Setting, gpu *GPU) []dvfsmodel.Setting {
	draws := float64(known.Power(standard))
	var settings []dvfsmodel.Setting
	step := max(1, (len(gpu.Allowed)+triedClocks-1)/triedClocks)
	for i := 0; i < len(gpu.Allowed); i += step {
		at := gpu.Allowed[len(gpu.Allowed)-1-i] // the default clocks are among the highest
		at.Cap = standard.Cap
		settings = append(settings, at)
		free := known.Power(at)
		for _, part := range triedParts {
			at.Cap = dvfsmodel.Watt(math.Round(part*draws/triedStep) * triedStep)
			if gpu.Limit.Takes(at.Cap) && known.Power(at) < free*(1-leastHeld) {
				settings = append(settings, at)
			}
		}
	}
	return settings
}
