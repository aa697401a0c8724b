package pooled

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// Constants of [Learn], one set for all GPU models. They are from the middle of
// ranges within which the mean regrets of this package's tests stay below their
// bounds: half to twice the shrinkage, and more of the others.
const (
	// shrinkage is how many workloads the curves and the residual count for, beside
	// the sample covariance.
	shrinkage = 25
	// powerLevel is the variance of ln power that all settings of a new workload
	// have in common on top of what the known ones show: what a workload draws
	// altogether says little about what clocks are good for it.
	powerLevel = 0.03
	// resemblance is how far the distribution keeps to the known workloads: 0 is one
	// normal distribution, 1 the workloads themselves.
	resemblance = 0.4
	// freedom are the degrees of freedom with which a workload's spread around what
	// was expected of it is judged by the surprises so far.
	freedom = 6
	// residualReach is the logarithm of clocks over which residuals around the quadratics
	// are alike, and alike is the part of their variance that is.
	residualReach  = 0.3
	sharedResidual = 0.5
)

// Prior is what workloads say of the next one on the same GPU model, at the
// settings that any of them was measured at. It is immutable.
type Prior struct {
	settings []dvfsmodel.Setting
	joint    gaussian    // of ln time at each setting, then ln power at each
	known    [][]float64 // the same of each workload, time less its own level
}

// Settings returns the clocks at which it predicts, by memory clock and then core
// clock, ascending.
func (p *Prior) Settings() []dvfsmodel.Setting { return slices.Clone(p.settings) }

// Learn learns a prior from the measured settings of workloads on one GPU model.
// Settings that a workload wasn't measured at are taken from its curves. It
// returns a [dvfsmodel.SampleError] without two workloads that were measured at two
// settings.
func Learn(workloads [][]dvfsmodel.Sample) (*Prior, error) {
	return learnAt(workloads, allSettings(workloads))
}

// learnAt is [Learn] for settings that include those of the workloads, in order.
func learnAt(workloads [][]dvfsmodel.Sample, settings []dvfsmodel.Setting) (*Prior, error) {
	for _, samples := range workloads {
		if err := dvfsmodel.CheckSamples(samples); err != nil {
			return nil, err
		}
	}
	base := highestClocks(settings)
	tables := make([][]settingMean, 0, len(workloads))
	for _, samples := range workloads {
		if list := averageBySetting(samples, base); len(list) > 1 {
			tables = append(tables, list)
		}
	}
	const least = 2
	if len(tables) < least {
		return nil, &dvfsmodel.SampleError{
			Settings: len(settings),
			Reason:   "a prior takes at least two workloads that were measured at two settings",
		}
	}
	p := &Prior{settings: settings, known: completeTables(tables, settings, base)}
	p.shrinkCovariance(base)
	return p, nil
}

// allSettings returns all settings, in order.
func allSettings(workloads [][]dvfsmodel.Sample) []dvfsmodel.Setting {
	var all []dvfsmodel.Setting
	for _, samples := range workloads {
		for _, s := range samples {
			all = append(all, dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})
		}
	}
	slices.SortFunc(all, compareSettings)
	return slices.Compact(all)
}

func highestClocks(settings []dvfsmodel.Setting) dvfsmodel.Setting {
	var base dvfsmodel.Setting
	for _, s := range settings {
		base.Core, base.Mem = max(base.Core, s.Core), max(base.Mem, s.Mem)
	}
	return base
}

// completeTables is ln time and ln power of each workload at all settings, with a mean
// ln time of 0.
func completeTables(
	tables [][]settingMean, settings []dvfsmodel.Setting, base dvfsmodel.Setting,
) [][]float64 {
	n := len(settings)
	var curves *Curves
	known := make([][]float64, len(tables))
	for j, list := range tables {
		y := make([]float64, 2*n)
		if len(list) < n {
			if curves == nil {
				curves = learnCurves(tables, nil, nil, 0, Noise{})
			}
			own := curves.condition(list, [2]float64{})
			for i, at := range settings {
				row := quadraticTerms(at, base)
				y[i], y[n+i] = quadraticAt(own.mean[:terms], &row), quadraticAt(own.mean[terms:], &row)
			}
		}
		for k := range list {
			i := slices.Index(settings, list[k].at)
			y[i], y[n+i] = list[k].time, list[k].power
		}
		level := 0.0
		for _, t := range y[:n] {
			level += t / float64(n)
		}
		for i := range n {
			y[i] -= level
		}
		known[j] = y
	}
	return known
}

func quadraticAt(coefficients []float64, row *[terms]float64) float64 {
	sum := 0.0
	for i, x := range row {
		sum += x * coefficients[i]
	}
	return sum
}

func (p *Prior) shrinkCovariance(base dvfsmodel.Setting) {
	n, count := len(p.settings), float64(len(p.known))
	p.joint = newGaussian(2 * n)
	for _, y := range p.known {
		for i, v := range y {
			p.joint.mean[i] += v / count
		}
	}
	apart := p.deviations(base)
	part := shrinkage / (shrinkage + count)
	curves := learnCurves(apart, nil, nil, 0, Noise{})
	p.joint.cov = curves.covarianceAt(curves.Covariance, apart[0])
	for i := range p.joint.cov {
		p.joint.cov[i] *= part
	}
	for _, y := range p.known {
		for i := range y {
			a := (1 - part) * (y[i] - p.joint.mean[i]) / (count - 1)
			row := p.joint.row(i)
			for k := range y {
				row[k] += a * (y[k] - p.joint.mean[k])
			}
		}
	}
}

// deviations returns how each workload differs from the mean.
func (p *Prior) deviations(base dvfsmodel.Setting) [][]settingMean {
	n := len(p.settings)
	all := make([][]settingMean, len(p.known))
	for j, y := range p.known {
		all[j] = make([]settingMean, n)
		for i, at := range p.settings {
			all[j][i] = settingMean{
				at: at, row: quadraticTerms(at, base), runs: 1,
				time: y[i] - p.joint.mean[i], power: y[n+i] - p.joint.mean[n+i],
			}
		}
	}
	return all
}

// residual returns the covariance of what quadratics leave of ln time (0) or ln
// power (1) at two settings.
func (c *Curves) residual(quantity int, a, b *settingMean) float64 {
	variance := sq(c.TimeResidual)
	if quantity == 1 {
		variance = sq(c.PowerResidual)
	}
	if a.at == b.at {
		return variance
	}
	return variance * sharedResidual *
		math.Exp(-(sq(a.row[1]-b.row[1])+sq(a.row[3]-b.row[3]))/sq(residualReach)/2)
}
