// Package capped is the model of what one workload takes on a GPU under a power cap: the free power of
// a core clock, what of it a cap lets pass, the clock that runs then, and the time that goes with
// it. Clocks are over the highest ones of a table and powers over its highest cap, so that the
// package knows neither units nor GPUs. See the formulas in dvfsmodel/joint.
//
// The package is pure: no clocks, no files, no random numbers.
package capped

import (
	"fmt"
	"math"
)

// The places of [Params], most of which are logarithms.
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

// Params are what a workload on a GPU model has of its own.
type Params [parameters]float64

// Conditions are what a run of a capped table was under: clocks over the highest ones, and the cap in
// units of the table's highest power.
type Conditions struct{ Core, Mem, Limit float64 }

// Outcome is ln time and ln power, in units of the table's highest.
type Outcome struct{ Time, Power float64 }

// How round the knees of voltage and of time are, and how a clock is found.
const (
	voltRound   = 0.03
	timeEdge    = 10
	lowestClock = 0.02
	newtonSteps = 30
	closeEnough = 1e-10
	farOver     = 30 // from there on ln(1+exp(x)) is x
)

// Board is parameters without logarithms.
type Board struct {
	params                                               *Params
	static, dynamic, slope, voltKnee, limits, edge, time float64
	share                                                float64
}

// Board prepares the parameters for predictions.
func (th *Params) Board() *Board {
	return &Board{
		params: th, static: math.Exp(th[staticW]), dynamic: math.Exp(th[dynamicW]),
		slope: math.Exp(th[voltSlope]), voltKnee: math.Exp(th[voltKnee]), limits: math.Exp(th[capRatio]),
		edge: math.Exp(th[capEdge]), time: math.Exp(-timeEdge * th[timeKnee]),
		share: 1 / (1 + math.Exp(-th[coreShare])),
	}
}

// corePower returns what the core adds at a clock, if no cap holds it back: A·g·V², the voltage V being
// 1 up to a knee and rising from there on.
func (b *Board) corePower(g float64) float64 {
	over := (g - b.voltKnee) / voltRound
	if over < farOver {
		over = math.Log1p(math.Exp(over))
	}
	volts := 1 + b.slope*voltRound*over
	return b.dynamic * g * volts * volts
}

// Predict returns what a run takes. A cap C bounds the free power P smoothly, P/(1+(P/C)^q)^(1/q), and
// lowers the clock to the one whose free power that is: time is what goes with the clock that runs,
// not with the one that was asked for.
func (b *Board) Predict(c Conditions) Outcome {
	static := b.static
	rest := 1 - b.share
	if c.Mem != 1 {
		static *= math.Pow(c.Mem, b.params[memoryPower])
		rest *= math.Pow(c.Mem, -b.params[memoryTime])
	}
	power, g := static+b.corePower(c.Core), c.Core
	if c.Limit > 0 {
		x := b.edge * math.Log(power/(c.Limit*b.limits))
		power *= math.Exp(-(max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))) / b.edge)
		g = b.clockAt(power, static, c.Core)
	}
	slow := math.Pow(math.Pow(g, -timeEdge)+b.time, 1./timeEdge)
	return Outcome{b.params[logTime] + math.Log(rest+b.share*slow), math.Log(power)}
}

// clockAt returns the clock, at most the one asked for, whose free power this is: by Newton's method
// from above, which a power that curves upwards never oversteps.
func (b *Board) clockAt(power, static, asked float64) float64 {
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

// powerSlope returns the derivative of corePower.
func (b *Board) powerSlope(g float64) float64 {
	over := (g - b.voltKnee) / voltRound
	rising := 1 / (1 + math.Exp(-over))
	if over < farOver {
		over = math.Log1p(math.Exp(over))
	}
	volts := 1 + b.slope*voltRound*over
	return b.dynamic * volts * (volts + 2*g*b.slope*rising)
}

// Natural are parameters as files have them, in the order of [Parameters].
type Natural [parameters]float64

// Parameter is one of [Params] as files have it.
type Parameter struct {
	Name  string
	Watts bool // in units of the table's highest cap
	// Least and Most are the bounds of what it can be; Least itself only where it is Inclusive.
	Least, Most float64
	Inclusive   bool
	raw         func(float64) float64 // as the parameters have it
	natural     func(float64) float64
}

// Parameters describes the parameters, in their order.
func Parameters() [parameters]Parameter {
	same := func(x float64) float64 { return x }
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	logit := func(x float64) float64 { return math.Log(x / (1 - x)) }
	positive := func(name string) Parameter {
		return Parameter{Name: name, Most: math.MaxFloat64, raw: math.Log, natural: math.Exp}
	}
	exponent := func(name string) Parameter {
		const most = 100
		return Parameter{Name: name, Least: -most, Most: most, Inclusive: true, raw: same, natural: same}
	}
	watts := func(name string) Parameter {
		p := positive(name)
		p.Watts = true
		return p
	}
	return [parameters]Parameter{
		logTime:     positive("time.scale_s"),
		coreShare:   {Name: "time.core_share", Most: 1, Inclusive: true, raw: logit, natural: logistic},
		timeKnee:    positive("time.core_knee"),
		staticW:     watts("power.static_w"),
		dynamicW:    watts("power.dynamic_w"),
		voltSlope:   positive("power.voltage_slope"),
		voltKnee:    positive("power.voltage_knee"),
		capRatio:    positive("power.cap_ratio"),
		capEdge:     positive("power.cap_edge"),
		memoryTime:  exponent("time.memory_exponent"),
		memoryPower: exponent("power.memory_exponent"),
	}
}

// Allows reports whether the parameter can have a value.
func (p *Parameter) Allows(x float64) bool {
	return (x > p.Least || p.Inclusive && x == p.Least) && x <= p.Most
}

// Range says in words what it can be.
func (p *Parameter) Range() string {
	if p.Most == math.MaxFloat64 {
		return "a positive number"
	}
	return fmt.Sprintf("%v to %v", p.Least, p.Most)
}

// Natural returns the board's parameters as files have them, in the order of [Parameters].
func (b *Board) Natural() Natural { return b.params.Natural() }

// Natural returns the parameters as files have them, in the order of [Parameters].
func (th *Params) Natural() Natural {
	var values Natural
	for i, p := range Parameters() {
		values[i] = p.natural(th[i])
	}
	return values
}

// Params returns the inverse of [Params.Natural].
func (values *Natural) Params() *Params {
	var th Params
	for i, p := range Parameters() {
		th[i] = p.raw(values[i])
	}
	return &th
}
