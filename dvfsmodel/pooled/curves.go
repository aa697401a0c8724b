package pooled

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// terms are the coefficients of one quantity: 1, x, x², u, u², x·u with the
// logarithms x and u of the normalised core and memory clocks.
const terms = 6

// allTerms is the number of coefficients of both quantities, those of time first.
const allTerms = 2 * terms

// names are those of the log-quadratic form of dvfsmodel.
var names = [allTerms]string{
	"time.log_t", "time.log_fc", "time.log_fc2", "time.log_fm", "time.log_fm2", "time.log_fc_fm",
	"power.log_p", "power.log_fc", "power.log_fc2", "power.log_fm", "power.log_fm2", "power.log_fc_fm",
}

// Curves is what workloads have in common on a GPU model, or on several: the mean
// and the covariance of the coefficients of ln time and ln power, each a
// quadratic in the logarithms of the clocks over the default ones. Coefficients
// are in the order of the log-quadratic form: 1, x, x², u, u², x·u, time first.
// What runs take at default clocks is open: its variance is wide.
type Curves struct {
	Mean       []float64 `json:"mean"`
	Covariance []float64 `json:"covariance"` // row by row
	// TimeResidual and PowerResidual are the standard deviations of ln time and
	// ln power around a workload's own quadratics.
	TimeResidual  float64 `json:"time_residual"`
	PowerResidual float64 `json:"power_residual"`
	Workloads     int     `json:"workloads"` // learnt from so many
}

const (
	diffuseTimeVariance  = 1e4  // variance of ln time at default clocks
	diffusePowerVariance = 1e4  // and of ln power
	vagueVariance        = 0.5  // variance of other coefficients before anything is known
	emRounds             = 5    // of expectation and maximisation
	minSpread            = 1e-6 // variance of residuals, at least
)

// settingMean is one setting of a workload.
type settingMean struct {
	at          dvfsmodel.Setting
	row         [terms]float64
	time, power float64 // logarithms
	runs        float64
}

// averageBySetting averages samples at the same setting. base is (1, 1).
func averageBySetting(samples []dvfsmodel.Sample, base dvfsmodel.Setting) []settingMean {
	list := make([]settingMean, 0, 8)
	for _, s := range samples {
		pair := dvfsmodel.Setting{Core: s.Core, Mem: s.Mem}
		i := indexOf(list, pair)
		if i < 0 {
			i = len(list)
			list = append(list, settingMean{at: pair, row: quadraticTerms(pair, base)})
		}
		m := &list[i]
		m.runs++
		m.time += (math.Log(s.Time) - m.time) / m.runs
		m.power += (math.Log(float64(s.Power)) - m.power) / m.runs
	}
	return list
}

func indexOf(list []settingMean, at dvfsmodel.Setting) int {
	return slices.IndexFunc(list, func(m settingMean) bool { return m.at == at })
}

// quadraticTerms returns the terms of a quadratic at clocks.
func quadraticTerms(at dvfsmodel.Setting, base dvfsmodel.Setting) [terms]float64 {
	x, u := math.Log(float64(at.Core/base.Core)), math.Log(float64(at.Mem/base.Mem))
	return [terms]float64{1, x, x * x, u, u * u, x * u}
}

// coefficientWeights returns the weights of all coefficients for ln time and ln power.
func coefficientWeights(row *[terms]float64) (time, power [allTerms]float64) {
	copy(time[:terms], row[:])
	copy(power[terms:], row[:])
	return time, power
}

// diffusePrior returns the distribution of coefficients of a workload of which nothing is
// known: what it takes at default clocks is made vague.
func (c *Curves) diffusePrior() gaussian {
	g := newGaussian(allTerms)
	copy(g.mean, c.Mean)
	copy(g.cov, c.Covariance)
	for _, level := range [...]int{0, terms} {
		for i := range allTerms {
			g.cov[i*allTerms+level], g.cov[level*allTerms+i] = 0, 0
		}
	}
	g.row(0)[0], g.row(terms)[terms] = diffuseTimeVariance, diffusePowerVariance
	return g
}

// condition returns the distribution of a workload's coefficients after measures
// whose single runs vary with these variances of ln time and ln power.
func (c *Curves) condition(list []settingMean, noise [2]float64) gaussian {
	g := c.diffusePrior()
	for i := range list {
		m := &list[i]
		time, power := coefficientWeights(&m.row)
		g.observe(time[:], m.time, sq(c.TimeResidual)+noise[0]/m.runs)
		g.observe(power[:], m.power, sq(c.PowerResidual)+noise[1]/m.runs)
	}
	return g
}

// diffuseCurves returns what is known before anything is.
func diffuseCurves() *Curves {
	c := &Curves{Mean: make([]float64, allTerms), Covariance: make([]float64, allTerms*allTerms)}
	for i := range allTerms {
		c.Covariance[i*allTerms+i] = vagueVariance
	}
	c.TimeResidual, c.PowerResidual = 0.03, 0.03
	return c
}

// LearnCurves learns what workloads on one GPU model have in common. before is
// what was known without them, and counts as so many workloads more; nil and 0
// leave everything to the data. Single runs vary with the given relative
// standard deviations of time and power (0: samples are means of many).
// Workloads with a single setting say nothing, and don't count.
func LearnCurves(
	workloads [][]dvfsmodel.Sample, base dvfsmodel.Setting, before *Curves, weight float64, noise Noise,
) *Curves {
	return LearnWeightedCurves(workloads, nil, base, before, weight, noise)
}

// LearnWeightedCurves is [LearnCurves] where workloads count for more or less than one; nil: each for one.
func LearnWeightedCurves(
	workloads [][]dvfsmodel.Sample, weights []float64, base dvfsmodel.Setting, before *Curves, weight float64,
	noise Noise,
) *Curves {
	all, counts := make([][]settingMean, 0, len(workloads)), make([]float64, 0, len(workloads))
	for i, samples := range workloads {
		if list := averageBySetting(samples, base); len(list) > 1 {
			all, counts = append(all, list), append(counts, 1)
			if weights != nil {
				counts[len(counts)-1] = weights[i]
			}
		}
	}
	return learnCurves(all, counts, before, weight, noise)
}

// Noise is how much runs at one setting differ: the standard deviations of
// ln time and ln power.
type Noise struct{ Time, Power float64 }

// variances returns those of ln time and ln power.
func (n Noise) variances() [2]float64 { return [2]float64{n.Time * n.Time, n.Power * n.Power} }

// learnCurves is [LearnWeightedCurves] for settings that were averaged; nil: each workload counts for one.
func learnCurves(all [][]settingMean, counts []float64, before *Curves, weight float64, noise Noise) *Curves {
	start := before
	if start == nil {
		start, weight = diffuseCurves(), 0
	}
	now := &Curves{
		Mean: start.Mean, Covariance: start.Covariance,
		TimeResidual: start.TimeResidual, PowerResidual: start.PowerResidual, Workloads: len(all),
	}
	if len(all) == 0 {
		return now
	}
	if counts == nil {
		counts = slices.Repeat([]float64{1}, len(all))
	}
	for range emRounds {
		now = now.emRound(all, counts, start, weight, noise.variances())
	}
	return now
}

func (c *Curves) emRound(
	all [][]settingMean, counts []float64, before *Curves, weight float64, noise [2]float64,
) *Curves {
	next := &Curves{
		Mean: make([]float64, allTerms), Covariance: make([]float64, allTerms*allTerms), Workloads: len(all),
	}
	posts := make([]gaussian, len(all))
	total := weight
	for _, n := range counts {
		total += n
	}
	for i, x := range before.Mean {
		next.Mean[i] = weight * x
	}
	for j, list := range all {
		posts[j] = c.condition(list, noise)
		for i, x := range posts[j].mean {
			next.Mean[i] += counts[j] * x
		}
	}
	for i := range next.Mean {
		next.Mean[i] /= total
	}
	addCovariance(next.Covariance, before.Covariance, before.Mean, next.Mean, weight/total)
	for j := range posts {
		addCovariance(next.Covariance, posts[j].cov, posts[j].mean, next.Mean, counts[j]/total)
	}
	next.residuals(all, counts, posts, before, weight, noise)
	return next
}

// addCovariance adds a covariance around another mean, with a weight.
func addCovariance(sum, cov, mean, around []float64, weight float64) {
	if weight == 0 {
		return
	}
	for i := range allTerms {
		for j := range allTerms {
			sum[i*allTerms+j] += weight * (cov[i*allTerms+j] + (mean[i]-around[i])*(mean[j]-around[j]))
		}
	}
}

// residuals are the mean squares around the workloads' own curves, less what the
// runs' noise explains.
func (c *Curves) residuals(
	all [][]settingMean, counts []float64, posts []gaussian, before *Curves, weight float64, noise [2]float64,
) {
	const each = 4 // settings that a workload known before counts for
	count := each * weight
	time, power := count*sq(before.TimeResidual), count*sq(before.PowerResidual)
	for j, list := range all {
		for i := range list {
			m := &list[i]
			wt, wp := coefficientWeights(&m.row)
			time += counts[j] * max(0, posts[j].expectedSquare(wt[:], m.time)-noise[0]/m.runs)
			power += counts[j] * max(0, posts[j].expectedSquare(wp[:], m.power)-noise[1]/m.runs)
			count += counts[j]
		}
	}
	c.TimeResidual, c.PowerResidual = math.Sqrt(max(minSpread, time/count)),
		math.Sqrt(max(minSpread, power/count))
}

// expectedSquare returns the expected square of the difference between a value and the sum of
// the variables, each times its weight.
func (g *gaussian) expectedSquare(weights []float64, value float64) float64 {
	for i, w := range weights {
		value -= w * g.mean[i]
	}
	return value*value + g.variance(weights)
}

// variance is that of the sum of the variables, each times its weight.
func (g *gaussian) variance(weights []float64) float64 {
	sum := 0.0
	for i, w := range weights {
		if w == 0 {
			continue
		}
		for j, c := range g.row(i) {
			sum += w * weights[j] * c
		}
	}
	return sum
}

func sq(x float64) float64 { return x * x }
