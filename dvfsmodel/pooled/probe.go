package pooled

import "math"

// nodes and weights of Gauss-Hermite quadrature over the standard normal
// distribution, exact for polynomials up to the 13th degree.
var (
	nodes = [...]float64{
		-3.750439717725742, -2.366759410734541, -1.154405394739968, 0,
		1.154405394739968, 2.366759410734541, 3.750439717725742,
	}
	nodeWeights = [...]float64{
		0.000548268855972, 0.030757123967586, 0.240123178605013, 0.457142857142857,
		0.240123178605013, 0.030757123967586, 0.000548268855972,
	}
)

// Gains are by what part the least expected energy falls when a setting is
// measured, expected over what the measurement may say, for each setting. What it
// says is off by the noise. Before the first measurement only their order means
// something.
func (b *Belief) Gains(noise Noise) []float64 {
	n := len(b.settings)
	mean, half := make([]float64, n), make([]float64, n)
	scale := b.varianceScale()
	now := math.Inf(1)
	for i := range n {
		mean[i], half[i] = energyOf(b.joint.mean, i, n), scale*energyVariance(&b.joint, i, n)/2
		now = min(now, mean[i]+half[i])
	}
	gains := make([]float64, n)
	v := noise.variances()
	for i := range gains {
		gains[i] = now - b.energyAfter(i, mean, half, v)
	}
	return gains
}

// NextProbe returns the setting to measure next, of those that are allowed (nil: all): the
// one with the largest of [Belief.Gains]; -1 without any.
func (b *Belief) NextProbe(allowed func(i int) bool, noise Noise) int {
	best := -1
	gains := b.Gains(noise)
	for i, gain := range gains {
		if (allowed == nil || allowed(i)) && (best < 0 || gain > gains[best]) {
			best = i
		}
	}
	return best
}

// energyAfter returns the logarithm of the least expected energy after measuring a setting.
// Time and power there are two correlated normal variables, which are written as
// two independent ones.
func (b *Belief) energyAfter(at int, mean, half []float64, noise [2]float64) float64 {
	n := len(mean)
	g, scale := &b.joint, b.varianceScale()
	time, power := g.row(at), g.row(n+at)
	first := math.Sqrt(time[at] + max(noise[0], minNoise))
	both := time[n+at] / first
	second := math.Sqrt(max(power[n+at]+max(noise[1], minNoise)-both*both, tiny))
	byFirst, bySecond, rest := make([]float64, n), make([]float64, n), make([]float64, n)
	deviation := math.Sqrt(scale)
	for i := range n {
		byFirst[i] = deviation * (time[i] + time[n+i]) / first
		bySecond[i] = (deviation*(power[i]+power[n+i]) - both*byFirst[i]) / second
		rest[i] = half[i] - (sq(byFirst[i])+sq(bySecond[i]))/2
	}
	// The level that all settings share cancels: energies are looked at relative
	// to the one measured, whose mean doesn't change by expectation.
	sum := 0.0
	for a, x := range nodes {
		for c, y := range nodes {
			lowest := math.Inf(1)
			for i := range n {
				lowest = min(lowest, mean[i]+(byFirst[i]-byFirst[at])*x+(bySecond[i]-bySecond[at])*y+rest[i])
			}
			sum += nodeWeights[a] * nodeWeights[c] * lowest
		}
	}
	return sum
}
