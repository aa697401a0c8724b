package pooled

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// Belief is what is known of one workload: a [Prior], or [Curves], and the
// settings of the workload that were measured.
type Belief struct {
	settings []dvfsmodel.Setting
	joint    gaussian // of ln time at each setting, then ln power

	// The same distribution as a mixture, one part for each known workload with a
	// mean of its own. Without a Prior there is none, and all four are nil.
	around    *gaussian   // covariance of each part
	centres   [][]float64 // by part: its mean now
	known     [][]float64 // by part: what its workload took, as in Prior
	plausible []float64   // by part: logarithm of its weight

	surprise float64 // sum of squared surprises in standard deviations
	observed float64 // numbers that were observed, two for each setting
}

// NewBelief returns what is known of a workload before it was measured.
func (p *Prior) NewBelief() *Belief {
	b := &Belief{settings: p.settings, known: p.known, joint: p.joint.clone()}
	around := p.joint.clone()
	keep := 1 - resemblance*resemblance
	for i := range around.cov {
		around.cov[i] *= keep
	}
	n := len(p.settings)
	for _, g := range [...]*gaussian{&b.joint, &around} {
		for i := range n {
			for k := range n {
				g.row(i)[k] += diffuseTimeVariance
				g.row(n + i)[n+k] += powerLevel
			}
		}
	}
	b.around = &around
	b.plausible = make([]float64, len(p.known))
	b.centres = make([][]float64, len(p.known))
	for j, y := range p.known {
		centre := make([]float64, len(y))
		for i := range y {
			centre[i] = p.joint.mean[i] + resemblance*(y[i]-p.joint.mean[i])
		}
		b.centres[j] = centre
	}
	return b
}

// Settings returns the clocks that it is about.
func (b *Belief) Settings() []dvfsmodel.Setting { return slices.Clone(b.settings) }

// Observe takes account of a measured setting, the i-th, with the noise of the
// measurement.
func (b *Belief) Observe(i int, seconds float64, power dvfsmodel.Watt, noise Noise) error {
	if i < 0 || i >= len(b.settings) {
		return fmt.Errorf("setting %d of %d", i, len(b.settings))
	}
	if !(seconds > 0) || !(power > 0) || math.IsInf(seconds, 0) || math.IsInf(float64(power), 0) {
		return fmt.Errorf("%g s at %g W, want positive finite numbers", seconds, float64(power))
	}
	v := noise.variances()
	b.observeVariable(i, math.Log(seconds), v[0])
	b.observeVariable(len(b.settings)+i, math.Log(float64(power)), v[1])
	return nil
}

// minNoise is the variance that a measured logarithm has at least: no measurement is
// nearer than a thousandth.
const minNoise = 1e-6

// observeVariable takes account of the i-th variable of joint, with the variance of its
// noise.
func (b *Belief) observeVariable(i int, value, noise float64) {
	noise = max(noise, minNoise)
	first := b.observed < 2 // time and power of the first setting have nothing to be compared with
	if b.around != nil {
		with := slices.Clone(b.around.row(i))
		variance := with[i] + noise
		for j, centre := range b.centres {
			miss := value - centre[i]
			if !first || i >= len(b.settings) {
				b.plausible[j] -= miss * miss / variance / 2
			}
			for k, c := range with {
				centre[k] += c / variance * miss
			}
		}
		b.around.observeAt(i, b.around.mean[i], noise)
	}
	if surprise := b.joint.observeAt(i, value, noise); !first {
		b.surprise += surprise
	}
	b.observed++
}

// Prediction is what a run takes at a setting: medians, and the standard
// deviations of their logarithms.
type Prediction struct {
	dvfsmodel.Setting
	Time            float64        // seconds
	Power           dvfsmodel.Watt // mean of one GPU
	TimeSD, PowerSD float64
	EnergySD        float64
}

// At predicts the i-th setting. Before anything was observed the time has no
// meaning but by comparison.
func (b *Belief) At(i int) Prediction {
	n := len(b.settings)
	scale := b.varianceScale()
	vt, vp := b.joint.row(i)[i], b.joint.row(n + i)[n+i]
	sd := func(v float64) float64 { return math.Sqrt(max(0, v*scale)) }
	return Prediction{
		Setting: b.settings[i], Time: math.Exp(b.joint.mean[i]),
		Power:  dvfsmodel.Watt(math.Exp(b.joint.mean[n+i])),
		TimeSD: sd(vt), PowerSD: sd(vp), EnergySD: sd(vt + vp + 2*b.joint.row(i)[n+i]),
	}
}

// varianceScale is by how much the variances are off, judged by the surprises so far.
func (b *Belief) varianceScale() float64 {
	return (freedom + b.surprise) / (freedom + max(0, b.observed-2))
}

// Best returns the setting with the least expected energy over the least possible
// one, of those that are allowed (nil: all); -1 without any. One measured setting
// has nothing to be compared with: until there are two it is the setting that is
// best for the known workloads.
func (b *Belief) Best(allowed func(i int) bool) int {
	n := len(b.settings)
	cost := make([]float64, n)
	if b.around == nil {
		for i := range n {
			cost[i] = energyOf(b.joint.mean, i, n) + energyVariance(&b.joint, i, n)/2
		}
		return leastCost(cost, allowed)
	}
	if b.observed <= 2 { // no two settings to compare
		for _, y := range b.known {
			addRegrets(cost, 1, func(i int) float64 { return energyOf(y, i, n) })
		}
		return leastCost(cost, allowed)
	}
	top := slices.Max(b.plausible)
	for j, centre := range b.centres {
		addRegrets(cost, math.Exp(b.plausible[j]-top), func(i int) float64 {
			return energyOf(centre, i, n) + energyVariance(b.around, i, n)/2
		})
	}
	return leastCost(cost, allowed)
}

// addRegrets adds a workload's energies over its least one, times a weight.
func addRegrets(cost []float64, weight float64, energy func(i int) float64) {
	lowest := math.Inf(1)
	for i := range cost {
		lowest = min(lowest, energy(i))
	}
	for i := range cost {
		cost[i] += weight * math.Exp(min(energy(i)-lowest, maxLogRegret))
	}
}

// maxLogRegret is the logarithm of an energy over the least one beyond which it makes
// no difference.
const maxLogRegret = 5

// leastCost returns the allowed setting of the lowest cost (nil: all are allowed); -1 without
// any.
func leastCost(cost []float64, allowed func(i int) bool) int {
	best := -1
	for i, c := range cost {
		if (allowed == nil || allowed(i)) && (best < 0 || c < cost[best]) {
			best = i
		}
	}
	return best
}

func energyOf(mean []float64, i, n int) float64 { return mean[i] + mean[n+i] }

func energyVariance(g *gaussian, i, n int) float64 {
	return g.row(i)[i] + g.row(n + i)[n+i] + 2*g.row(i)[n+i]
}
