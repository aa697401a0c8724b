package joint

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// The parameters of [capped], most as logarithms.
const (
	logTime     = iota // ln of the time, up to a constant
	coreShare          // logit of the part of the time that goes with the core clock
	timeKnee           // core clock above which it doesn't any more
	staticW            // power without a core clock, over the table's highest
	dynamicW           // power that the core adds at its highest clock at the least voltage, over that
	voltSlope          // by how much the voltage rises for each unit of clock
	voltKnee           // core clock from which on it does
	capRatio           // what a cap lets pass over what it says
	capEdge            // how sharply a cap bounds the power
	memoryTime         // exponent with which the rest of the time goes with the memory clock
	memoryPower        // exponent with which static power goes with it
	parameters
)

type vector [parameters]float64

// prior is what is known of an application's parameters before it is measured: independent normals.
type prior struct{ mean, spread vector }

// vaguePrior holds for any GPU: half of the time goes with the core clock up to 90 % of the highest
// one, a third of the highest power is static, the voltage rises from 75 % of the highest clock on, and
// a cap is kept within 5 %; each give or take a factor of about two.
func vaguePrior() *prior {
	var p prior
	set := func(i int, mean, spread float64) { p.mean[i], p.spread[i] = mean, spread }
	set(logTime, 0, openLevel)
	set(coreShare, 0.5, 2)
	set(timeKnee, math.Log(0.9), 0.5)
	set(staticW, math.Log(0.35), 0.7)
	set(dynamicW, math.Log(0.5), 0.7)
	set(voltSlope, math.Log(1.2), 0.8)
	set(voltKnee, math.Log(0.75), 0.15)
	set(capRatio, 0, 0.05)
	set(capEdge, math.Log(12), 0.6)
	set(memoryTime, 0.5, 0.5)
	set(memoryPower, 0.2, 0.3)
	return &p
}

// openLevel is the deviation of ln time before anything was measured: none is known.
const openLevel = 30

// conditions are what a run of a capped table was under: clocks over the highest ones, and the cap in
// units of the table's highest power.
type conditions struct{ core, mem, limit float64 }

// outcome is ln time and ln power, in units of the table's highest.
type outcome struct{ time, power float64 }

// observed is one run.
type observed struct {
	conditions
	outcome
}

// How round the knees of voltage and of time are, and how a clock is found.
const (
	voltRound   = 0.03
	timeEdge    = 10
	lowestClock = 0.02
	newtonSteps = 30
	closeEnough = 1e-10
	farOver     = 30 // from there on ln(1+exp(x)) is x
)

// board is parameters without logarithms.
type board struct {
	*vector
	static, dynamic, slope, voltKnee, limits, edge, time float64
	share                                                float64
}

func (th *vector) board() *board {
	return &board{
		vector: th, static: math.Exp(th[staticW]), dynamic: math.Exp(th[dynamicW]),
		slope: math.Exp(th[voltSlope]), voltKnee: math.Exp(th[voltKnee]), limits: math.Exp(th[capRatio]),
		edge: math.Exp(th[capEdge]), time: math.Exp(-timeEdge * th[timeKnee]),
		share: 1 / (1 + math.Exp(-th[coreShare])),
	}
}

// corePower is what the core adds at a clock, if no cap holds it back: A·g·V², the voltage V being
// 1 up to a knee and rising from there on.
func (b *board) corePower(g float64) float64 {
	over := (g - b.voltKnee) / voltRound
	if over < farOver {
		over = math.Log1p(math.Exp(over))
	}
	volts := 1 + b.slope*voltRound*over
	return b.dynamic * g * volts * volts
}

// predict is what a run takes. A cap C bounds the free power P smoothly, P/(1+(P/C)^q)^(1/q), and
// lowers the clock to the one whose free power that is: time is what goes with the clock that runs,
// not with the one that was asked for.
func (b *board) predict(c conditions) outcome {
	static := b.static
	rest := 1 - b.share
	if c.mem != 1 {
		static *= math.Pow(c.mem, b.vector[memoryPower])
		rest *= math.Pow(c.mem, -b.vector[memoryTime])
	}
	power, g := static+b.corePower(c.core), c.core
	if c.limit > 0 {
		x := b.edge * math.Log(power/(c.limit*b.limits))
		power *= math.Exp(-(max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))) / b.edge)
		g = b.clockAt(power, static, c.core)
	}
	slow := math.Pow(math.Pow(g, -timeEdge)+b.time, 1./timeEdge)
	return outcome{b.vector[logTime] + math.Log(rest+b.share*slow), math.Log(power)}
}

// clockAt is the clock, at most the one asked for, whose free power this is: by Newton's method
// from above, which a power that curves upwards never oversteps.
func (b *board) clockAt(power, static, asked float64) float64 {
	if least := static + b.corePower(lowestClock); least >= power {
		return lowestClock * power / least
	}
	g := asked
	for range newtonSteps {
		over := static + b.corePower(g) - power
		if over < power*closeEnough {
			break
		}
		g = max(lowestClock, g-over/b.powerSlope(g))
	}
	return g
}

// powerSlope is the derivative of corePower.
func (b *board) powerSlope(g float64) float64 {
	over := (g - b.voltKnee) / voltRound
	rising := 1 / (1 + math.Exp(-over))
	if over < farOver {
		over = math.Log1p(math.Exp(over))
	}
	volts := 1 + b.slope*voltRound*over
	return b.dynamic * volts * (volts + 2*g*b.slope*rising)
}

// A fit's residuals are judged as Student's t with so many degrees of freedom, of one per cent: a
// run or two that the model doesn't describe don't bend it.
const (
	studentFreedom = 6
	usualError     = 0.01
	maxRounds      = 60
	maxTries       = 8
	slopeStep      = 1e-5
	enoughGain     = 1e-4
)

// fitCapped is the most plausible parameters of an application, from where the prior's mean is and
// from three other places (Levenberg and Marquardt's method).
func fitCapped(runs []observed) vector {
	f := cappedFit{runs: runs, prior: vaguePrior()}
	for _, r := range runs {
		f.prior.mean[logTime] += r.time / float64(len(runs))
	}
	start := f.prior.mean
	best, least := start, math.Inf(1)
	for _, shift := range [...]struct{ share, knee float64 }{{-1.5, 0}, {}, {1.5, 0}, {0, -0.25}} {
		at := start
		at[coreShare] += shift.share
		at[voltKnee] += shift.knee
		if found, loss := f.descend(at); loss < least {
			best, least = found, loss
		}
	}
	return best
}

type cappedFit struct {
	runs  []observed
	prior *prior
}

// misses are the residuals in their deviations: two for each run, then those of the prior.
func (f *cappedFit) misses(th *vector) []float64 {
	list := make([]float64, 0, 2*len(f.runs)+parameters)
	b := th.board()
	for _, r := range f.runs {
		o := b.predict(r.conditions)
		list = append(list, (o.time-r.time)/usualError, (o.power-r.power)/usualError)
	}
	for i, x := range th {
		list = append(list, (x-f.prior.mean[i])/f.prior.spread[i])
	}
	return list
}

// loss is −2·ln of the likelihood times the prior, up to a constant.
func (f *cappedFit) loss(misses []float64) float64 {
	sum := 0.0
	for i, x := range misses {
		if i < 2*len(f.runs) {
			sum += (studentFreedom + 1) * math.Log1p(x*x/studentFreedom)
		} else {
			sum += x * x
		}
	}
	return sum
}

// weight is what a residual counts in a step, by the slope of its loss.
func (f *cappedFit) weight(i int, miss float64) float64 {
	if i < 2*len(f.runs) {
		return (studentFreedom + 1) / (studentFreedom + miss*miss)
	}
	return 1
}

// slopes are the derivatives of the residuals by each parameter.
func (f *cappedFit) slopes(th *vector, misses []float64) []vector {
	list := make([]vector, len(misses))
	for j := range th {
		moved := *th
		moved[j] += slopeStep
		for i, x := range f.misses(&moved) {
			list[i][j] = (x - misses[i]) / slopeStep
		}
	}
	return list
}

// normal is the matrix and the right side of a step's normal equations.
func (f *cappedFit) normal(th *vector, misses []float64) (*mat.SymDense, *mat.VecDense) {
	m, right := mat.NewSymDense(parameters, nil), mat.NewVecDense(parameters, nil)
	slopes := f.slopes(th, misses)
	for i := range slopes {
		w := f.weight(i, misses[i])
		for a, x := range slopes[i] {
			if x == 0 {
				continue
			}
			right.SetVec(a, right.AtVec(a)+w*x*misses[i])
			for b, y := range slopes[i][:a+1] {
				m.SetSym(a, b, m.At(a, b)+w*x*y)
			}
		}
	}
	return m, right
}

func (f *cappedFit) descend(th vector) (vector, float64) {
	misses := f.misses(&th)
	loss := f.loss(misses)
	damping := 1e-2
	for range maxRounds {
		m, right := f.normal(&th, misses)
		gain := 0.0
		for range maxTries {
			damped := mat.NewSymDense(parameters, nil)
			damped.CopySym(m)
			for a := range parameters {
				damped.SetSym(a, a, damped.At(a, a)*(1+damping))
			}
			var factor mat.Cholesky
			var step mat.VecDense
			if !factor.Factorize(damped) || factor.SolveVecTo(&step, right) != nil {
				damping *= 10
				continue
			}
			next := th
			for a := range next {
				next[a] -= step.AtVec(a)
			}
			moved := f.misses(&next)
			if l := f.loss(moved); l < loss {
				gain = loss - l
				th, misses, loss = next, moved, l
				damping /= 5
				break
			}
			damping *= 5
		}
		if gain <= enoughGain {
			break
		}
	}
	return th, loss
}
