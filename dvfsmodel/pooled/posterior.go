package pooled

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// Posterior is what is known of a workload after some of its runs: the
// distribution of its two curves. It is immutable.
type Posterior struct {
	curves   *Curves
	base     dvfsmodel.Setting
	noise    [2]float64
	measured []settingMean
	joint    gaussian
}

// Form is that of a [Posterior]'s curves.
func Form() dvfsmodel.Form { return dvfsmodel.Form{Time: "log-quadratic", Power: "log-quadratic"} }

// Condition returns what is known of a workload after runs that vary with the given
// noise. base is what was (1, 1) when the curves were learnt: the GPU model's
// default clocks. It returns a [dvfsmodel.SampleError] without samples, or for one
// that isn't finite and positive.
func (c *Curves) Condition(
	samples []dvfsmodel.Sample, base dvfsmodel.Setting, noise Noise,
) (*Posterior, error) {
	if len(samples) == 0 {
		return nil, &dvfsmodel.SampleError{Reason: "no samples, want at least one"}
	}
	if err := cmp.Or(dvfsmodel.CheckSamples(samples), base.CheckBase()); err != nil {
		return nil, err
	}
	if !(noise.Time >= 0) || !(noise.Power >= 0) {
		return nil, fmt.Errorf("noise of %v in time and %v in power, want 0 or more", noise.Time, noise.Power)
	}
	p := &Posterior{
		curves: c, base: base, noise: noise.variances(), measured: averageBySetting(samples, base),
	}
	p.joint = c.condition(p.measured, p.noise)
	return p, nil
}

// Fitted returns the mean of the curves as a model, with their covariance.
func (p *Posterior) Fitted() (*dvfsmodel.Fitted, error) {
	list := make([]dvfsmodel.Coefficient, allTerms)
	covariance := make([][]float64, allTerms)
	for i, name := range names {
		list[i] = dvfsmodel.Coefficient{Name: name, Value: p.joint.mean[i]}
		covariance[i] = slices.Clone(p.joint.row(i))
		covariance[i][i] = max(0, covariance[i][i]) // rounding
	}
	f, err := dvfsmodel.NewFitted(Form(), p.base, list)
	if err != nil {
		return nil, fmt.Errorf("curves after %d settings: %w", len(p.measured), err)
	}
	f.Settings, f.Covariance = len(p.measured), covariance
	return f, nil
}

// Belief returns what is known of the workload at some settings and at those that were
// measured, what its curves leave open included. extra is power that counts with
// that of the GPU, such as a host's.
func (p *Posterior) Belief(settings []dvfsmodel.Setting, extra dvfsmodel.Watt) *Belief {
	all := slices.Clone(settings)
	for i := range p.measured {
		all = append(all, p.measured[i].at)
	}
	slices.SortFunc(all, compareSettings)
	all = slices.Compact(all)
	n := len(all)
	list := make([]settingMean, n)
	for i, at := range all {
		list[i] = settingMean{at: at, row: quadraticTerms(at, p.base)}
	}
	b := &Belief{settings: all, joint: p.curves.jointAt(list)}
	for i := range p.measured {
		m := &p.measured[i]
		k := slices.Index(all, m.at)
		b.observeVariable(k, m.time, p.noise[0]/m.runs)
		b.observeVariable(n+k, math.Log(math.Exp(m.power)+float64(extra)), p.noise[1]/m.runs)
	}
	return b
}

// compareSettings returns the order of settings: by memory clock, then core clock.
func compareSettings(a, b dvfsmodel.Setting) int {
	return cmp.Or(cmp.Compare(a.Mem, b.Mem), cmp.Compare(a.Core, b.Core))
}

// jointAt returns the distribution of ln time at settings, and then of ln power, of a
// workload of which nothing is known.
func (c *Curves) jointAt(list []settingMean) gaussian {
	n := len(list)
	open := c.diffusePrior()
	g := newGaussian(2 * n)
	g.cov = c.covarianceAt(open.cov, list)
	for i := range list {
		g.mean[i], g.mean[n+i] = quadraticAt(open.mean[:terms], &list[i].row), quadraticAt(open.mean[terms:],
			&list[i].row)
	}
	return g
}

// covarianceAt returns the covariance at settings that a covariance of coefficients and
// the residual give.
func (c *Curves) covarianceAt(coefficients []float64, list []settingMean) []float64 {
	n := len(list)
	cov := make([]float64, 4*n*n)
	for a := range 2 * n {
		var with [allTerms]float64 // covariance of the curve at a with each coefficient
		for i, x := range list[a%n].row {
			for k := range allTerms {
				with[k] += x * coefficients[(a/n*terms+i)*allTerms+k]
			}
		}
		for b := range 2 * n {
			sum := quadraticAt(with[b/n*terms:][:terms], &list[b%n].row)
			if a/n == b/n {
				sum += c.residual(a/n, &list[a%n], &list[b%n])
			}
			cov[a*2*n+b] = sum
		}
	}
	return cov
}
