package dvfsmodel

// Model predicts time and power of one workload at a normalised setting.
// [Params] is the paper's form; fitting may choose another.
type Model interface {
	// Time is the run time in seconds at the normalised clocks.
	Time(fc, fm float64) float64
	// Power is the mean power of one GPU at the normalised setting.
	Power(s Scaling) Watt
}

// NoFaster returns a model by which no lower clocks than those of a setting make a run faster,
// whatever curves through a few samples say.
func NoFaster(m Model, standard Scaling) Model {
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

// Scaling is a normalised setting: core voltage, core clock and memory clock, where 1 is
// the GPU's default.
type Scaling struct {
	V  Volt
	Fc float64
	Fm float64
}

// DefaultScaling returns the GPU's own default, (1, 1, 1).
func DefaultScaling() Scaling { return Scaling{V: 1, Fc: 1, Fm: 1} }

// Point is a setting together with what the model expects there.
type Point struct {
	Scaling Scaling
	Core    MHz     // 0 when the range has no clock table
	Mem     MHz     // 0 when the range has no clock table
	Time    float64 // seconds
	Power   Watt    // one GPU
	Energy  Joule   // one GPU
	Cap     Watt    // the power limit that is set there; 0: none
}

// evaluate returns a point with the time, power and energy that the model expects there.
func evaluate(m Model, at Point) Point {
	at.Time, at.Power = m.Time(at.Scaling.Fc, at.Scaling.Fm), m.Power(at.Scaling)
	at.Energy = at.Power.Over(at.Time)
	return at
}
