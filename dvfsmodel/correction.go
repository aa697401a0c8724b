package dvfsmodel

import "math"

// Correction is by which factors a workload's time and power differ at supported clocks, and under a
// cap where a model knows caps, from what a form says. A GPU has steps that no form has, such as
// clocks at which its voltage goes up.
type Correction struct {
	Setting
	Time, Power float64
}

// Corrected returns the fit with corrections at the clocks that they name; at others it stays what
// it is. Corrections that it had before are replaced.
func (f *Fitted) Corrected(list []Correction) *Fitted {
	corrected := *f
	corrected.Corrections = list
	corrected.corrections = make(map[Setting]Correction, len(list))
	for _, c := range list {
		corrected.corrections[c.rounded()] = c
	}
	return &corrected
}

// correction is that of normalised clocks.
func (f *Fitted) correction(fc, fm float64) Correction {
	if len(f.corrections) > 0 {
		at := Setting{Core: f.Base.Core * MHz(fc), Mem: f.Base.Mem * MHz(fm), Cap: f.limit}
		if c, ok := f.corrections[at.rounded()]; ok {
			return c
		}
	}
	return Correction{Time: 1, Power: 1}
}

// rounded returns a setting to the kHz and mW, by which clocks are equal that were normalised and are MHz
// again.
func (s Setting) rounded() Setting {
	const milli = 1000
	return Setting{
		Core: MHz(math.Round(float64(s.Core) * milli)), Mem: MHz(math.Round(float64(s.Mem) * milli)),
		Cap: Watt(math.Round(float64(s.Cap) * milli)),
	}
}
