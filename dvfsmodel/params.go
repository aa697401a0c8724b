package dvfsmodel

import (
	"errors"
	"fmt"
	"math"
)

// Params are the coefficients of the paper's model for one workload on one
// GPU model: EDL eq. (1) and (2). All are finite and not negative, and
// Delta is at most 1; [Params.Validate] says which one is not.
type Params struct {
	P0    Watt    // power that no clock changes
	Gamma Watt    // γ: power per normalised memory clock
	C     Watt    // c: power per V²·fc
	D     float64 // seconds that scale with the clocks, at default clocks
	Delta float64 // δ: share of D that follows the core clock, 0..1
	T0    float64 // seconds that no clock changes
}

// Model predicts time and power of one workload at a normalised setting.
// [Params] is the paper's form; fitting may choose another.
type Model interface {
	// Time is the run time in seconds at the normalised clocks.
	Time(fc, fm float64) float64
	// Power is the mean power of one GPU at the normalised setting.
	Power(s Setting) Watt
}

// NoFaster is a model by which no lower clocks than those of a setting make a run faster,
// whatever curves through a few samples say.
func NoFaster(m Model, standard Setting) Model {
	return noFaster{Model: m, fc: standard.Fc, fm: standard.Fm, time: m.Time(standard.Fc, standard.Fm)}
}

type noFaster struct {
	Model
	fc, fm, time float64 // of the standard setting
}

// Time is part of [Model].
func (m noFaster) Time(fc, fm float64) float64 {
	t := m.Model.Time(fc, fm)
	if fc <= m.fc && fm <= m.fm {
		return max(t, m.time)
	}
	return t
}

// Setting is a normalised operating point: core voltage, core clock, memory
// clock, where 1 is the GPU's default.
type Setting struct {
	V  Volt
	Fc float64
	Fm float64
}

// DefaultSetting is the GPU's own default, (1, 1, 1).
func DefaultSetting() Setting { return Setting{V: 1, Fc: 1, Fm: 1} }

// Point is a setting together with what the model expects there.
type Point struct {
	Setting Setting
	Core    MHz     // 0 when the range has no clock table
	Mem     MHz     // 0 when the range has no clock table
	Time    float64 // seconds
	Power   Watt    // one GPU
	Energy  Joule   // one GPU
}

var _ Model = Params{}

// Time is EDL eq. (2): seconds at normalised clocks.
func (p Params) Time(fc, fm float64) float64 {
	return p.T0 + p.D*(p.Delta/fc+(1-p.Delta)/fm)
}

// Power is EDL eq. (1).
func (p Params) Power(s Setting) Watt {
	return p.P0 + p.Gamma*Watt(s.Fm) + p.C*Watt(s.V)*Watt(s.V)*Watt(s.Fc)
}

// At evaluates the model at a setting: time, power, and energy by EDL eq. (3).
func (p Params) At(s Setting) Point { return pointAt(p, s, p.Time(s.Fc, s.Fm)) }

// pointAt is [Params.At] where the run time is known.
func pointAt(p Params, s Setting, time float64) Point {
	power := p.Power(s)
	return Point{Setting: s, Time: time, Power: power, Energy: power.Over(time)}
}

// Scale returns the same workload repeated k times: the times grow k-fold, the
// powers stay, and so does the free optimum's setting.
func (p Params) Scale(k float64) Params {
	p.D *= k
	p.T0 *= k
	return p
}

// Validate reports the first coefficient outside the model's domain.
func (p Params) Validate() error {
	if p.P0 >= 0 && p.Gamma >= 0 && p.C >= 0 && p.D >= 0 && p.T0 >= 0 && p.Delta >= 0 && p.Delta <= 1 &&
		p.D+p.T0 > 0 && float64(p.P0+p.Gamma+p.C)+p.D+p.T0 <= math.MaxFloat64 {
		return nil // as good as always: it is asked for every task of a problem
	}
	for _, f := range [...]struct {
		name  string
		value float64
	}{
		{"P0", float64(p.P0)},
		{"gamma", float64(p.Gamma)},
		{"c", float64(p.C)},
		{"D", p.D},
		{"delta", p.Delta},
		{"t0", p.T0},
	} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			return fmt.Errorf("%s is %v, want a finite number", f.name, f.value)
		}
		if f.value < 0 {
			return fmt.Errorf("%s is %v, want 0 or more", f.name, f.value)
		}
	}
	if p.Delta > 1 {
		return fmt.Errorf("delta is %v, want 0 to 1", p.Delta)
	}
	if p.D+p.T0 <= 0 {
		return errors.New("coefficients D and t0 are both 0, want a positive run time")
	}
	return nil
}
