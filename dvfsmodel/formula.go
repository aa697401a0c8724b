package dvfsmodel

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Params are the coefficients of the paper's model for one workload on one
// GPU model: EDL eq. (1) and (2). All are finite and not negative, and
// Delta is at most 1; [Params.Validate] says which one is not.
//
// This file is the one place that knows the formula: what else needs it, asks for
// the parts of time and power by what they depend on, or goes through [ParamList].
type Params struct {
	P0    Watt    // power that no clock changes
	Gamma Watt    // γ: power per normalised memory clock
	C     Watt    // c: power per V²·fc
	D     float64 // seconds that scale with the clocks, at default clocks
	Delta float64 // δ: share of D that follows the core clock, 0..1
	T0    float64 // seconds that no clock changes
}

var _ Model = Params{}

// NumParams is how many coefficients [Params] has.
const NumParams = 6

// Param describes a coefficient of [Params].
type Param struct {
	Name   string  // in batches and models files, with its unit: p0_w
	Symbol string  // in tables in the paper's notation: P0
	Unit   string  // "W", "s", or "" of a ratio
	Doc    string  // a sentence
	Max    float64 // the largest value; the least is 0
	// Optional tells that it is 0 where a file leaves it out.
	Optional bool
	linear   string // the coefficient of a fit that it is, "" of D and δ, which follow from two
}

// Units of [Param].
const (
	unitWatts   = "W"
	unitSeconds = "s"
)

// params describes the coefficients, in the order of [Params.Value].
var params = [NumParams]Param{
	{"p0_w", "P0", unitWatts, "Watts that no clock changes.", math.MaxFloat64, false, powerPrefix + "p0_w"},
	{
		"gamma_w", "gamma", unitWatts, "Watts by the memory clock, relative to its base.", math.MaxFloat64,
		false, powerPrefix + "gamma_w",
	},
	{
		"c_w", "c", unitWatts, "Watts by V² and the core clock, both relative.", math.MaxFloat64, false,
		powerPrefix + "c_w",
	},
	{"d_s", "D", unitSeconds, "Seconds that clocks change, at base clocks.", math.MaxFloat64, false, ""},
	{
		"delta", "delta", "",
		"Part of them that the core clock changes, 0 to 1; the memory clock changes the rest.", 1, false, "",
	},
	{
		"t0_s", "t0", unitSeconds, "Seconds that no clock changes.", math.MaxFloat64, false,
		timePrefix + "t0_s",
	},
}

// most are the largest values of the coefficients.
var most = func() (list [NumParams]float64) {
	for i := range params {
		list[i] = params[i].Max
	}
	return list
}()

// The places of the coefficients that do not follow from one of a fit's.
const (
	IndexOfD     = 3
	indexOfDelta = 4
)

// values returns the places of the coefficients, in the order of [ParamList].
func (p *Params) values() [NumParams]*float64 {
	return [NumParams]*float64{
		(*float64)(&p.P0), (*float64)(&p.Gamma), (*float64)(&p.C), &p.D, &p.Delta, &p.T0,
	}
}

// ParamList describes the coefficients, in the order in which files have them.
func ParamList() []Param { return slices.Clone(params[:]) }

// IsOptional reports whether files may leave out the coefficient of a name: 0 then.
func IsOptional(name string) bool {
	for i := range params {
		if params[i].Name == name {
			return params[i].Optional
		}
	}
	return false
}

// Value returns where the i-th coefficient of [ParamList] lives.
func (p *Params) Value(i int) *float64 { return p.values()[i] }

// Time is EDL eq. (2): seconds at normalised clocks.
func (p Params) Time(fc, fm float64) float64 { return p.timeAtStretch(p.stretch(fc, fm)) }

// stretch returns how many times as long as at default clocks that takes which clocks change.
func (p *Params) stretch(fc, fm float64) float64 { return p.Delta/fc + (1-p.Delta)/fm }

// timeAtStretch returns the run time, seconds, at a stretch.
func (p *Params) timeAtStretch(stretch float64) float64 { return p.T0 + p.D*stretch }

// Power is EDL eq. (1).
func (p Params) Power(s Scaling) Watt {
	return p.P0 + p.Gamma*Watt(s.Fm) + p.C*Watt(s.V)*Watt(s.V)*Watt(s.Fc)
}

// DefaultTime returns the run time at default clocks, seconds.
func (p Params) DefaultTime() float64 { return p.D + p.T0 }

// seconds returns the run time by what it depends on: still + core/fc + mem/fm.
func (p *Params) seconds() (still, core, mem float64) {
	return p.T0, p.D * p.Delta, p.D * (1 - p.Delta)
}

// watts returns the power by what it depends on: still + mem·fm + core.unit·w, with w
// that of [corePower].
func (p *Params) watts() (still, mem float64, core corePower) {
	return float64(p.P0), float64(p.Gamma), corePower{unit: float64(p.C)}
}

// staticPower returns the power that no clock changes.
func (p *Params) staticPower() Watt {
	w, _, _ := p.watts()
	return Watt(w)
}

// corePower is the power that follows the core clock, in units of so many watts: w =
// V²·fc. Where the voltage is constant, w is linear in the clock; on the V(f) curve it
// rises ever faster.
type corePower struct{ unit float64 }

// at is w at a voltage.
func (corePower) at(fc, v float64) float64 { return v * v * fc }

// slope is dw/dfc where the voltage rises by dv per unit of fc.
func (corePower) slope(fc, v, dv float64) float64 { return v * (v + 2*dv*fc) }

// bend is d²w/dfc² where the voltage's slope dv rises by ddv per unit of fc.
func (corePower) bend(fc, v, dv, ddv float64) float64 {
	return 2 * (v*(2*dv+ddv*fc) + dv*dv*fc)
}

// energyLine is the energy along one memory clock of a table.
type energyLine struct {
	power float64 // watts that the core clock doesn't change
	c     float64 // watts by V²·fc
	time  float64 // seconds that the core clock doesn't change
	core  float64 // seconds that scale with it
}

// line returns the energy at a memory clock, with so many watts added to the power.
func (p *Params) line(fm, price float64) energyLine {
	stillTime, core, mem := p.seconds()
	still, memWatts, _ := p.watts()
	return energyLine{
		power: still + price + memWatts*fm, c: float64(p.C), time: stillTime + mem/fm, core: core,
	}
}

// cost returns the energy at a step, joules.
func (l *energyLine) cost(s *coreStep) float64 {
	return (l.power + l.c*s.w) * (l.time + l.core*s.inv)
}

// The formula as fits have it: linear in the coefficients that [shape.terms] names.
var (
	paperTime = &shape{
		name: namePaper, positive: true, single: []int{0, 1},
		terms: []string{"t0_s", "core_s", "mem_s"},
		row: func(dst *[maxTerms]float64, fc, fm, _ float64) {
			*dst = [maxTerms]float64{1, 1 / fc, 1 / fm}
		},
	}
	paperPower = &shape{
		name: namePaper, positive: true, single: []int{0, 2},
		terms: []string{"p0_w", "gamma_w", "c_w"},
		row: func(dst *[maxTerms]float64, fc, fm, _ float64) {
			v := float64(VoltageFor(fc))
			*dst = [maxTerms]float64{1, fm, v * v * fc}
		},
	}
)

// paramsFromLinear returns the coefficients of a fit, in the order of the shapes' terms. Where it
// left out what follows the memory clock, δ is 1.
func paramsFromLinear(time, power *[maxTerms]float64) Params {
	p := Params{
		P0: Watt(power[0]), Gamma: Watt(power[1]), C: Watt(power[2]), T0: time[0],
		D: time[1] + time[2], Delta: 1,
	}
	if p.D > 0 {
		p.Delta = time[1] / p.D
	}
	return p
}

// linearCoefficients returns the inverse of paramsFromLinear.
func (p *Params) linearCoefficients() (time, power [maxTerms]float64) {
	still, core, mem := p.seconds()
	time = [maxTerms]float64{still, core, mem}
	power = [maxTerms]float64{float64(p.P0), float64(p.Gamma), float64(p.C)}
	return time, power
}

// gradients returns the derivatives of the coefficients by those of a fit: D is core + mem,
// and δ is core/D; all others are the fit's own.
func (p *Params) gradients(fitted []Coefficient) (rows [NumParams][]float64) {
	oneMem := true
	for i := range fitted {
		oneMem = oneMem && fitted[i].Name != timePrefix+"mem_s"
	}
	for i := range rows {
		rows[i] = make([]float64, len(fitted))
		for k := range fitted {
			if fitted[k].Name == params[i].linear {
				rows[i][k] = 1
			}
		}
	}
	for k := range fitted {
		switch fitted[k].Name {
		case timePrefix + "core_s":
			rows[IndexOfD][k] = 1
			if !oneMem && p.D > 0 {
				rows[indexOfDelta][k] = (1 - p.Delta) / p.D
			}
		case timePrefix + "mem_s":
			rows[IndexOfD][k] = 1
			if p.D > 0 {
				rows[indexOfDelta][k] = -p.Delta / p.D
			}
		}
	}
	return rows
}

// Scale returns the same workload repeated k times: the times grow k-fold, the
// powers stay, and so does the free optimum's setting.
func (p Params) Scale(k float64) Params { return p.scaled(k, 1) }

func (p Params) scaled(time, power float64) Params {
	for i, v := range p.values() {
		switch params[i].Unit {
		case unitSeconds:
			*v *= time
		case unitWatts:
			*v *= power
		}
	}
	return p
}

// repeatForSecond repeats the same work as often as it takes a second of D.
func (p *Params) repeatForSecond() { p.T0, p.D = roundRatio(p.T0/p.D), 1 }

// Validate reports the first coefficient outside the model's domain.
func (p Params) Validate() error {
	for i, v := range p.values() {
		if *v >= 0 && *v <= most[i] { // as good as always: it is asked for every task of a problem
			continue
		}
		switch {
		case math.IsNaN(*v) || math.IsInf(*v, 0):
			return fmt.Errorf("%s is %v, want a finite number", params[i].Symbol, *v)
		case *v < 0:
			return fmt.Errorf("%s is %v, want 0 or more", params[i].Symbol, *v)
		default:
			return fmt.Errorf("%s is %v, want 0 to %v", params[i].Symbol, *v, most[i])
		}
	}
	if p.DefaultTime() <= 0 {
		return errors.New("coefficients D and t0 are both 0, want a positive run time")
	}
	return nil
}

// At evaluates the model at a setting: time, power, and energy by EDL eq. (3).
func (p Params) At(s Scaling) Point { return pointAt(p, s, p.Time(s.Fc, s.Fm)) }

// pointAt is [Params.At] where the run time is known.
func pointAt(p Params, s Scaling, time float64) Point {
	power := p.Power(s)
	return Point{Scaling: s, Time: time, Power: power, Energy: power.Over(time)}
}

// roundRatio drops the bits of a ratio that rounding may have touched.
func roundRatio(x float64) float64 {
	const drop = 6 // of 52: a relative difference below 2e-14
	return math.Float64frombits(math.Float64bits(x) >> drop << drop)
}

// coreStep is one core clock with what the energy needs of it.
type coreStep struct {
	w   float64 // V²·fc
	inv float64 // 1/fc
	mhz MHz
	fc  float64
	v   Volt
}
